//! The connection to a driver: what it makes, its counters and handlers, and the event loop that waits for its streams.
//!
//! The top room: nothing but the module itself uses it.

pub(crate) mod connection;
pub(crate) mod counter;
pub(crate) mod event_loop;
mod handlers;
pub(crate) mod pending_request;
mod program_clock;
pub(crate) mod session_streams;
mod simulated;
mod waitables;
