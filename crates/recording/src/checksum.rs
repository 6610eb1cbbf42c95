//! Checksums that an archive may store in the frames of a recording.
//!
//! Each data frame then carries, where its session id was, the checksum of what follows its header up to the next
//! frame, the alignment included. Padding frames keep their session id.

use headrace_buffers::align;
use headrace_buffers::log::frame::{
    FRAME_ALIGNMENT, FRAME_LENGTH_OFFSET, HEADER_LENGTH, SESSION_ID_OFFSET, TYPE_PAD,
};

use crate::header::{kind, word};

/// A checksum of the archive's specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// Of IEEE 802.3, as zlib has it.
    Crc32,
    /// Castagnoli's.
    Crc32c,
}

impl Checksum {
    /// The checksum of some bytes, signed, as files store it.
    pub fn of(self, data: &[u8]) -> i32 {
        let value = match self {
            Self::Crc32 => crc32fast::hash(data),
            Self::Crc32c => crc32c::crc32c(data),
        };
        value.cast_signed()
    }

    /// Puts its checksum into each whole data frame of a run of frames.
    pub fn put(self, block: &mut [u8]) {
        let mut offset = 0;
        while let Some(frame) = Frame::at(block, offset) {
            if !frame.is_padding {
                let value = self.of(&block[offset + HEADER_LENGTH..frame.end]);
                let at = offset + SESSION_ID_OFFSET;
                block[at..at + 4].copy_from_slice(&value.to_le_bytes());
            }
            offset = frame.end;
        }
    }

    /// Offset of the first data frame that begins before `limit` and whose checksum is not the one it carries.
    pub fn first_wrong(self, block: &[u8], limit: usize) -> Option<usize> {
        let mut offset = 0;
        while offset < limit {
            let frame = Frame::at(block, offset)?;
            if !frame.is_padding {
                let body = &block[offset + HEADER_LENGTH..frame.end];
                if self.of(body) != word(block, offset + SESSION_ID_OFFSET) {
                    return Some(offset);
                }
            }
            offset = frame.end;
        }
        None
    }
}

/// Where a frame ends and whether it has anything to check.
struct Frame {
    end: usize,
    is_padding: bool,
}

impl Frame {
    /// The frame at an offset. None where there is no frame, or a data frame is not whole.
    fn at(block: &[u8], offset: usize) -> Option<Self> {
        let header = block.get(offset..offset + HEADER_LENGTH)?;
        let length = usize::try_from(word(header, FRAME_LENGTH_OFFSET)).ok()?;
        if length < HEADER_LENGTH {
            return None;
        }
        let end = offset + align(length, FRAME_ALIGNMENT);
        let is_padding = kind(header) == TYPE_PAD;
        (is_padding || end <= block.len()).then_some(Self { end, is_padding })
    }
}

#[cfg(test)]
mod tests {
    use headrace_buffers::log::frame::TYPE_OFFSET;

    use super::*;

    const DATA: u16 = 1;

    fn frame(payload: &[u8], kind: u16) -> Vec<u8> {
        let length = HEADER_LENGTH + payload.len();
        let mut frame = vec![0; align(length, FRAME_ALIGNMENT)];
        frame[..4].copy_from_slice(&(length as i32).to_le_bytes());
        frame[TYPE_OFFSET..TYPE_OFFSET + 2].copy_from_slice(&kind.to_le_bytes());
        frame[SESSION_ID_OFFSET..SESSION_ID_OFFSET + 4].copy_from_slice(&[7, 0, 0, 0]);
        frame[HEADER_LENGTH..length].copy_from_slice(payload);
        frame
    }

    #[test]
    fn the_published_check_values() {
        assert_eq!(Checksum::Crc32.of(b"123456789"), 0xCBF4_3926_u32.cast_signed());
        assert_eq!(Checksum::Crc32c.of(b"123456789"), 0xE306_9283_u32.cast_signed());
    }

    #[test]
    fn each_data_frame_carries_the_checksum_of_its_body_and_alignment() {
        let mut block = [frame(b"one", DATA), frame(&[9; 40], DATA), frame(b"", TYPE_PAD)].concat();
        Checksum::Crc32c.put(&mut block);
        assert_eq!(
            word(&block, SESSION_ID_OFFSET),
            Checksum::Crc32c.of(&block[32..64])
        );
        assert_eq!(
            word(&block, 64 + SESSION_ID_OFFSET),
            Checksum::Crc32c.of(&block[96..160])
        );
        assert_eq!(
            word(&block, 160 + SESSION_ID_OFFSET),
            7,
            "padding keeps its session id"
        );
        assert_eq!(Checksum::Crc32c.first_wrong(&block, block.len()), None);
        assert_eq!(Checksum::Crc32.first_wrong(&block, block.len()), Some(0));
    }

    #[test]
    fn a_changed_byte_is_found_before_the_limit_alone() {
        for changed in [96, 159] {
            let mut block = [frame(b"one", DATA), frame(&[9; 40], DATA)].concat();
            Checksum::Crc32.put(&mut block);
            block[changed] ^= 1;
            assert_eq!(Checksum::Crc32.first_wrong(&block, block.len()), Some(64));
            assert_eq!(Checksum::Crc32.first_wrong(&block, 64), None);
        }
    }

    #[test]
    fn what_is_no_whole_frame_is_left_alone() {
        let mut block = [frame(b"one", DATA), frame(&[9; 40], DATA)[..64].to_vec()].concat();
        let before = block[64..].to_vec();
        Checksum::Crc32.put(&mut block);
        assert_eq!(block[64..], before);
        assert_eq!(Checksum::Crc32.first_wrong(&block, block.len()), None);
        for length in [0, 31, -1, i32::MAX] {
            let mut block = frame(b"one", DATA);
            block[..4].copy_from_slice(&length.to_le_bytes());
            let before = block.clone();
            Checksum::Crc32.put(&mut block);
            assert_eq!(block, before);
        }
    }
}
