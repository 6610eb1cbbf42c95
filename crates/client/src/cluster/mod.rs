//! The work of a cluster's member, and of its client, for each message.

mod client_session;
mod sequencer;
mod session_header;

pub use client_session::{ClientSession, Received};
pub use sequencer::{IngressStream, Sequenced, Sequencer};
pub use session_header::{SESSION_HEADER_LENGTH, SessionHeader};
