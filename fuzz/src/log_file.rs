//! A log that another process made or writes to.
//!
//! ```text
//! input := selector: u8, metadata from its start: up to METADATA_LENGTH bytes, bytes of the first term
//! selector even: the metadata is patched so that it passes the checks, and the rest is looked at
//! ```

use headrace_buffers::AtomicBuffer;
use headrace_buffers::log::descriptor::{
    DEFAULT_FRAME_HEADER_LENGTH_OFFSET, METADATA_LENGTH, MTU_LENGTH_OFFSET, PAGE_SIZE_OFFSET,
    TERM_LENGTH_OFFSET,
};
use headrace_buffers::log::{
    ConcurrentAppender, ExclusiveAppender, LogBuffers, LogSpec, gap, read, rebuild, scan, unblock,
};

use crate::file;

const TERM_LENGTH: usize = 64 * 1024;
const FILE_LENGTH: usize = 3 * TERM_LENGTH + METADATA_LENGTH;

/// Maps the log and does to it once what drivers and clients do.
pub fn run(input: &[u8]) {
    let [selector, rest @ ..] = input else {
        return;
    };
    let (metadata, term) = rest.split_at(rest.len().min(METADATA_LENGTH));
    let mut metadata = metadata.to_vec();
    if selector % 2 == 0 {
        patch(&mut metadata);
    }
    let term = &term[..term.len().min(TERM_LENGTH)];
    let parts = [(0, term), ((FILE_LENGTH - METADATA_LENGTH) as u64, &metadata[..])];
    let file = file::with_parts(FILE_LENGTH as u64, &parts);
    let Ok(log) = LogBuffers::map(file.path()) else {
        return;
    };
    read_all(&log);
    let position = log.producer_position();
    if position >= 0 {
        unblock::unblock(&log, position);
    }
    unblock::unblock(&log, 0);
    // A publisher may come upon a log that another one damaged.
    let _ = ConcurrentAppender::new(&log).offer(&[&[0; 2000]], i64::MAX);
    if let Ok(mut appender) = ExclusiveAppender::new(&log) {
        let _ = appender.offer(&[&[0; 2000]], i64::MAX);
    }
    let mut clean_position = 0;
    log.clean(&mut clean_position, TERM_LENGTH as i64);
    assert!(clean_position <= TERM_LENGTH as i64);
}

fn read_all(log: &LogBuffers) {
    let term: &AtomicBuffer = log.term(0);
    let mut offset = 0;
    read::read(
        term,
        log.geometry(),
        &mut offset,
        TERM_LENGTH,
        usize::MAX,
        |payload, header| {
            assert!(payload.len() + 32 <= TERM_LENGTH);
            let _ = (header.position(), header.to_frame_header());
        },
    );
    assert!(offset <= TERM_LENGTH);
    let mut datagrams = Vec::new();
    let found = scan::scan_datagrams(term, 0, TERM_LENGTH, log.mtu(), TERM_LENGTH, &mut datagrams);
    assert!(found.advance <= TERM_LENGTH);
    assert!(
        datagrams
            .iter()
            .all(|datagram| datagram.length <= log.mtu() && datagram.length > 0)
    );
    let scan = gap::scan_for_gap(term, log.initial_term_id(), 0, TERM_LENGTH);
    assert!(scan.rebuild_offset <= TERM_LENGTH);
    if let Some(gap) = scan.gap {
        rebuild::fill_gap(term, log.identity(gap.term_id), gap.offset, gap.length);
    }
}

/// Sets the fields that are checked against each other and the file's length.
fn patch(metadata: &mut Vec<u8>) {
    metadata.resize(metadata.len().max(PAGE_SIZE_OFFSET + 4), 0);
    let fields = [
        (DEFAULT_FRAME_HEADER_LENGTH_OFFSET, 32),
        (MTU_LENGTH_OFFSET, 1408),
        (TERM_LENGTH_OFFSET, TERM_LENGTH as i32),
        (PAGE_SIZE_OFFSET, 4096),
    ];
    for (offset, value) in fields {
        metadata[offset..offset + 4].copy_from_slice(&i32::to_le_bytes(value));
    }
}

/// A log with messages in it.
pub fn seeds() -> Vec<Vec<u8>> {
    let spec = LogSpec {
        session_id: 1,
        stream_id: 2,
        initial_term_id: 3,
        ..LogSpec::default()
    };
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("1.logbuffer");
    let log = LogBuffers::create(&path, &spec).expect("a small log");
    let appender = ConcurrentAppender::new(&log);
    for length in [0, 1, 100, 1376] {
        appender
            .offer(&[&vec![7; length]], i64::MAX)
            .expect("a message that fits");
    }
    let file = std::fs::read(&path).expect("the file just made");
    let (terms, metadata) = file.split_at(file.len() - METADATA_LENGTH);
    let seed = |selector: u8, metadata: &[u8], term: &[u8]| [&[selector], metadata, term].concat();
    vec![
        seed(1, metadata, &terms[..2048]),
        seed(0, metadata, &terms[..2048]),
        seed(0, &metadata[..600], &[]),
    ]
}
