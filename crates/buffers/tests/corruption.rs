//! Garbage in shared memory ends in errors, skipped records or nonsense values; never in a panic or a hang.

use headrace_buffers::broadcast::{self, Receiver, Transmitter};
use headrace_buffers::cnc::{self, CncFile, CncIdentity, CncLengths};
use headrace_buffers::counters::{CountersManager, CountersReader, METADATA_LENGTH, VALUE_LENGTH};
use headrace_buffers::error_log::{self, DistinctErrorLog};
use headrace_buffers::event_log::{Event, EventLog, EventReader, SLOT_LENGTH};
use headrace_buffers::loss_report::{self, LossReport};
use headrace_buffers::ring::{self, ManyToOneRing, ReadAction};
use headrace_buffers::{AtomicBuffer, Memory};
use headrace_sys::Access;
use proptest::prelude::*;

/// Words that look like lengths, positions and states more often than chance would have them.
fn word() -> impl Strategy<Value = i32> {
    prop_oneof![
        4 => Just(0),
        4 => (0..40i32).prop_map(|units| units * 8),
        2 => -300..300i32,
        1 => Just(-1),
        1 => prop_oneof![Just(i32::MAX), Just(i32::MIN), Just(i32::MAX - 7)],
        1 => any::<i32>(),
    ]
}

