//! What a driver does for its clients, with a client of the test's own making: commands and events are bytes that the
//! test writes and reads itself. So clients may say what no well-made client says, and every answer is seen in its order.
//!
//! The far ends of streams are real drivers where the test is about the stream, and played by the test where it is about
//! single frames.

#[path = "../common/mod.rs"]
mod common;

mod byte_client;
mod channels;
mod clients;
mod images;
mod ipc_life;
mod ipc_links;
mod logs;
mod lookups;
mod peers;
mod processes;
mod publications;
mod queues;
mod random;
mod refusals;
mod responses;
mod spies;
mod timeouts;
