//! Walking the headers of recorded frames, a block of a segment file at a time: where a recording ends whose archive
//! was killed, and which of its frames may not have been written whole.
//!
//! Blocks are handed in, as the archive reaches its files in its own way.

use headrace_buffers::align;
use headrace_buffers::log::frame::{
    FRAME_ALIGNMENT, FRAME_LENGTH_OFFSET, HEADER_LENGTH, SESSION_ID_OFFSET, TYPE_PAD,
};

use crate::header::{kind, word};
use crate::{RecordingError, RecordingShape};

/// Files reach the medium in pages. Segment files begin at multiples of it, so positions tell where pages begin.
const PAGE_LENGTH: usize = 4096;
const EMPTY_PAGE: [u8; PAGE_LENGTH] = [0; PAGE_LENGTH];

/// How far a walk came.
#[derive(Debug, PartialEq, Eq)]
pub struct Walked {
    /// Position after the last frame that belongs to the recording; it may lie after the block's end.
    pub end: i64,
    /// Position of that frame; `None` where the block begins with none.
    pub last: Option<i64>,
    /// What is wrong with the header that ended the walk; `None` where the block ended it.
    pub fault: Option<String>,
}

/// A data frame of which nothing shows that it was written whole.
#[derive(Debug, PartialEq, Eq)]
pub struct UncertainFrame {
    /// Where it begins.
    pub position: i64,
    /// Where it ends.
    pub end: i64,
    /// Its checksum is wrong, and frames before it have theirs: it is torn, or was changed.
    pub is_wrong: bool,
}

/// Looks at the frames of one recording.
#[derive(Debug)]
pub struct FrameWalk {
    shape: RecordingShape,
    // Recordings may begin without checksums and go on with them, or the other way round.
    has_checksums: bool,
}

impl FrameWalk {
    /// Nothing is looked at yet.
    pub fn new(shape: RecordingShape) -> Result<Self, RecordingError> {
        shape.check()?;
        Ok(Self {
            shape,
            has_checksums: false,
        })
    }

    /// Goes from header to header through `block`, which begins with a frame at `position`. No data frame may end
    /// after `limit`, where the file ends.
    pub fn walk(&self, block: &[u8], position: i64, limit: i64) -> Walked {
        let mut walked = Walked {
            end: position,
            last: None,
            fault: None,
        };
        while let Some(header) = header_at(block, position, walked.end) {
            // Of padding the header alone is in the file, which may end after it.
            let end = if kind(header) == TYPE_PAD { i64::MAX } else { limit };
            if !self.shape.is_sound(header, walked.end, end) {
                walked.fault = Some(match word(header, FRAME_LENGTH_OFFSET) {
                    0 => "no frame".to_owned(),
                    _ => self.shape.fault(header, walked.end, limit),
                });
                break;
            }
            walked.last = Some(walked.end);
            walked.end += span(header) as i64;
        }
        walked
    }

    /// The frames of `block` for which nothing speaks. It begins at `position` and was walked before. Gives where the
    /// first frame begins that is not whole in the block.
    ///
    /// A right checksum speaks for a frame, and so does a byte that is not zero in each page after its first: of a
    /// write that was cut short, pages after the first are missing. Padding is a header, which lies in one page.
    pub fn doubts(&mut self, block: &[u8], position: i64, mut on_doubt: impl FnMut(UncertainFrame)) -> i64 {
        let mut at = position;
        while let Some(header) = header_at(block, position, at) {
            let begin = (at - position) as usize;
            let end = begin + span(header);
            let Some(next) = position.checked_add(end as i64).filter(|next| *next > at) else {
                break;
            };
            if kind(header) != TYPE_PAD {
                let Some(body) = block.get(begin + HEADER_LENGTH..end) else {
                    break;
                };
                let is_wrong = self.is_wrong(header, body);
                if is_wrong != Some(false)
                    && (is_wrong == Some(true) || !fills_pages(block, position, begin, end))
                {
                    on_doubt(UncertainFrame {
                        position: at,
                        end: next,
                        is_wrong: is_wrong == Some(true),
                    });
                }
            }
            at = next;
        }
        at
    }

    /// What the checksum says of a frame; `None` where it says nothing.
    fn is_wrong(&mut self, header: &[u8], body: &[u8]) -> Option<bool> {
        let carried = word(header, SESSION_ID_OFFSET);
        if self.shape.checksum?.of(body) == carried {
            self.has_checksums = true;
            return Some(false);
        }
        (self.has_checksums && Some(carried) != self.shape.session_id).then_some(true)
    }
}

/// The header at a position in a block that begins at another; nothing where the block ends before it.
fn header_at(block: &[u8], block_position: i64, position: i64) -> Option<&[u8]> {
    let at = usize::try_from(position.checked_sub(block_position)?).ok()?;
    block.get(at..at.checked_add(HEADER_LENGTH)?)
}

fn span(header: &[u8]) -> usize {
    align(word(header, FRAME_LENGTH_OFFSET).max(0) as usize, FRAME_ALIGNMENT)
}

/// Whether each page after the first that a frame reaches into has a byte of it that is not zero.
fn fills_pages(block: &[u8], block_position: i64, begin: usize, end: usize) -> bool {
    let before = block_position.rem_euclid(PAGE_LENGTH as i64) as usize;
    let mut page = ((before + begin) / PAGE_LENGTH + 1) * PAGE_LENGTH - before;
    while page < end {
        let next = end.min(page + PAGE_LENGTH);
        let bytes = &block[page..next];
        if bytes == &EMPTY_PAGE[..bytes.len()] {
            return false;
        }
        page = next;
    }
    true
}
