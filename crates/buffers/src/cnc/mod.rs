//! The command-and-control file: how a client finds the driver of a directory.
//!
//! ```text
//! 0                128          back to back                                           page aligned
//! | header         | to-driver ring | to-clients broadcast | counters metadata | counters values | error log |
//!   0 i32 version, 0 while not ready      12 i32 counters metadata length     24 i64 client liveness timeout, ns
//!   4 i32 to-driver ring length           16 i32 counters values length       32 i64 start timestamp, epoch ms
//!   8 i32 to-clients broadcast length     20 i32 error log length             40 i64 driver pid
//!                                                                             48 i32 file page size
//! ```
//!
//! The driver writes everything else first and the version last; a client that sees a version may use the rest.

use std::io;
use std::path::Path;
use std::sync::Arc;

use headrace_sys::{Access, MappedFile, check_is_file};

use crate::AtomicBuffer;
use crate::doorbell::DriverIdentity;
use crate::memory::Memory;
use crate::{align, broadcast, counters, ring};

/// Name of the file in the driver's directory.
pub const FILE_NAME: &str = "cnc.dat";
/// Version of the layout: 0.2.0, packed.
pub const CNC_VERSION: i32 = 2 << 8;
/// Length of the header.
pub const HEADER_LENGTH: usize = 128;
/// Page size of files whose driver did not say.
pub const PAGE_SIZE_DEFAULT: i32 = 4096;
/// Largest page size.
pub const PAGE_SIZE_MAX: i32 = 1 << 30;

const VERSION_OFFSET: usize = 0;
const LENGTHS_OFFSET: usize = 4;
const CLIENT_LIVENESS_TIMEOUT_OFFSET: usize = 24;
const START_TIMESTAMP_OFFSET: usize = 32;
const PID_OFFSET: usize = 40;
const PAGE_SIZE_OFFSET: usize = 48;

/// How many bytes of metadata there are for each byte of values.
const METADATA_PER_VALUE: usize = counters::METADATA_LENGTH / counters::VALUE_LENGTH;

/// Lengths of the sections, each including its trailer. The counters metadata follow from the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CncLengths {
    /// Ring of commands from clients.
    pub to_driver: usize,
    /// Broadcast of events to clients.
    pub to_clients: usize,
    /// Values of counters.
    pub counters_values: usize,
    /// Distinct errors.
    pub error_log: usize,
}

impl Default for CncLengths {
    fn default() -> Self {
        Self {
            to_driver: (1 << 20) + ring::TRAILER_LENGTH,
            to_clients: (1 << 20) + broadcast::TRAILER_LENGTH,
            counters_values: 8 << 20,
            error_log: 4 << 20,
        }
    }
}

impl CncLengths {
    /// Length of the counters metadata.
    pub fn counters_metadata(&self) -> usize {
        self.counters_values.saturating_mul(METADATA_PER_VALUE)
    }

    /// Length of the file that holds the sections.
    pub fn file_length(&self, page_size: usize) -> usize {
        align(self.total(), page_size)
    }

