//! The log of one stream: three terms and the metadata that rules them.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use headrace_sys::{Access, MappedFile};

use crate::doorbell::{Doorbells, LogDoorbells};
use crate::{AtomicBuffer, Memory};

use super::clean::zero_range;
use super::descriptor::{METADATA_LENGTH, PARTITION_COUNT, TERM_LENGTH_MIN, log_file_length};
use super::error::LogError;
use super::frame::{FRAME_ALIGNMENT, TermIdentity};
use super::metadata::LogMetadata;
use super::position::{TermGeometry, index_by_term_count};
use super::raw_tail;
use super::spec::LogSpec;

/// Distance at which pages are touched; no supported system has smaller ones.
const TOUCH_INTERVAL: usize = 4096;

/// A log buffer. Clones share it; the mapping lives as long as the last of them.
#[derive(Debug)]
pub struct LogBuffers<M: Memory = AtomicBuffer> {
    shared: Arc<Shared<M>>,
    // None until it is known who is to be woken.
    doorbells: Option<Arc<LogDoorbells>>,
}

#[derive(Debug)]
struct Shared<M: Memory> {
    terms: [M; PARTITION_COUNT],
    metadata: LogMetadata<M>,
    // Read once and checked, because the metadata may be changed under us.
    geometry: TermGeometry,
    mtu: usize,
    session_id: i32,
    stream_id: i32,
    // Of a file that exists.
    mapping: Option<Arc<MappedFile>>,
}

impl<M: Memory> Clone for LogBuffers<M> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            doorbells: self.doorbells.clone(),
        }
    }
}

impl LogBuffers {
    /// Creates the log file `path`, which must not exist. After an error no file is left.
    pub fn create(path: &Path, spec: &LogSpec) -> Result<Self, LogError> {
        spec.validate()?;
        let length = log_file_length(spec.term_length, spec.page_size);
        let mapping =
            MappedFile::create(path, length as u64, !spec.sparse).map_err(|source| LogError::Io {
                action: "create",
                path: path.to_owned(),
                source,
            })?;
        let log = Self::initialise(AtomicBuffer::of_mapping(Arc::new(mapping)), spec);
        if !spec.sparse {
            log.pre_touch();
        }
        Ok(log)
    }

    /// Maps an existing log for reading and writing.
    pub fn map(path: &Path) -> Result<Self, LogError> {
        Self::map_with(path, Access::ReadWrite)
    }

    /// Maps an existing log. With read-only access the log must only be read: a store would fault.
    pub fn map_with(path: &Path, access: Access) -> Result<Self, LogError> {
        let mapping = MappedFile::open(path, access).map_err(|source| LogError::Io {
            action: "map",
            path: path.to_owned(),
            source,
        })?;
        let mapping = Arc::new(mapping);
        let mut log = Self::over(AtomicBuffer::of_mapping(Arc::clone(&mapping))).map_err(|reason| {
            LogError::Refused {
                path: path.to_owned(),
                reason: Box::new(reason),
            }
        })?;
        if let Some(shared) = Arc::get_mut(&mut log.shared) {
            shared.mapping = Some(mapping);
        }
        Ok(log)
    }

    /// Gives a mapped file back, although clones of the log and parts of it are still held: they find an empty log. No
    /// thread may read bytes in place meanwhile. A claim that is open then is taken away from its owner.
    pub fn unmap(&self) {
        if let Some(mapping) = &self.shared.mapping {
            mapping.release();
        }
    }

    /// The same log with the doorbells of its driver, by which its users wake each other.
    #[must_use]
    pub fn with_doorbells(self, doorbells: &Doorbells) -> Self {
        let of_log = LogDoorbells::new(doorbells, self.metadata().correlation_id());
        Self {
            doorbells: Some(Arc::new(of_log)),
            ..self
        }
    }

    /// The doorbells of this log; without any, doorbells that no waiter hears.
    #[inline]
    pub fn doorbells(&self) -> &LogDoorbells {
        static NONE: LazyLock<LogDoorbells> = LazyLock::new(|| LogDoorbells::new(&Doorbells::none(), 0));
        self.doorbells.as_deref().unwrap_or(&NONE)
    }

    /// A log in memory without a file, for this process only.
    pub fn heap(spec: &LogSpec) -> Result<Self, LogError> {
        spec.validate()?;
        let length = log_file_length(spec.term_length, spec.page_size);
        Ok(Self::initialise(AtomicBuffer::allocate(length), spec))
    }

    /// Touches every page of the terms, so that the first use of one does not stop for a page fault. It only
    /// loads, so it may run beside publishers and over a read-only mapping.
    pub fn pre_touch(&self) {
        for term in &self.shared.terms {
            for offset in (0..term.capacity()).step_by(TOUCH_INTERVAL) {
                std::hint::black_box(term.get_i32(offset));
            }
        }
    }

