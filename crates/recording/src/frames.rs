//! Frames by their position in a recording, each checked to be what was recorded there.

use headrace_buffers::align;
use headrace_buffers::log::descriptor::{TERM_LENGTH_MAX, TERM_LENGTH_MIN};
use headrace_buffers::log::frame::{
    FLAGS_OFFSET, FRAME_ALIGNMENT, FRAME_LENGTH_OFFSET, HEADER_LENGTH, RESERVED_VALUE_OFFSET,
    SESSION_ID_OFFSET, STREAM_ID_OFFSET, TERM_ID_OFFSET, TERM_OFFSET_OFFSET, TYPE_DATA, TYPE_PAD,
};

use crate::header::{kind, word};
use crate::{Checksum, RecordingError};

/// What a recording's frames must look like. From the archive's catalog.
#[derive(Clone, Debug)]
pub struct RecordingShape {
    /// Which recording.
    pub recording_id: i64,
    /// Where the recording begins.
    pub start_position: i64,
    /// Term at position 0.
    pub initial_term_id: i32,
    /// Bytes of a term.
    pub term_length: i32,
    /// The stream of every frame.
    pub stream_id: i32,
    /// The publisher of every frame, where the frames themselves do not tell: a replay has a session of its own,
    /// and a checksum takes the place of the session.
    pub session_id: Option<i32>,
    /// What the archive put where frames have their session id; `None` if it left that alone.
    pub checksum: Option<Checksum>,
}

impl RecordingShape {
    pub(super) fn check(&self) -> Result<(), RecordingError> {
        if !is_term_length(self.term_length) {
            let rule = "must be a power of two from 64 KiB to 1 GiB";
            return Err(RecordingError::argument("term_length", self.term_length, rule));
        }
        if self.start_position < 0 || self.start_position % FRAME_ALIGNMENT as i64 != 0 {
            let rule = "must be a multiple of 32 from 0 up";
            return Err(RecordingError::argument(
                "start_position",
                self.start_position,
                rule,
            ));
        }
        Ok(())
    }

    /// Term offset and term id of a frame at `position`.
    #[inline]
    fn place(&self, position: i64) -> (i32, i32) {
        // A power of two, which the compiler does not know: a division takes longer than the rest of a look at a header.
        let term_count = (position >> self.term_length.trailing_zeros()) as i32;
        let term_id = self.initial_term_id.wrapping_add(term_count);
        ((position & (i64::from(self.term_length) - 1)) as i32, term_id)
    }

    /// Whether a header is that of the frame at `position`, which ends at `limit` or before.
    #[inline]
    pub(super) fn is_sound(&self, header: &[u8], position: i64, limit: i64) -> bool {
        let length = word(header, FRAME_LENGTH_OFFSET);
        let (term_offset, term_id) = self.place(position);
        let span = align(length.max(0) as usize, FRAME_ALIGNMENT) as i64;
        length >= HEADER_LENGTH as i32
            && kind(header) <= TYPE_DATA
            && word(header, TERM_OFFSET_OFFSET) == term_offset
            && word(header, TERM_ID_OFFSET) == term_id
            && word(header, STREAM_ID_OFFSET) == self.stream_id
            && span <= i64::from(self.term_length) - i64::from(term_offset)
            && span <= limit.saturating_sub(position)
    }

    /// Why a header is not sound.
    #[cold]
    pub(super) fn fault(&self, header: &[u8], position: i64, limit: i64) -> String {
        let length = word(header, FRAME_LENGTH_OFFSET);
        let kind = kind(header);
        let (term_offset, term_id) = self.place(position);
        if length == 0 {
            return format!("there is no frame, although the recording goes on to position={limit}");
        }
        for (name, found, expected) in [
            ("term_offset", word(header, TERM_OFFSET_OFFSET), term_offset),
            ("term_id", word(header, TERM_ID_OFFSET), term_id),
            ("stream_id", word(header, STREAM_ID_OFFSET), self.stream_id),
        ] {
            if found != expected {
                return format!("{name}={found}, expected {expected}");
            }
        }
        if kind > TYPE_DATA {
            return format!("type={kind} is neither data nor padding");
        }
        format!(
            "length={length} does not fit between 32 and the end of its term or of the recording at {limit}"
        )
    }

    /// Where the term begins that has `position` in it.
    pub(super) fn term_begin(&self, position: i64) -> i64 {
        position - position % i64::from(self.term_length)
    }
}

pub(super) fn is_term_length(length: i32) -> bool {
    usize::try_from(length)
        .is_ok_and(|length| length.is_power_of_two() && (TERM_LENGTH_MIN..=TERM_LENGTH_MAX).contains(&length))
}