    /// Sections in the order of the file.
    fn sections(&self) -> [(&'static str, usize); 5] {
        [
            ("to_driver", self.to_driver),
            ("to_clients", self.to_clients),
            ("counters_metadata", self.counters_metadata()),
            ("counters_values", self.counters_values),
            ("error_log", self.error_log),
        ]
    }

    /// Length of header and sections.
    pub fn total(&self) -> usize {
        let sections = self.sections().into_iter();
        sections.fold(HEADER_LENGTH, |total, (_, length)| total.saturating_add(length))
    }

    /// Length of header and sections, if the sections make sense.
    fn check(&self) -> Result<usize, CncError> {
        let rings = [
            (
                "to_driver",
                self.to_driver,
                ring::TRAILER_LENGTH,
                ring::CAPACITY_MIN,
            ),
            (
                "to_clients",
                self.to_clients,
                broadcast::TRAILER_LENGTH,
                broadcast::CAPACITY_MIN,
            ),
        ];
        for (section, length, trailer, minimum) in rings {
            let capacity = length.saturating_sub(trailer);
            if !capacity.is_power_of_two() || capacity < minimum {
                return Err(CncError::SectionLength { section, length });
            }
        }
        let mut total = HEADER_LENGTH;
        for (section, length) in self.sections() {
            total = total.saturating_add(length);
            // Sections start where the one before ends, and hold 64-bit words; the sum is a signed 32-bit length.
            if length == 0 || length % 8 != 0 || total > i32::MAX as usize {
                return Err(CncError::SectionLength { section, length });
            }
        }
        Ok(total)
    }
}

/// What a driver says about itself in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CncIdentity {
    /// After how long a silent client is taken for dead.
    pub client_liveness_timeout_ns: i64,
    /// When the driver started, epoch ms.
    pub start_timestamp_ms: i64,
    /// Process id of the driver.
    pub pid: i64,
    /// Page size to which the driver aligns its files.
    pub page_size: i32,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CncError {
    /// The operating system refused.
    #[error("cannot map the CnC file: {0}")]
    Io(#[from] io::Error),
    /// The file ends before its sections do; a driver may still be making it.
    #[error("CnC file is too short: length={length} required={required}")]
    TooShort {
        /// Length of the file.
        length: usize,
        /// Least length it must have.
        required: usize,
    },
    /// The driver has not finished starting.
    #[error("CnC file is not ready: version=0")]
    NotReady,
    /// The file was made by a driver that lays it out otherwise.
    #[error(
        "CnC file has an unsupported version: version={} expected={}",
        version_text(*version),
        version_text(CNC_VERSION)
    )]
    ForeignVersion {
        /// Version found, packed.
        version: i32,
    },
    /// A section cannot have this length.
    #[error("CnC section length is invalid: section={section} length={length}")]
    SectionLength {
        /// The section.
        section: &'static str,
        /// Length found or asked for.
        length: usize,
    },
    /// Pages cannot have this size.
    #[error("CnC page size is invalid: page_size={page_size}")]
    PageSize {
        /// Page size found or asked for.
        page_size: i32,
    },
}

fn version_text(version: i32) -> String {
    let [_, major, minor, patch] = version.to_be_bytes();
    format!("{major}.{minor}.{patch}")
}

/// A mapped command-and-control file.
#[derive(Debug, Clone)]
pub struct CncFile {
    mapping: Arc<MappedFile>,
    whole: AtomicBuffer,
    lengths: CncLengths,
}

impl CncFile {
    /// Which driver made the file.
    pub fn driver_identity(&self) -> DriverIdentity {
        DriverIdentity {
            pid: self.whole.get_i64(PID_OFFSET),
            start_timestamp_ms: self.whole.get_i64(START_TIMESTAMP_OFFSET),
        }
    }

    /// Makes the file in a driver's directory, where none may be, with everything in its header but the version.
    /// Its blocks are reserved now: without room this fails, and no later store of driver or clients does.
    pub fn create(directory: &Path, lengths: &CncLengths, identity: &CncIdentity) -> Result<Self, CncError> {
        check_page_size(identity.page_size)?;
        let file_length = align(lengths.check()?, identity.page_size as usize);
        if file_length > i32::MAX as usize {
            let (section, length) = ("file", file_length);
            return Err(CncError::SectionLength { section, length });
        }
        let path = directory.join(FILE_NAME);
        let mapping = Arc::new(MappedFile::create(&path, file_length as u64, true)?);
        let file = Self {
            whole: AtomicBuffer::of_mapping(Arc::clone(&mapping)),
            mapping,
            lengths: *lengths,
        };
        for (index, (_, length)) in lengths.sections().iter().enumerate() {
            file.whole.put_i32(LENGTHS_OFFSET + 4 * index, *length as i32);
        }
        file.whole.put_i64(
            CLIENT_LIVENESS_TIMEOUT_OFFSET,
            identity.client_liveness_timeout_ns,
        );
        file.whole
            .put_i64(START_TIMESTAMP_OFFSET, identity.start_timestamp_ms);
        file.whole.put_i64(PID_OFFSET, identity.pid);
        file.whole.put_i32(PAGE_SIZE_OFFSET, identity.page_size);
        Ok(file)
    }

    /// Maps an existing file and checks all of its header. [`CncError::NotReady`] and [`CncError::TooShort`] are
    /// worth another try.
    pub fn map(path: &Path, access: Access) -> Result<Self, CncError> {
        let metadata = std::fs::metadata(path)?;
        check_is_file(&metadata)?;
        let length = metadata.len();
        if length < HEADER_LENGTH as u64 {
            return Err(CncError::TooShort {
                length: length as usize,
                required: HEADER_LENGTH,
            });
        }
        let mapping = Arc::new(MappedFile::open(path, access)?);
        let whole = AtomicBuffer::of_mapping(Arc::clone(&mapping));
        let lengths = check_header(&whole)?;
        Ok(Self {
            mapping,
            whole,
            lengths,
        })
    }

