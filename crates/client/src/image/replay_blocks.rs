//! The bytes of a recording as an archive replays them.

use std::sync::Arc;

use headrace_recording::{Blocks, RecordingError};

use super::Image;

/// Frames are copied in runs of at most this many bytes; no frame is longer.
const BLOCK_LENGTH: usize = 256 * 1024;

/// Takes the frames of an image, which must be at the first position to read and must have no other reader.
pub struct ReplayBlocks {
    image: Arc<Image>,
}

impl ReplayBlocks {
    /// `image` is that of a replay, which continues as it is read.
    pub fn new(image: Arc<Image>) -> Self {
        Self { image }
    }
}

impl Blocks for ReplayBlocks {
    fn load(
        &mut self,
        position: i64,
        _needed: usize,
        _limit: i64,
        block: &mut Vec<u8>,
    ) -> Result<usize, RecordingError> {
        let found = self.image.position();
        if found != position {
            return Err(RecordingError::Misplaced {
                place: self.place(position),
                position,
                found,
            });
        }
        block.clear();
        let polled = self
            .image
            .block_poll(|frames| block.extend_from_slice(frames.bytes), BLOCK_LENGTH);
        polled.map_err(|source| RecordingError::Source {
            place: self.place(position),
            source: source.into(),
        })?;
        Ok(block.len())
    }

    fn place(&self, _position: i64) -> String {
        format!(
            "replay: session_id={} from {}",
            self.image.session_id(),
            self.image.source_identity()
        )
    }
}
