//! The event log of a driver or an archive, as a reader finds it.
//!
//! ```text
//! input := selector: u8, bytes of the file from its start
//! selector even: version and number of slots are set to the right ones, so that the rest is looked at
//! ```

use headrace_buffers::event_log::{Event, EventLog, EventReader, FILE_NAME, SLOT_LENGTH, WriterIdentity};

use crate::file;

const HEADER_LENGTH: usize = 128;

/// Opens the file and reads it to its end, twice, as one that waits for unfinished events does.
pub fn run(input: &[u8]) {
    let [selector, bytes @ ..] = input else {
        return;
    };
    let slot_count = bytes.len().saturating_sub(HEADER_LENGTH) / SLOT_LENGTH;
    let (version, count) = (1_i32.to_le_bytes(), (slot_count as i64).to_le_bytes());
    let mut parts = vec![(0, bytes)];
    if selector % 2 == 0 && slot_count > 0 {
        parts.extend([(0, &version[..]), (24, &count[..])]);
    }
    let file = file::with_parts(bytes.len() as u64, &parts);
    let Ok((_, mut reader)) = EventReader::open(file.path()) else {
        return;
    };
    for _ in 0..2 {
        let (events, lost_count) = reader.drain().expect("no other program cuts the file");
        assert!(events.len() <= slot_count + 1 && lost_count >= 0);
    }
}

/// A ring that is not full, and one that was lapped.
pub fn seeds() -> Vec<Vec<u8>> {
    [2, 9]
        .into_iter()
        .flat_map(|event_count| {
            let directory = tempfile::tempdir().expect("a new directory");
            let identity = WriterIdentity {
                pid: 1,
                start_timestamp_ms: 2,
            };
            let log = EventLog::create(directory.path(), 4, identity).expect("a small event log");
            for id in 0..event_count {
                log.append(&Event {
                    id,
                    kind: "image",
                    old: "Active",
                    new: "Draining",
                    reason: "silent",
                    detail: "aeron:ipc",
                    ..Event::default()
                });
            }
            let bytes = std::fs::read(directory.path().join(FILE_NAME)).expect("the file just made");
            [0, 1].map(|selector| [&[selector], &bytes[..]].concat())
        })
        .collect()
}
