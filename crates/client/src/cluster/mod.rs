//! The work of a cluster's member for each message.

mod sequencer;
mod session_header;

pub use sequencer::{IngressStream, Sequenced, Sequencer};
pub use session_header::{SESSION_HEADER_LENGTH, SessionHeader};
