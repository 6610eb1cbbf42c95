//! Whole messages of a range of a recording.
//!
//! A range owns the messages that begin in `[start, stop)`, and reads past `stop` to finish the last of them. So
//! ranges that meet, wherever they meet, give every message once. What a range begins in the middle of belongs to
//! the one before.

use headrace_buffers::log::frame::{FLAG_BEGIN, FLAG_END, FLAGS_UNFRAGMENTED, FRAME_ALIGNMENT};

use super::frames::{Frame, Frames};
use super::{Blocks, RecordingError, RecordingShape};

/// What to read of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Messages that begin here or later.
    pub start: i64,
    /// Messages that begin before this.
    pub stop: i64,
    /// Nothing from here on is looked at: where the recording ends.
    pub limit: i64,
    /// A frame is known to begin at `start`. Otherwise the reader walks to it from the beginning of the term.
    pub is_frame_at_start: bool,
}

/// Which messages to leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageFilter {
    /// Messages of this publisher only.
    pub session_id: Option<i32>,
    /// Messages with at least this reserved value.
    pub reserved_value_min: i64,
    /// Messages with at most this reserved value.
    pub reserved_value_max: i64,
}

impl Default for MessageFilter {
    fn default() -> Self {
        Self {
            session_id: None,
            reserved_value_min: i64::MIN,
            reserved_value_max: i64::MAX,
        }
    }
}

impl MessageFilter {
    #[inline]
    fn admits(&self, session_id: i32, reserved_value: i64) -> bool {
        self.session_id.is_none_or(|wanted| wanted == session_id)
            && (self.reserved_value_min..=self.reserved_value_max).contains(&reserved_value)
    }
}

/// A message as it was recorded. Session and reserved value are those of its first fragment.
#[derive(Clone, Copy, Debug)]
pub struct RecordedMessage<'a> {
    /// All of it.
    pub payload: &'a [u8],
    /// Stream position after the message.
    pub position: i64,
    /// Publisher.
    pub session_id: i32,
    /// 64 bits that the publisher may set.
    pub reserved_value: i64,
}

/// Reads the messages of a range in their order.
pub struct RecordingReader {
    frames: Frames,
    range: Range,
    filter: MessageFilter,
    position: i64,
    boundary: i64,
    unfinished: Unfinished,
    incomplete_count: u64,
}

/// A message whose last fragment has not been read yet.
#[derive(Default)]
struct Unfinished {
    is_open: bool,
    session_id: i32,
    reserved_value: i64,
    bytes: Vec<u8>,
}

impl RecordingReader {
    /// Loads nothing yet: a missing file shows when it is reached.
    pub fn new(
        shape: RecordingShape,
        blocks: impl Blocks + 'static,
        range: Range,
        filter: MessageFilter,
    ) -> Result<Self, RecordingError> {
        let Range {
            start, stop, limit, ..
        } = range;
        if start < shape.start_position {
            let rule = "must not be before the recording begins";
            return Err(RecordingError::argument("start", start, rule));
        }
        if stop < start {
            return Err(RecordingError::argument("stop", stop, "must not be below start"));
        }
        if limit < shape.start_position || limit % FRAME_ALIGNMENT as i64 != 0 {
            let rule = "must be a multiple of 32 from the recording's beginning up";
            return Err(RecordingError::argument("limit", limit, rule));
        }
        if range.is_frame_at_start && start % FRAME_ALIGNMENT as i64 != 0 {
            return Err(RecordingError::argument(
                "start",
                start,
                "must be a multiple of 32",
            ));
        }
        let frames = Frames::new(shape, Box::new(blocks))?;
        let position = if range.is_frame_at_start {
            start
        } else {
            let shape = &frames.shape;
            shape.start_position.max(shape.term_begin(start))
        };
        Ok(Self {
            frames,
            range,
            filter,
            position,
            boundary: position,
            unfinished: Unfinished::default(),
            incomplete_count: 0,
        })
    }

    /// Gives at most `count_max` messages, and stops after `length_max` bytes of payload. Returns how many; fewer
    /// than asked for, with bytes to spare, means that the range has no more or, unless [`Self::is_at_end`], that
    /// the rest has not come yet.
    pub fn read(
        &mut self,
        count_max: usize,
        length_max: usize,
        mut deliver: impl FnMut(RecordedMessage<'_>),
    ) -> Result<usize, RecordingError> {
        let mut count = 0;
        let mut length = 0;
        while count < count_max && length < length_max && !self.is_at_end() {
            let Some(frame) = self.frames.frame(self.position, self.range.limit)? else {
                break;
            };
            let begin = self.position;
            self.position += frame.span;
            let whole = if frame.is_padding || begin < self.range.start {
                self.give_up();
                None
            } else {
                Self::message(
                    &self.frames,
                    &frame,
                    &mut self.unfinished,
                    &mut self.incomplete_count,
                )
            };
            if let Some((session_id, reserved_value, payload)) = whole
                && self.filter.admits(session_id, reserved_value)
            {
                count += 1;
                length += payload.len();
                deliver(RecordedMessage {
                    payload,
                    position: self.position,
                    session_id,
                    reserved_value,
                });
            }
            if !self.unfinished.is_open {
                self.boundary = self.position;
            }
        }
        if self.position >= self.range.limit {
            self.give_up();
        }
        Ok(count)
    }

    /// The message that `frame` is or completes.
    #[inline]
    fn message<'a>(
        frames: &'a Frames,
        frame: &Frame,
        unfinished: &'a mut Unfinished,
        incomplete_count: &mut u64,
    ) -> Option<(i32, i64, &'a [u8])> {
        let payload = frames.payload(frame);
        let begins = frame.flags & FLAG_BEGIN != 0;
        if begins && unfinished.is_open {
            unfinished.is_open = false;
            *incomplete_count += 1;
        }
        if frame.flags & FLAGS_UNFRAGMENTED == FLAGS_UNFRAGMENTED {
            return Some((frame.session_id, frame.reserved_value, payload));
        }
        if begins {
            unfinished.is_open = true;
            unfinished.session_id = frame.session_id;
            unfinished.reserved_value = frame.reserved_value;
            unfinished.bytes.clear();
        }
        if !unfinished.is_open {
            return None;
        }
        unfinished.bytes.extend_from_slice(payload);
        if frame.flags & FLAG_END == 0 {
            return None;
        }
        unfinished.is_open = false;
        Some((
            unfinished.session_id,
            unfinished.reserved_value,
            &unfinished.bytes,
        ))
    }

    fn give_up(&mut self) {
        if self.unfinished.is_open {
            self.unfinished.is_open = false;
            self.incomplete_count += 1;
        }
    }

    /// True when the range has no more.
    pub fn is_at_end(&self) -> bool {
        self.position >= self.range.limit || (self.position >= self.range.stop && !self.unfinished.is_open)
    }

    /// Where the next frame is.
    pub fn position(&self) -> i64 {
        self.position
    }

    /// The last position up to which all messages were read that began: where a range may end whose messages must
    /// all be whole.
    pub fn boundary(&self) -> i64 {
        self.boundary
    }

    /// Messages that were begun and never finished: nobody received them whole.
    pub fn incomplete_count(&self) -> u64 {
        self.incomplete_count
    }

    /// The stream that is read.
    pub fn stream_id(&self) -> i32 {
        self.frames.shape.stream_id
    }
}