fn garbage(length: usize) -> impl Strategy<Value = AtomicBuffer> {
    prop::collection::vec(word(), length / 4).prop_map(move |words| {
        let memory = AtomicBuffer::allocate(length);
        for (index, word) in words.into_iter().enumerate() {
            memory.put_i32(4 * index, word);
        }
        memory
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_ring_survives(memory in garbage(256 + ring::TRAILER_LENGTH), limit in 0..20usize) {
        let mut ring = ManyToOneRing::new(memory).unwrap();
        for turn in 0..20 {
            let result = ring.read(limit, |_, message| {
                assert!(message.len() <= 256 - 8);
                if message.len() % 5 == 4 { ReadAction::Abort } else { ReadAction::Continue }
            });
            if let Ok(count) = result {
                prop_assert!(count <= limit);
            }
            // Errors are as welcome as success here.
            let _ = ring.try_write(turn + 1, &[7; 32][..turn as usize]);
            ring.unblock();
            ring.next_correlation_id();
        }
    }

    /// Only records are damaged, by a client gone wild; the driver must get the ring going again.
    #[test]
    fn a_ring_with_intact_positions_recovers(
        words in prop::collection::vec(word(), 64),
        written in prop::collection::vec(0..32usize, 0..20),
    ) {
        let memory = AtomicBuffer::allocate(256 + ring::TRAILER_LENGTH);
        let mut ring = ManyToOneRing::new(memory.clone()).unwrap();
        for length in written {
            ring.try_write(1, &[7; 32][..length]).unwrap();
        }
        for (index, word) in words.into_iter().enumerate() {
            memory.put_i32(4 * index, word);
        }
        // Each turn reads, discards or unblocks at least one record, so the turns needed are bounded.
        for _ in 0..2 * 256 / 8 {
            let before = ring.consumer_position();
            let _ = ring.read(usize::MAX, |_, _| ReadAction::Continue);
            if ring.consumer_position() == before && !ring.unblock() {
                break;
            }
        }
        prop_assert!(ring.consumer_position() <= ring.producer_position());
        let stuck = ring.consumer_position() < ring.producer_position();
        let record_is_free = memory.get_i32(ring.consumer_position() as usize % 256) == 0;
        // A record that no producer has begun to fill cannot be told from a slow producer's.
        prop_assert!(!stuck || record_is_free);
    }

    #[test]
    fn a_broadcast_survives(memory in garbage(256 + broadcast::TRAILER_LENGTH)) {
        let mut receiver = Receiver::new(memory.clone()).unwrap();
        let mut transmitter = Transmitter::new(memory).unwrap();
        let mut scratch = Vec::new();
        for length in 0..20 {
            let _ = receiver.receive(&mut scratch);
            prop_assert!(scratch.len() <= 256 - 8);
            let _ = transmitter.transmit(1, &[7; 32][..length]);
        }
    }

    #[test]
    fn counters_survive(
        metadata in garbage(4 * METADATA_LENGTH),
        values in garbage(4 * VALUE_LENGTH),
        ids in prop::collection::vec(prop_oneof![-2..6i32, any::<i32>()], 1..8),
    ) {
        let reader = CountersReader::new(metadata.clone(), values.clone());
        reader.for_each(|record| assert!((0..4).contains(&record.id) && record.label.chars().count() <= 380));
        for id in &ids {
            let known = (0..4).contains(id);
            prop_assert_eq!(reader.state(*id).is_some(), known);
            prop_assert_eq!(reader.value(*id).is_some(), known);
            prop_assert_eq!(reader.counter(*id).is_some(), known);
            prop_assert_eq!(reader.append_to_label(*id, "text"), known);
            reader.record(*id);
            reader.find(*id, 0);
        }
        let mut manager = CountersManager::new(metadata, values, 10);
        for id in ids {
            let _ = manager.allocate(id, &[1; 112], "label", 0);
            manager.append_to_label(id, "text");
            manager.free(id, 0);
        }
    }

    #[test]
    fn an_error_log_survives(memory in garbage(512), since_ms in any::<i64>()) {
        error_log::read(&memory, since_ms);
        let log = DistinctErrorLog::new(memory.clone());
        log.record(1, "text", 1);
        log.record(1, "text", 2);
        error_log::read(&memory, i64::MIN);
    }

    #[test]
    fn a_loss_report_survives(memory in garbage(512)) {
        loss_report::read(&memory);
        let mut report = LossReport::new(memory.clone());
        if let Some(entry) = report.create_entry(1, 1, 1, 1, "channel", "source") {
            entry.observe(i64::MAX, 2);
        }
        loss_report::read(&memory);
    }

    /// Stamps that may be those of whole and of unfinished events, among others.
    #[test]
    fn an_event_log_survives(
        memory in garbage(128 + 4 * SLOT_LENGTH),
        stamps in prop::collection::vec(prop_oneof![0..24i64, any::<i64>()], 4),
        last in prop_oneof![0..12i64, any::<i64>(), Just(i64::MAX), Just(i64::MIN)],
    ) {
        memory.put_i64(64, last);
        for (index, stamp) in stamps.into_iter().enumerate() {
            memory.put_i64(128 + index * SLOT_LENGTH, stamp);
        }
        let mut reader = EventReader::over(memory.clone()).unwrap();
        let log = EventLog::over(memory).unwrap();
        for id in 0..20 {
            let (events, lost_count) = reader.drain().unwrap();
            prop_assert!(events.len() <= 5 && lost_count >= 0);
            let event = Event { id, kind: "image", new: "Active", ..Event::default() };
            let _ = log.append(&event);
            reader.poll();
        }
    }

    #[test]
    fn a_cnc_file_is_refused_or_whole(
        damage in prop::collection::vec((0..13usize, word()), 0..4),
        length in prop_oneof![Just(usize::MAX), 0..20_000usize],
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(cnc::FILE_NAME);
        let lengths = CncLengths {
            to_driver: 1024 + ring::TRAILER_LENGTH,
            to_clients: 1024 + broadcast::TRAILER_LENGTH,
            counters_values: 1024,
            error_log: 4096,
        };
        let identity = CncIdentity {
            client_liveness_timeout_ns: 1,
            start_timestamp_ms: 2,
            pid: 3,
            page_size: 4096,
        };
        CncFile::create(directory.path(), &lengths, &identity).unwrap().signal_ready().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        for (index, word) in &damage {
            bytes[4 * index..4 * index + 4].copy_from_slice(&word.to_ne_bytes());
        }
        bytes.truncate(length);
        std::fs::write(&path, bytes).unwrap();
        if let Ok(file) = CncFile::map(&path, Access::ReadOnly) {
            prop_assert!(ManyToOneRing::new(file.to_driver()).is_ok());
            prop_assert!(Receiver::new(file.to_clients()).is_ok());
            let reader = CountersReader::new(file.counters_metadata(), file.counters_values());
            reader.for_each(drop);
            error_log::read(&file.error_log(), 0);
            prop_assert!(file.page_size() > 0);
        } else {
            prop_assert!(!damage.is_empty() || length < file_length(&lengths));
        }
    }
}

fn file_length(lengths: &CncLengths) -> usize {
    let sections = lengths.to_driver + lengths.to_clients + lengths.counters_metadata();
    cnc::HEADER_LENGTH + sections + lengths.counters_values + lengths.error_log
}
