//! Recordings: their messages in batches, their frames and checksums.

pub(crate) mod checksum;
pub(crate) mod frame_walk;
pub(crate) mod recording_reader;