    fn initialise(file: AtomicBuffer, spec: &LogSpec) -> Self {
        let metadata = LogMetadata::new(file.slice(file.capacity() - METADATA_LENGTH, METADATA_LENGTH));
        metadata.initialise(spec);
        Self::assemble(
            split(&file, spec.term_length),
            metadata,
            spec.term_length,
            spec.mtu,
        )
    }

    fn over(file: AtomicBuffer) -> Result<Self, LogError> {
        let length = file.capacity();
        if length < log_file_length(TERM_LENGTH_MIN, METADATA_LENGTH)
            || !length.is_multiple_of(METADATA_LENGTH)
        {
            return Err(LogError::Invalid {
                name: "file_length",
                value: length as i64,
                rule: "must be a multiple of 4096 that holds three terms and the metadata".to_owned(),
            });
        }
        let metadata = LogMetadata::new(file.slice(length - METADATA_LENGTH, METADATA_LENGTH));
        metadata.validate()?;
        let term_length = metadata.term_length() as usize;
        let page_size = metadata.page_size() as usize;
        if length != log_file_length(term_length, page_size) {
            return Err(LogError::Invalid {
                name: "file_length",
                value: length as i64,
                rule: format!(
                    "must be {} for term_length={term_length} page_size={page_size}",
                    log_file_length(term_length, page_size)
                ),
            });
        }
        let mtu = metadata.mtu_length() as usize;
        Ok(Self::assemble(
            split(&file, term_length),
            metadata,
            term_length,
            mtu,
        ))
    }
}

fn split(file: &AtomicBuffer, term_length: usize) -> [AtomicBuffer; PARTITION_COUNT] {
    [0, 1, 2].map(|partition| file.slice(partition * term_length, term_length))
}

