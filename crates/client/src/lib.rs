//! Headrace's client: everything a program does with a running media driver.
//!
//! A [`Client`] connects to the driver of a directory. It adds [`Publication`]s and [`Subscription`]s, which then work
//! on shared memory directly: an offer or a poll takes no lock that another thread waits for, allocates nothing and
//! makes no system call. The client conductor handles the driver's events (images and counters that come and go,
//! errors), on its own thread or whenever the program calls [`Client::invoke`].
//!
//! ```no_run
//! use headrace_client::{Client, ClientConfig, Offer};
//!
//! let client = Client::connect(ClientConfig::default())?;
//! let subscription = client.add_subscription("aeron:ipc", 10, Default::default())?;
//! let publication = client.add_publication("aeron:ipc", 10)?;
//! while !matches!(publication.offer(b"hello")?, Offer::Position(_)) {
//!     std::thread::yield_now();
//! }
//! subscription.poll(|payload, header| println!("{} bytes at {}", payload.len(), header.position()), 10)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod channel_status;
mod client;
mod cluster;
mod conductor;
mod conductor_proxy;
pub mod config;
mod connect;
pub mod counter;
mod destinations;
mod error;
mod handlers;
mod image;
mod lock;
mod publication;
mod subscription;

pub use channel_status::{ChannelStatus, EndpointStatus};
pub use client::{Client, Requests, SessionIdRequest};
pub use cluster::{
    ClientSession, IngressStream, Received, SESSION_HEADER_LENGTH, Sequenced, Sequencer, SessionHeader,
};
pub use conductor::{PARK_MAX, Replies};
pub use config::ClientConfig;
pub use connect::request_driver_termination;
pub use counter::{Counter, StaticCounter};
pub use destinations::Destinations;
pub use error::{ClientError, OfferError, PollError};
pub use handlers::{
    CloseHandler, CounterHandler, ErrorHandler, Handler, ImageHandler, PublicationError,
    PublicationErrorHandler, SubscriptionHandlers,
};
pub use headrace_buffers::doorbell::{Armed, Awaited, BlockingIdle, Doorbells, Interests, SharedParker};
pub use headrace_buffers::log::{
    Action, Append as Offer, AppendError, Claim, ClaimResult, Header, RecordedEnd, RecordedResult,
};
pub use headrace_protocol::ErrorCode;
pub use image::{Block, FragmentAssembler, HandlerResult, Image, PollLimit, ReplayBlocks};
pub use publication::{
    ExclusivePublication, LogLimits, Publication, PublicationHandle, SubscriberCount, Writer,
};
pub use subscription::{PollGuard, Start, Subscription};

// What programs and bindings rely on: everything may be moved to, and used from, any thread.
const _: () = {
    const fn of_any_thread<T: Send + Sync>() {}
    of_any_thread::<Client>();
    of_any_thread::<Publication>();
    of_any_thread::<ExclusivePublication>();
    of_any_thread::<Subscription>();
    of_any_thread::<Image>();
    of_any_thread::<Counter>();
    of_any_thread::<StaticCounter>();
    of_any_thread::<ClientError>();
};
