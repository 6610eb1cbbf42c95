//! The bytes of a recording in an archive's segment files.
//!
//! The first segment file begins with the term in which the recording starts; each following one `segment_length`
//! later. A file is called `<recording id>-<position of its first byte>.rec`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::frames::is_term_length;
use crate::{Blocks, RecordingError, RecordingShape};

/// Small enough to stay in the second-level cache between reading and copying out.
const BLOCK_LENGTH: usize = 256 * 1024;

/// Reads segment files, one open at a time.
pub struct Segments {
    directory: PathBuf,
    recording_id: i64,
    first_base: i64,
    segment_length: i32,
    file: Option<(i64, File)>,
}

impl Segments {
    /// Opens nothing yet. `directory` is the archive's, `segment_length` the bytes of a file.
    pub fn new(
        directory: PathBuf,
        segment_length: i32,
        shape: &RecordingShape,
    ) -> Result<Self, RecordingError> {
        shape.check()?;
        if !is_term_length(segment_length) || segment_length < shape.term_length {
            let rule = "must be a power of two from one term to 1 GiB";
            return Err(RecordingError::argument("segment_length", segment_length, rule));
        }
        Ok(Self {
            directory,
            recording_id: shape.recording_id,
            first_base: shape.term_begin(shape.start_position),
            segment_length,
            file: None,
        })
    }

    fn base(&self, position: i64) -> i64 {
        position - (position - self.first_base) % i64::from(self.segment_length)
    }

    fn path(&self, base: i64) -> PathBuf {
        self.directory.join(format!("{}-{base}.rec", self.recording_id))
    }

    /// The file that begins at a base; `position` is what it is opened for.
    fn file(&mut self, base: i64, position: i64) -> Result<&File, RecordingError> {
        let file = match self.file.take() {
            Some((opened, file)) if opened == base => file,
            _ => self.open(base, position)?,
        };
        Ok(&self.file.insert((base, file)).1)
    }

    fn open(&self, base: i64, position: i64) -> Result<File, RecordingError> {
        let path = self.path(base);
        File::open(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => RecordingError::MissingSegment {
                path,
                recording_id: self.recording_id,
                position,
            },
            _ => RecordingError::Io { path, source },
        })
    }
}

/// Fills a buffer from an offset of a file, as far as the file reaches.
fn read_available(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read_at(&mut buffer[length..], offset + length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

impl Blocks for Segments {
    fn load(
        &mut self,
        position: i64,
        needed: usize,
        limit: i64,
        block: &mut Vec<u8>,
    ) -> Result<usize, RecordingError> {
        let base = self.base(position);
        let path = self.path(base);
        // The archive may be writing the bytes after the limit at this moment.
        let segment_end = base + i64::from(self.segment_length);
        let end = limit.min(segment_end).max(position + needed as i64);
        let wanted = ((end - position) as usize).min(BLOCK_LENGTH.max(needed));
        if block.len() < wanted {
            block.resize(wanted, 0);
        }
        let offset = (position - base) as u64;
        let length =
            read_available(self.file(base, position)?, &mut block[..wanted], offset).map_err(|source| {
                RecordingError::Io {
                    path: path.clone(),
                    source,
                }
            })?;
        if length < needed {
            return Err(RecordingError::TruncatedSegment {
                path,
                length: offset + length as u64,
                needed: offset + needed as u64,
            });
        }
        Ok(length)
    }

    fn place(&self, position: i64) -> String {
        let base = self.base(position);
        format!(
            "{}: recording_id={} offset={}",
            self.path(base).display(),
            self.recording_id,
            position - base
        )
    }
}
