//! Frames by their position in a recording.
//!
//! The first segment file begins with the term in which the recording starts; each following one `segment_length`
//! later. A file is called `<recording id>-<position of its first byte>.rec`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use headrace_buffers::align;
use headrace_buffers::log::descriptor::{TERM_LENGTH_MAX, TERM_LENGTH_MIN};
use headrace_buffers::log::frame::{FRAME_ALIGNMENT, HEADER_LENGTH, TYPE_DATA, TYPE_PAD};

use super::{Checksum, RecordingError};

/// Small enough to stay in the second-level cache between reading and copying out.
const BLOCK_LENGTH: usize = 256 * 1024;

/// Where a recording lies, and what its frames must look like. From the archive's catalog.
#[derive(Clone, Debug)]
pub struct RecordingSource {
    /// The archive's directory.
    pub directory: PathBuf,
    /// Names the segment files.
    pub recording_id: i64,
    /// Where the recording begins.
    pub start_position: i64,
    /// Term at position 0.
    pub initial_term_id: i32,
    /// Bytes of a term.
    pub term_length: i32,
    /// Bytes of a segment file.
    pub segment_length: i32,
    /// The stream of every frame.
    pub stream_id: i32,
    /// What the archive put where frames have their session id; `None` if it left that alone.
    pub checksum: Option<RecordedChecksum>,
}

/// Frames of a recording carry a checksum where their session id was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedChecksum {
    /// How it is made.
    pub kind: Checksum,
    /// The publisher that the catalog knows, since frames do not tell any more.
    pub session_id: i32,
}