    /// Lengths of the sections.
    pub fn lengths(&self) -> &CncLengths {
        &self.lengths
    }

    /// Ring of commands from clients, trailer included.
    pub fn to_driver(&self) -> AtomicBuffer {
        self.section(0)
    }

    /// Broadcast of events to clients, trailer included.
    pub fn to_clients(&self) -> AtomicBuffer {
        self.section(1)
    }

    /// Metadata of counters.
    pub fn counters_metadata(&self) -> AtomicBuffer {
        self.section(2)
    }

    /// Values of counters.
    pub fn counters_values(&self) -> AtomicBuffer {
        self.section(3)
    }

    /// Distinct errors of the driver.
    pub fn error_log(&self) -> AtomicBuffer {
        self.section(4)
    }

    /// The version, packed; 0 while the driver is starting.
    pub fn version_acquire(&self) -> i32 {
        self.whole.get_i32_acquire(VERSION_OFFSET)
    }

    /// Tells clients that everything is in place, and writes it to the file.
    pub fn signal_ready(&self) -> io::Result<()> {
        // Pairs with the acquire of the version in `map`.
        self.whole.put_i32_release(VERSION_OFFSET, CNC_VERSION);
        self.flush()
    }

    /// Writes changed pages to the file and waits for it.
    pub fn flush(&self) -> io::Result<()> {
        self.mapping.flush()
    }

    /// After how long a silent client is taken for dead.
    pub fn client_liveness_timeout_ns(&self) -> i64 {
        self.whole.get_i64(CLIENT_LIVENESS_TIMEOUT_OFFSET)
    }

    /// When the driver started, epoch ms.
    pub fn start_timestamp_ms(&self) -> i64 {
        self.whole.get_i64(START_TIMESTAMP_OFFSET)
    }

    /// Process id of the driver.
    pub fn pid(&self) -> i64 {
        self.whole.get_i64(PID_OFFSET)
    }

    /// Page size to which the driver aligns its files.
    pub fn page_size(&self) -> i32 {
        match self.whole.get_i32(PAGE_SIZE_OFFSET) {
            0 => PAGE_SIZE_DEFAULT,
            page_size => page_size,
        }
    }

    /// Length of the file.
    pub fn file_length(&self) -> usize {
        self.mapping.len()
    }

    fn section(&self, index: usize) -> AtomicBuffer {
        let sections = self.lengths.sections();
        let before: usize = sections[..index].iter().map(|(_, length)| length).sum();
        self.whole.slice(HEADER_LENGTH + before, sections[index].1)
    }
}

fn check_page_size(page_size: i32) -> Result<(), CncError> {
    let fits = (PAGE_SIZE_DEFAULT..=PAGE_SIZE_MAX).contains(&page_size) && page_size & (page_size - 1) == 0;
    if fits {
        Ok(())
    } else {
        Err(CncError::PageSize { page_size })
    }
}

/// The section lengths of a mapped file, if all of its header can be relied on.
fn check_header(whole: &AtomicBuffer) -> Result<CncLengths, CncError> {
    let length = whole.capacity();
    if length < HEADER_LENGTH {
        let required = HEADER_LENGTH;
        return Err(CncError::TooShort { length, required });
    }
    // Pairs with the release in `signal_ready`.
    match whole.get_i32_acquire(VERSION_OFFSET) {
        0 => return Err(CncError::NotReady),
        version if version >> 16 != CNC_VERSION >> 16 => return Err(CncError::ForeignVersion { version }),
        _ => {}
    }
    // Negative lengths become huge ones, which are refused.
    let stored = |index: usize| whole.get_i32(LENGTHS_OFFSET + 4 * index) as isize as usize;
    let lengths = CncLengths {
        to_driver: stored(0),
        to_clients: stored(1),
        counters_values: stored(3),
        error_log: stored(4),
    };
    if stored(2) != lengths.counters_metadata() {
        let (section, length) = ("counters_metadata", stored(2));
        return Err(CncError::SectionLength { section, length });
    }
    let required = lengths.check()?;
    match whole.get_i32(PAGE_SIZE_OFFSET) {
        0 => {}
        page_size => check_page_size(page_size)?,
    }
    if length < required {
        return Err(CncError::TooShort { length, required });
    }
    Ok(lengths)
}

#[cfg(test)]
mod tests;
