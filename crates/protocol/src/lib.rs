//! The protocol's rules without input or output: what the bytes mean and what follows from them.
//!
//! Nothing here opens a socket, reads a clock or starts a thread. Times are nanoseconds given by the caller,
//! randomness is a generator given by the caller, and input from a peer is refused with a typed error.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod bytes;
pub mod channel;
pub mod command;
pub mod congestion;
pub mod error_code;
pub mod event;
pub mod flow;
pub mod frame;
pub mod loss;
pub mod retransmit;
pub mod round_trips;
pub mod settings;
pub mod text;

pub use error_code::ErrorCode;