impl RecordingSource {
    fn check(&self) -> Result<(), RecordingError> {
        let is_length = |length: i32| {
            usize::try_from(length).is_ok_and(|length| {
                length.is_power_of_two() && (TERM_LENGTH_MIN..=TERM_LENGTH_MAX).contains(&length)
            })
        };
        let rule = "must be a power of two from 64 KiB to 1 GiB";
        if !is_length(self.term_length) {
            return Err(RecordingError::argument("term_length", self.term_length, rule));
        }
        if !is_length(self.segment_length) || self.segment_length < self.term_length {
            let rule = "must be a power of two from one term to 1 GiB";
            return Err(RecordingError::argument(
                "segment_length",
                self.segment_length,
                rule,
            ));
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

    /// Where the term begins that has `position` in it.
    pub(super) fn term_begin(&self, position: i64) -> i64 {
        position - position % i64::from(self.term_length)
    }

    fn segment_base(&self, position: i64) -> i64 {
        let first = self.term_begin(self.start_position);
        position - (position - first) % i64::from(self.segment_length)
    }

    fn path(&self, segment_base: i64) -> PathBuf {
        self.directory
            .join(format!("{}-{segment_base}.rec", self.recording_id))
    }
}

/// A frame that was checked; its payload lies in the block of [`Segments`].
pub(super) struct Frame {
    pub(super) is_padding: bool,
    pub(super) flags: u8,
    pub(super) session_id: i32,
    pub(super) reserved_value: i64,
    pub(super) span: i64,
    payload_at: usize,
    payload_length: usize,
}

/// The bytes of a recording, a block at a time.
pub(super) struct Segments {
    pub(super) source: RecordingSource,
    file: Option<(i64, File)>,
    block: Vec<u8>,
    block_position: i64,
    block_length: usize,
}

impl Segments {
    pub(super) fn new(source: RecordingSource) -> Result<Self, RecordingError> {
        source.check()?;
        Ok(Self {
            source,
            file: None,
            block: vec![0; BLOCK_LENGTH],
            block_position: 0,
            block_length: 0,
        })
    }

    pub(super) fn payload(&self, frame: &Frame) -> &[u8] {
        &self.block[frame.payload_at..frame.payload_at + frame.payload_length]
    }

    /// The frame at `position`, which must end at `limit` or before.
    #[inline]
    pub(super) fn frame(&mut self, position: i64, limit: i64) -> Result<Frame, RecordingError> {
        let mut at = self.find(position, HEADER_LENGTH, limit)?;
        let header = &self.block[at..at + HEADER_LENGTH];
        let length = read_i32(header, 0);
        let kind = u16::from_le_bytes([header[6], header[7]]);
        let expected_term_offset = (position % i64::from(self.source.term_length)) as i32;
        let expected_term_id = self
            .source
            .initial_term_id
            .wrapping_add((position / i64::from(self.source.term_length)) as i32);
        let frame = Frame {
            is_padding: kind == TYPE_PAD,
            flags: header[5],
            session_id: read_i32(header, 12),
            reserved_value: i64::from_le_bytes(header[24..32].try_into().expect("eight bytes")),
            span: align(length.max(0) as usize, FRAME_ALIGNMENT) as i64,
            payload_at: at + HEADER_LENGTH,
            payload_length: (length as usize).wrapping_sub(HEADER_LENGTH),
        };
        let is_sound = length >= HEADER_LENGTH as i32
            && kind <= TYPE_DATA
            && read_i32(header, 8) == expected_term_offset
            && read_i32(header, 20) == expected_term_id
            && read_i32(header, 16) == self.source.stream_id
            && frame.span <= i64::from(self.source.term_length) - i64::from(expected_term_offset)
            && position + frame.span <= limit;
        if !is_sound {
            let reason = self.fault(header, position, limit);
            return Err(self.bad_frame(position, reason));
        }
        if frame.is_padding {
            // Of padding the header alone is in the file, which may end after it.
            return Ok(Frame {
                payload_length: 0,
                ..frame
            });
        }
        let Some(checksum) = self.source.checksum else {
            at = self.find(position, length as usize, limit)?;
            return Ok(Frame {
                payload_at: at + HEADER_LENGTH,
                ..frame
            });
        };
        let span = frame.span as usize;
        at = self.find(position, span, limit)?;
        let due = checksum.kind.of(&self.block[at + HEADER_LENGTH..at + span]);
        if frame.session_id != due {
            let reason = format!("checksum={} where {due} is due", frame.session_id);
            return Err(self.bad_frame(position, reason));
        }
        Ok(Frame {
            payload_at: at + HEADER_LENGTH,
            session_id: checksum.session_id,
            ..frame
        })
    }

    #[cold]
    fn fault(&self, header: &[u8], position: i64, limit: i64) -> String {
        let length = read_i32(header, 0);
        let kind = u16::from_le_bytes([header[6], header[7]]);
        let term_length = i64::from(self.source.term_length);
        let term_offset = (position % term_length) as i32;
        let term_id = self
            .source
            .initial_term_id
            .wrapping_add((position / term_length) as i32);
        if length == 0 {
            return format!("there is no frame, although the recording goes on to position={limit}");
        }
        for (name, found, expected) in [
            ("term_offset", read_i32(header, 8), term_offset),
            ("term_id", read_i32(header, 20), term_id),
            ("stream_id", read_i32(header, 16), self.source.stream_id),
        ] {
            if found != expected {
                return format!("{name}={found} where {expected} is due");
            }
        }
        if kind > TYPE_DATA {
            return format!("type={kind} is neither data nor padding");
        }
        format!(
            "length={length} does not fit between 32 and the end of its term or of the recording at {limit}"
        )
    }

    #[cold]
    fn bad_frame(&self, position: i64, reason: String) -> RecordingError {
        let base = self.source.segment_base(position);
        RecordingError::BadFrame {
            path: self.source.path(base),
            recording_id: self.source.recording_id,
            offset: (position - base) as u64,
            position,
            reason,
        }
    }

    /// Index in the block of `length` bytes from `position` on, read if they are not there.
    #[inline]
    fn find(&mut self, position: i64, length: usize, limit: i64) -> Result<usize, RecordingError> {
        let at = position.wrapping_sub(self.block_position);
        if at >= 0 && at as usize + length <= self.block_length {
            return Ok(at as usize);
        }
        self.fill(position, length, limit)?;
        Ok(0)
    }

    #[cold]
    fn fill(&mut self, position: i64, length: usize, limit: i64) -> Result<(), RecordingError> {
        let base = self.source.segment_base(position);
        let path = self.source.path(base);
        let fault = |source| RecordingError::Io {
            path: path.clone(),
            source,
        };
        if self.file.as_ref().is_none_or(|(opened, _)| *opened != base) {
            let file = File::open(&path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => RecordingError::MissingSegment {
                    path: path.clone(),
                    recording_id: self.source.recording_id,
                    position,
                },
                _ => fault(error),
            })?;
            self.file = Some((base, file));
        }
        let Some((_, file)) = &self.file else {
            return Ok(());
        };
        // What lies behind the limit may be written at this moment.
        let segment_end = base + i64::from(self.source.segment_length);
        let end = limit.min(segment_end).max(position + length as i64);
        let wanted = ((end - position) as usize).min(BLOCK_LENGTH.max(length));
        if self.block.len() < wanted {
            self.block.resize(wanted, 0);
        }
        let offset = (position - base) as u64;
        self.block_position = position;
        self.block_length = 0;
        while self.block_length < wanted {
            let rest = &mut self.block[self.block_length..wanted];
            match file.read_at(rest, offset + self.block_length as u64) {
                Ok(0) => break,
                Ok(count) => self.block_length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(fault(error)),
            }
        }
        if self.block_length < length {
            return Err(RecordingError::TruncatedSegment {
                path,
                length: offset + self.block_length as u64,
                needed: offset + length as u64,
            });
        }
        Ok(())
    }
}

fn read_i32(bytes: &[u8], offset: usize) -> i32 {
    i32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}
