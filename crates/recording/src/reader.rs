//! Whole messages of a range of a recording.
//!
//! A range owns the messages that begin in `[start, stop)`, and reads past `stop` to finish the last of them. So
//! ranges that meet, wherever they meet, give every message once. What a range begins in the middle of belongs to
//! the one before.

use headrace_buffers::log::descriptor::MESSAGE_LENGTH_MAX;
use headrace_buffers::log::frame::{FLAG_BEGIN, FLAG_END, FLAGS_UNFRAGMENTED, FRAME_ALIGNMENT};

use crate::frames::{Frame, Frames};
use crate::{Blocks, RecordingError, RecordingShape};

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
    place: Place,
    unfinished: Unfinished,
    incomplete: Incomplete,
}

/// Messages of which the recording lacks fragments, though it goes on after the fragments that it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Incomplete {
    /// How many. A message without any recorded fragment leaves no trace and does not count.
    pub count: u64,
    /// Where the first recorded fragment of the first of them lies; 0 without one.
    pub position: i64,
}

impl Incomplete {
    #[cold]
    fn add(&mut self, position: i64) {
        if self.count == 0 {
            self.position = position;
        }
        self.count += 1;
    }
}

/// What a fragment that begins no message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// One that has lost its beginning: the last one ended, or there is padding.
    Between,
    /// The unfinished message.
    Open,
    /// One that is not for this range, or that is counted as incomplete already.
    Skipped,
}

/// A message whose last fragment has not been read yet.
struct Unfinished {
    position: i64,
    session_id: i32,
    reserved_value: i64,
    bytes: Vec<u8>,
}

impl Unfinished {
    fn begin(&mut self, position: i64, frame: &Frame) {
        self.position = position;
        self.session_id = frame.session_id;
        self.reserved_value = frame.reserved_value;
        self.bytes.clear();
    }
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
            // What comes before a first beginning may be the end of the range before.
            place: Place::Skipped,
            unfinished: Unfinished {
                position,
                session_id: 0,
                reserved_value: 0,
                bytes: Vec::new(),
            },
            incomplete: Incomplete::default(),
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
        let filter = self.filter;
        let mut count = 0;
        let mut length = 0;
        while count < count_max && length < length_max && !self.is_at_end() {
            let Some(frame) = self.frames.frame(self.position, self.range.limit)? else {
                break;
            };
            let begin = self.position;
            let begins_message = frame.flags & FLAG_BEGIN != 0;
            if self.place == Place::Open && (frame.is_padding || begins_message) {
                self.incomplete.add(self.unfinished.position);
                self.place = Place::Skipped;
                if begin >= self.range.stop {
                    // What begins here belongs to the next range.
                    self.boundary = begin;
                    break;
                }
            }
            self.position += frame.span;
            let whole = if frame.is_padding || begin < self.range.start {
                None
            } else {
                self.message(begin, &frame)?
            };
            if let Some(message) = whole
                && filter.admits(message.session_id, message.reserved_value)
            {
                count += 1;
                length += message.payload.len();
                deliver(message);
            }
            if self.place != Place::Open {
                self.boundary = self.position;
            }
        }
        Ok(count)
    }

    /// The message that `frame`, which lies at `begin`, is or completes.
    #[inline]
    fn message(&mut self, begin: i64, frame: &Frame) -> Result<Option<RecordedMessage<'_>>, RecordingError> {
        let position = begin + frame.span;
        if frame.flags & FLAGS_UNFRAGMENTED == FLAGS_UNFRAGMENTED {
            self.place = Place::Between;
            return Ok(Some(RecordedMessage {
                payload: self.frames.payload(frame),
                position,
                session_id: frame.session_id,
                reserved_value: frame.reserved_value,
            }));
        }
        if frame.flags & FLAG_BEGIN != 0 {
            self.place = Place::Open;
            self.unfinished.begin(begin, frame);
        } else if self.place == Place::Between {
            self.incomplete.add(begin);
            self.place = Place::Skipped;
        }
        let is_open = self.place == Place::Open;
        if is_open {
            self.take(frame)?;
        }
        if frame.flags & FLAG_END == 0 {
            return Ok(None);
        }
        self.place = Place::Between;
        let unfinished = &self.unfinished;
        Ok(is_open.then_some(RecordedMessage {
            payload: &unfinished.bytes,
            position,
            session_id: unfinished.session_id,
            reserved_value: unfinished.reserved_value,
        }))
    }

    /// Adds a fragment to the unfinished message, which can be as long as one of a live stream: messages do not
    /// span terms.
    #[inline]
    fn take(&mut self, frame: &Frame) -> Result<(), RecordingError> {
        let payload = self.frames.payload(frame);
        let unfinished = &mut self.unfinished;
        let length_max = MESSAGE_LENGTH_MAX.min(self.frames.shape.term_length as usize);
        if unfinished.bytes.len() + payload.len() > length_max {
            return Err(RecordingError::MessageTooLong {
                place: self.frames.place(unfinished.position),
                recording_id: self.frames.shape.recording_id,
                position: unfinished.position,
                length_max,
            });
        }
        unfinished.bytes.extend_from_slice(payload);
        Ok(())
    }

    /// True when the range has no more.
    pub fn is_at_end(&self) -> bool {
        self.position >= self.range.limit || (self.position >= self.range.stop && self.place != Place::Open)
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

    /// Messages of this range that were left out, because fragments of them are missing. The last of a recording
    /// is not among them: its rest may still come.
    pub fn incomplete(&self) -> Incomplete {
        self.incomplete
    }

    /// The stream that is read.
    pub fn stream_id(&self) -> i32 {
        self.frames.shape.stream_id
    }
}