/// Where the bytes of a recording come from.
pub trait Blocks: Send {
    /// Puts bytes from `position` on into `block`, which it may make longer, and gives their number: `needed` or
    /// more, none of them from `limit` on unless needed. Gives 0 when they have not come yet.
    fn load(
        &mut self,
        position: i64,
        needed: usize,
        limit: i64,
        block: &mut Vec<u8>,
    ) -> Result<usize, RecordingError>;

    /// Where a position lies, for people.
    fn place(&self, position: i64) -> String;
}

/// A frame that was checked; its payload lies in the block of [`Frames`].
pub(super) struct Frame {
    pub(super) is_padding: bool,
    pub(super) flags: u8,
    pub(super) session_id: i32,
    pub(super) reserved_value: i64,
    pub(super) span: i64,
    payload_at: usize,
    payload_length: usize,
}

/// The frames of a recording, out of one block of its bytes after the other.
pub(super) struct Frames {
    pub(super) shape: RecordingShape,
    blocks: Box<dyn Blocks>,
    block: Vec<u8>,
    block_position: i64,
    block_length: usize,
}

impl Frames {
    pub(super) fn new(shape: RecordingShape, blocks: Box<dyn Blocks>) -> Result<Self, RecordingError> {
        shape.check()?;
        Ok(Self {
            shape,
            blocks,
            block: Vec::new(),
            block_position: 0,
            block_length: 0,
        })
    }

    pub(super) fn place(&self, position: i64) -> String {
        self.blocks.place(position)
    }

    #[inline]
    pub(super) fn payload(&self, frame: &Frame) -> &[u8] {
        &self.block[frame.payload_at..frame.payload_at + frame.payload_length]
    }

    /// The frame at `position`, which must end at `limit` or before; nothing when it has not come yet.
    #[inline]
    pub(super) fn frame(&mut self, position: i64, limit: i64) -> Result<Option<Frame>, RecordingError> {
        let Some(at) = self.find(position, HEADER_LENGTH, limit)? else {
            return Ok(None);
        };
        let header = &self.block[at..at + HEADER_LENGTH];
        let length = word(header, FRAME_LENGTH_OFFSET);
        let kind = kind(header);
        let carried = word(header, SESSION_ID_OFFSET);
        let frame = Frame {
            is_padding: kind == TYPE_PAD,
            flags: header[FLAGS_OFFSET],
            session_id: self.shape.session_id.unwrap_or(carried),
            reserved_value: i64::from_le_bytes(
                header[RESERVED_VALUE_OFFSET..].try_into().expect("eight bytes"),
            ),
            span: align(length.max(0) as usize, FRAME_ALIGNMENT) as i64,
            payload_at: at + HEADER_LENGTH,
            payload_length: (length as usize).wrapping_sub(HEADER_LENGTH),
        };
        if !self.shape.is_sound(header, position, limit) {
            let reason = self.shape.fault(header, position, limit);
            return Err(self.bad_frame(position, reason));
        }
        if frame.is_padding {
            // Of padding the header alone is in the file, which may end after it.
            return Ok(Some(Frame {
                payload_length: 0,
                ..frame
            }));
        }
        // Checksums are of the alignment, too.
        let needed = match self.shape.checksum {
            None => length as usize,
            Some(_) => frame.span as usize,
        };
        let Some(whole_at) = self.find(position, needed, limit)? else {
            return Ok(None);
        };
        if let Some(checksum) = self.shape.checksum {
            let due = checksum.of(&self.block[whole_at + HEADER_LENGTH..whole_at + needed]);
            if carried != due {
                return Err(self.bad_frame(position, format!("checksum={carried}, expected {due}")));
            }
        }
        Ok(Some(Frame {
            payload_at: whole_at + HEADER_LENGTH,
            ..frame
        }))
    }

    #[cold]
    fn bad_frame(&self, position: i64, reason: String) -> RecordingError {
        RecordingError::BadFrame {
            place: self.blocks.place(position),
            position,
            reason,
        }
    }

    /// Index in the block of `length` bytes from `position` on, loaded if they are not there.
    #[inline]
    fn find(&mut self, position: i64, length: usize, limit: i64) -> Result<Option<usize>, RecordingError> {
        let at = position.wrapping_sub(self.block_position);
        if at >= 0 && at as usize + length <= self.block_length {
            return Ok(Some(at as usize));
        }
        self.load(position, length, limit)
    }

    #[cold]
    fn load(&mut self, position: i64, length: usize, limit: i64) -> Result<Option<usize>, RecordingError> {
        self.block_length = 0;
        self.block_length = self.blocks.load(position, length, limit, &mut self.block)?;
        self.block_position = position;
        Ok((self.block_length >= length).then_some(0))
    }
}
