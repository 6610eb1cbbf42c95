//! Headrace's client: everything a program does with a running media driver.
//!
//! A [`Client`] connects to the driver of a directory. It adds [`Publication`]s and [`Subscription`]s, which then
//! work on shared memory directly: an offer or a poll takes no lock that another thread waits for, allocates
//! nothing and makes no system call. The driver's news (images and counters that come and go, errors) are worked
//! off by the client conductor, on a thread of its own or whenever the program calls [`Client::invoke`].
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

pub mod assembler;
mod blocking;
pub mod client;
pub mod config;
mod connect;
mod core;
pub mod counter;
pub mod error;
mod events;
mod exclusive;
mod expiry;
pub mod handlers;
mod heartbeat;
mod home;
pub mod image;
mod lock;
mod mappings;
mod publication;
mod replayed;
mod requests;
mod resources;
mod sequencer;
mod service;
mod state;
mod status;
mod subscription;
mod termination;
mod thread_token;
mod turns;

pub use assembler::FragmentAssembler;
pub use blocking::{Answers, PARK_MAX};
pub use client::{Client, SessionIdRequest};
pub use config::ClientConfig;
pub use counter::{Counter, StaticCounter};
pub use error::{ClientError, OfferError, PollError};
pub use exclusive::{ExclusivePublication, Writer};
pub use handlers::{
    CloseHandler, CounterHandler, ErrorHandler, ImageHandler, PublicationError, PublicationErrorHandler,
    SubscriptionHandlers,
};
pub use headrace_buffers::doorbell::{Armed, Awaited, BlockingIdle, Doorbells, Interests, SharedParker};
pub use headrace_buffers::log::{
    Action, Append as Offer, AppendError, Claim, ClaimResult, Header, RecordedEnd, RecordedResult,
};
pub use headrace_protocol::ErrorCode;
pub use image::{Block, Image};
pub use publication::{Publication, PublicationHandle, SubscriberCount};
pub use replayed::Replayed;
pub use sequencer::{SESSION_HEADER_LENGTH, Sequenced, Sequencer, SessionHeader};
pub use status::ChannelStatus;
pub use subscription::{PollGuard, Subscription};
pub use termination::request_driver_termination;

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
