//! What runs for each message in a cluster: the log is written, read and answered from here.

pub(crate) mod log_entries;
pub(crate) mod log_place;
pub(crate) mod sequencer;
pub(crate) mod session_sender;