impl<M: Memory> LogBuffers<M> {
    /// Puts a log together from parts whose lengths the caller answers for.
    pub(super) fn assemble(
        terms: [M; PARTITION_COUNT],
        metadata: LogMetadata<M>,
        term_length: usize,
        mtu: usize,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                geometry: TermGeometry::new(metadata.initial_term_id(), term_length),
                session_id: metadata.session_id(),
                stream_id: metadata.stream_id(),
                mtu,
                terms,
                metadata,
                mapping: None,
            }),
            doorbells: None,
        }
    }

    /// The term buffer of a partition, 0 to 2.
    #[inline]
    pub fn term(&self, partition: usize) -> &M {
        &self.shared.terms[partition]
    }

    /// The metadata section.
    #[inline]
    pub fn metadata(&self) -> &LogMetadata<M> {
        &self.shared.metadata
    }

    /// Initial term id and term length.
    #[inline]
    pub fn geometry(&self) -> TermGeometry {
        self.shared.geometry
    }

    /// Length of each term.
    #[inline]
    pub fn term_length(&self) -> usize {
        self.shared.geometry.term_length()
    }

    /// log2 of the term length.
    #[inline]
    pub fn position_bits_to_shift(&self) -> u32 {
        self.shared.geometry.position_bits_to_shift()
    }

    /// Id of the first term.
    #[inline]
    pub fn initial_term_id(&self) -> i32 {
        self.shared.geometry.initial_term_id()
    }

    /// Longest frame.
    #[inline]
    pub fn mtu(&self) -> usize {
        self.shared.mtu
    }

    /// Session of the stream.
    #[inline]
    pub fn session_id(&self) -> i32 {
        self.shared.session_id
    }

    /// Stream within the channel.
    #[inline]
    pub fn stream_id(&self) -> i32 {
        self.shared.stream_id
    }

    /// What the header of every frame in a term says of the stream.
    #[inline]
    pub fn identity(&self, term_id: i32) -> TermIdentity {
        TermIdentity {
            session_id: self.shared.session_id,
            stream_id: self.shared.stream_id,
            term_id,
        }
    }

    /// Position up to which space has been claimed.
    #[inline]
    pub fn producer_position(&self) -> i64 {
        let metadata = self.metadata();
        let raw = metadata.raw_tail_acquire(index_by_term_count(metadata.active_term_count_acquire()));
        self.geometry().position(
            raw_tail::term_id(raw),
            raw_tail::term_offset(raw, self.term_length()),
        )
    }

    /// One step of cleaning towards `target`: zeroes the log from `clean_position`, at most to the end of the
    /// term that holds it, moves `clean_position` on, and returns the bytes cleaned.
    ///
    /// Only the driver cleans, and never past the position of the slowest reader; positions come from other
    /// processes, so the caller caps `target` by what has been produced.
    pub fn clean(&self, clean_position: &mut i64, target: i64) -> usize {
        let wanted = target.saturating_sub(*clean_position);
        if *clean_position < 0 || wanted < FRAME_ALIGNMENT as i64 {
            return 0;
        }
        let geometry = self.geometry();
        let offset = geometry.term_offset(*clean_position) & !(FRAME_ALIGNMENT - 1);
        let wanted = wanted as usize & !(FRAME_ALIGNMENT - 1);
        let length = wanted.min(geometry.term_length() - offset);
        zero_range(self.term(geometry.partition(*clean_position)), offset, length);
        *clean_position += length as i64;
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::append::{Append, ConcurrentAppender};
    use crate::log::spec::{LogType, StartPosition};

    fn spec() -> LogSpec {
        LogSpec {
            session_id: 5,
            stream_id: 6,
            initial_term_id: -3,
            mtu: 4096,
            ..LogSpec::default()
        }
    }

    #[test]
    fn two_mappings_of_one_file_are_one_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        for (sparse, page_size) in [(true, 4096), (false, 262_144)] {
            let spec = LogSpec {
                sparse,
                page_size,
                ..spec()
            };
            let ours = LogBuffers::create(&path, &spec).unwrap();
            let theirs = LogBuffers::map(&path).unwrap();
            let reader = LogBuffers::map_with(&path, Access::ReadOnly).unwrap();
            assert_eq!(
                (theirs.mtu(), theirs.term_length(), theirs.initial_term_id()),
                (4096, 65_536, -3)
            );
            assert_eq!((theirs.session_id(), theirs.stream_id()), (5, 6));
            let appended = ConcurrentAppender::new(&theirs).offer_one(&[1; 100], i64::MAX);
            assert_eq!(appended, Ok(Append::Position(160)));
            assert_eq!((ours.producer_position(), reader.producer_position()), (160, 160));
            reader.pre_touch();
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn creating_over_an_existing_file_or_from_a_bad_spec_fails_and_spares_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let bad = LogSpec {
            term_length: 70_000,
            ..spec()
        };
        assert!(matches!(
            LogBuffers::create(&path, &bad),
            Err(LogError::Invalid { value: 70_000, .. })
        ));
        assert!(!path.exists());
        std::fs::write(&path, b"keep").unwrap();
        assert!(matches!(
            LogBuffers::create(&path, &spec()),
            Err(LogError::Io { action: "create", .. })
        ));
        assert_eq!(std::fs::read(&path).unwrap(), b"keep");
    }

    #[test]
    fn a_file_whose_metadata_breaks_a_rule_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        drop(LogBuffers::create(&path, &spec()).unwrap());
        let sound = std::fs::read(&path).unwrap();
        let metadata = sound.len() - METADATA_LENGTH;
        let cases = [
            (264 + 4, 31, "default_frame_header_length=31"),
            (272, 33, "mtu=33"),
            (276, 131_072, "file_length=200704"),
            (276, -65_536, "term_length=-65536"),
            (280, 0, "page_size=0"),
            (280, 1 << 20, "file_length=200704"),
        ];
        for (offset, value, expected) in cases {
            let mut bytes = sound.clone();
            bytes[metadata + offset..][..4].copy_from_slice(&i32::to_le_bytes(value));
            std::fs::write(&path, &bytes).unwrap();
            let error = LogBuffers::map(&path).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("path="), "{error}");
        }
        for length in [1, 4096, sound.len() - 1] {
            std::fs::write(&path, &sound[..length]).unwrap();
            assert!(matches!(LogBuffers::map(&path), Err(LogError::Refused { .. })));
        }
        assert!(matches!(
            LogBuffers::map(&dir.path().join("absent")),
            Err(LogError::Io { action: "map", .. })
        ));
    }

    #[test]
    fn a_cleaning_step_stops_at_the_end_of_a_term_and_at_its_target() {
        let start = Some(StartPosition {
            term_id: -3,
            term_offset: 65_536 - 96,
        });
        let log = LogBuffers::heap(&LogSpec { start, ..spec() }).unwrap();
        let appender = ConcurrentAppender::new(&log);
        for expected in [65_536 - 32, 0, 65_536 + 64] {
            let result = appender.offer_one(&[0xff; 32], i64::MAX).unwrap();
            assert_eq!(result == Append::AdminAction, expected == 0, "{result:?}");
        }
        let mut clean_position = 65_536 - 96;
        assert_eq!(log.clean(&mut clean_position, 65_536 + 33), 96);
        assert_eq!(clean_position, 65_536);
        assert_eq!(
            log.clean(&mut clean_position, 65_536 + 33),
            32,
            "only whole slots"
        );
        assert_eq!(log.clean(&mut clean_position, i64::MAX), 65_504);
        assert_eq!(log.clean(&mut clean_position, i64::MIN), 0);
        let is_zero = |term: &AtomicBuffer| (0..65_536).step_by(8).all(|at| term.get_i64(at) == 0);
        assert!(is_zero(log.term(0)) && is_zero(log.term(1)));
        assert_eq!(clean_position, 2 * 65_536);
    }

    #[test]
    fn an_image_log_knows_no_producer() {
        let log = LogBuffers::heap(&LogSpec {
            log_type: LogType::Image,
            initial_term_id: 0,
            ..spec()
        })
        .unwrap();
        assert_eq!(log.producer_position(), 0);
        assert_eq!(log.metadata().end_of_stream_position_acquire(), i64::MAX);
    }
}
