//! The command-and-control file of a driver, as a client or a tool finds it.
//!
//! ```text
//! input := selector: u8, length in KiB: u8, bytes of the file from its start
//! selector even: the version is set to the right one, so that the rest is looked at
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use headrace_buffers::broadcast::Receiver;
use headrace_buffers::cnc::{CNC_VERSION, CncFile, CncIdentity, CncLengths};
use headrace_buffers::counters::CountersReader;
use headrace_buffers::ring::{ManyToOneRing, ReadAction};
use headrace_buffers::{broadcast, error_log, ring};
use headrace_sys::Access;

use crate::file;

const LENGTHS: CncLengths = CncLengths {
    to_driver: 4096 + ring::TRAILER_LENGTH,
    to_clients: 4096 + broadcast::TRAILER_LENGTH,
    counters_values: 1024,
    error_log: 4096,
};

/// Maps the file and reads each of its sections once.
pub fn run(input: &[u8]) {
    let [selector, length_kib, bytes @ ..] = input else {
        return;
    };
    let length = (u64::from(*length_kib) * 1024).max(bytes.len() as u64);
    let version = CNC_VERSION.to_le_bytes();
    let mut parts = vec![(0, bytes)];
    if selector % 2 == 0 && length >= version.len() as u64 {
        parts.push((0, &version[..]));
    }
    let file = file::with_parts(length, &parts);
    // Read and write, because reading a damaged ring repairs it.
    let Ok(cnc) = CncFile::map(file.path(), Access::ReadWrite) else {
        return;
    };
    let counters = CountersReader::new(cnc.counters_metadata(), cnc.counters_values());
    let mut seen = 0;
    counters.for_each(|record| {
        assert!(record.id >= 0 && record.id < counters.capacity() as i32);
        seen += 1;
    });
    assert!(seen <= counters.capacity());
    let _ = error_log::read(&cnc.error_log(), 0);
    if let Ok(mut ring) = ManyToOneRing::new(cnc.to_driver()) {
        let _ = ring.read(16, |_, _| ReadAction::Continue);
    }
    if let Ok(mut receiver) = Receiver::new(cnc.to_clients()) {
        let _ = receiver.receive(&mut Vec::new());
    }
}

/// A file as a driver makes it, whole and cut off.
pub fn seeds() -> Vec<Vec<u8>> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = format!(
        "headrace-fuzz-{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir(&directory).expect("a new directory");
    let identity = CncIdentity {
        client_liveness_timeout_ns: 1,
        start_timestamp_ms: 2,
        pid: 3,
        page_size: 4096,
    };
    let cnc = CncFile::create(&directory, &LENGTHS, &identity).expect("a small CnC file");
    let ring = ManyToOneRing::new(cnc.to_driver()).expect("its own section");
    ring.try_write(6, &[0; 16]).expect("a message that fits");
    cnc.signal_ready().expect("a mapped file");
    let bytes = std::fs::read(directory.join("cnc.dat")).expect("the file just made");
    std::fs::remove_dir_all(&directory).expect("its own directory");
    let seed = |selector: u8, bytes: &[u8]| [&[selector, 0], bytes].concat();
    vec![
        seed(1, &bytes),
        seed(0, &bytes),
        seed(0, &bytes[..512]),
        seed(1, &bytes[..4096]),
    ]
}
