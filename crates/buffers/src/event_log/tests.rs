use std::thread;

use super::*;

fn event(id: i64, detail: &str) -> Event<&str> {
    Event {
        time_ns: 1_700_000_000_000_000_000 + id,
        kind: "image",
        id,
        parent_id: Some(-7),
        stream_id: Some(1001),
        session_id: None,
        old: "Active",
        new: "Draining",
        reason: "silent",
        detail,
        is_fault: false,
    }
}

fn memory(limit: usize) -> AtomicBuffer {
    AtomicBuffer::allocate(SLOTS_OFFSET + limit * SLOT_LENGTH)
}

fn ids<S: Source>(reader: &mut EventReader<S>) -> Vec<i64> {
    std::iter::from_fn(|| match reader.poll() {
        Polled::Event(_, event) => Some(event.id),
        _ => None,
    })
    .collect()
}

const IDENTITY: WriterIdentity = WriterIdentity {
    pid: 42,
    start_timestamp_ms: 1_700_000_000_000,
};

#[test]
#[cfg_attr(miri, ignore = "Miri knows no mapped files")]
fn what_was_written_is_read_from_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let log = EventLog::create(directory.path(), 8, IDENTITY).unwrap();
    assert!(log.append(&event(3, "aeron:ipc")));
    let (identity, mut reader) = EventReader::open(&directory.path().join(FILE_NAME)).unwrap();
    assert_eq!((identity, reader.limit()), (IDENTITY, 8));
    let Polled::Event(1, read) = reader.poll() else {
        panic!("the first event")
    };
    assert_eq!(
        (read.id, read.parent_id, read.stream_id, read.session_id),
        (3, Some(-7), Some(1001), None)
    );
    let texts = [&read.kind, &read.old, &read.new, &read.reason, &read.detail].map(String::as_str);
    assert_eq!(texts, ["image", "Active", "Draining", "silent", "aeron:ipc"]);
    assert_eq!(reader.poll(), Polled::None);
    log.append(&event(4, ""));
    assert_eq!(ids(&mut reader), [4]);
}

#[test]
fn a_slot_has_the_documented_bytes() {
    let memory = memory(1);
    EventLog::over(memory.clone()).unwrap().append(&event(3, "é"));
    let mut slot = [0; 80];
    memory.get_bytes(SLOTS_OFFSET, &mut slot);
    assert_eq!(
        (slot[0], slot[16], slot[24] as i8, slot[32]),
        (2, 3, -7, (1001 & 0xff) as u8)
    );
    assert_eq!(slot[40..46], [HAS_PARENT | HAS_STREAM, 5, 6, 8, 6, 2]);
    assert_eq!(&slot[48..75], "imageActiveDrainingsilenté".as_bytes());
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no mapped files")]
fn a_log_that_cannot_be_made_whole_leaves_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    EventLog::create(directory.path(), 4, IDENTITY)
        .unwrap()
        .append(&event(1, ""));
    // As if another life stood in the middle of making its own.
    std::fs::create_dir(directory.path().join(UNFINISHED_FILE_NAME)).unwrap();
    EventLog::create(directory.path(), 4, IDENTITY).unwrap_err();
    let (_, mut reader) = EventReader::open(&directory.path().join(FILE_NAME)).unwrap();
    assert_eq!(ids(&mut reader), [1]);
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no mapped files")]
fn a_new_life_begins_with_an_empty_ring_and_old_readers_keep_theirs() {
    let directory = tempfile::tempdir().unwrap();
    EventLog::create(directory.path(), 4, IDENTITY)
        .unwrap()
        .append(&event(1, ""));
    let (_, mut old) = EventReader::open(&directory.path().join(FILE_NAME)).unwrap();
    EventLog::create(directory.path(), 4, IDENTITY).unwrap();
    assert_eq!(
        EventReader::open(&directory.path().join(FILE_NAME))
            .unwrap()
            .1
            .poll(),
        Polled::None
    );
    assert_eq!(ids(&mut old), [1]);
}

#[test]
fn a_reader_that_is_lapped_is_told_how_much_it_missed() {
    let memory = memory(4);
    let log = EventLog::over(memory.clone()).unwrap();
    let mut reader = EventReader::over(memory.clone()).unwrap();
    (1..=3).for_each(|id| assert!(log.append(&event(id, ""))));
    assert_eq!(ids(&mut reader), [1, 2, 3]);
    (4..=13).for_each(|id| assert!(log.append(&event(id, ""))));
    assert_eq!(reader.poll(), Polled::Lost(6));
    assert_eq!(ids(&mut reader), [10, 11, 12, 13]);
    let mut late = EventReader::over(memory).unwrap();
    assert_eq!(ids(&mut late), [10, 11, 12, 13]);
}

#[test]
fn texts_that_are_too_long_are_cut_between_characters() {
    let memory = memory(1);
    let long = "ä".repeat(300);
    EventLog::over(memory.clone()).unwrap().append(&event(1, &long));
    let Polled::Event(_, read) = EventReader::over(memory).unwrap().poll() else {
        panic!("the event")
    };
    assert_eq!(read.reason, "silent");
    assert!(read.detail.len() > 150 && read.detail.chars().all(|letter| letter == 'ä'));
}

#[test]
fn what_a_killed_writer_left_unfinished_is_passed_over_at_the_second_look() {
    let memory = memory(4);
    let log = EventLog::over(memory.clone()).unwrap();
    (1..=3).for_each(|id| assert!(log.append(&event(id, ""))));
    memory.put_i64(SLOTS_OFFSET + SLOT_LENGTH, 2 * 2 - 1);
    let mut reader = EventReader::over(memory).unwrap();
    assert_eq!(ids(&mut reader), [1]);
    assert_eq!(reader.poll(), Polled::Lost(1));
    assert_eq!(ids(&mut reader), [3]);
}

#[test]
fn an_event_is_dropped_and_counted_while_its_slot_is_written_since_the_lap_before() {
    let memory = memory(2);
    let log = EventLog::over(memory.clone()).unwrap();
    (1..=2).for_each(|id| assert!(log.append(&event(id, ""))));
    memory.put_i64(SLOTS_OFFSET, 2 - 1);
    assert!(!log.append(&event(3, "")));
    memory.put_i64(SLOTS_OFFSET, 2);
    assert!(log.append(&event(4, "")));
    let mut reader = EventReader::over(memory).unwrap();
    assert_eq!(reader.dropped_count(), 1);
    assert_eq!(ids(&mut reader), [2, 4]);
}

#[test]
fn threads_that_write_at_once_lose_nothing_and_keep_their_order() {
    const EACH: i64 = if cfg!(miri) { 20 } else { 2_000 };
    let memory = memory(4 * EACH as usize);
    let log = EventLog::over(memory.clone()).unwrap();
    thread::scope(|scope| {
        for writer in 0..4 {
            let log = log.clone();
            scope.spawn(move || {
                (0..EACH).for_each(|index| assert!(log.append(&event(writer * EACH + index, ""))))
            });
        }
    });
    let ids = ids(&mut EventReader::over(memory).unwrap());
    assert_eq!(ids.len() as i64, 4 * EACH);
    for writer in 0..4 {
        let own: Vec<_> = ids.iter().filter(|id| **id / EACH == writer).collect();
        assert!(own.is_sorted());
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no mapped files")]
fn a_file_that_is_no_event_log_is_refused_by_what_is_wrong_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        EventReader::open(&directory.path().join(FILE_NAME))
            .map(drop)
            .unwrap_err()
    };
    assert_eq!(open().kind(), io::ErrorKind::NotFound);
    for (bytes, told) in [
        (vec![0; 10], "too short"),
        (vec![0; 4096], "version=0"),
        ([&[1u8][..], &[0; 4095]].concat(), "tells of 0 events"),
    ] {
        fs::write(directory.path().join(FILE_NAME), bytes).unwrap();
        let error = open();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains(told), "{error}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no mapped files")]
fn a_file_that_another_program_cuts_short_is_an_error_and_kills_no_reader() {
    let directory = tempfile::tempdir().unwrap();
    let log = EventLog::create(directory.path(), 64, IDENTITY).unwrap();
    (1..=40).for_each(|id| assert!(log.append(&event(id, ""))));
    let path = directory.path().join(FILE_NAME);
    let (_, mut reader) = EventReader::open(&path).unwrap();
    assert_eq!(reader.poll(), Polled::Event(1, reader_event(1)));
    // The log's own map of the pages that go is not touched any more.
    drop(log);
    for length in [5000, 0] {
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(length)
            .unwrap();
        let error = reader.drain().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains("cut short"), "{error}");
    }
}

fn reader_event(id: i64) -> Event {
    let wanted = event(id, "");
    Event {
        time_ns: wanted.time_ns,
        kind: wanted.kind.to_owned(),
        id,
        parent_id: wanted.parent_id,
        stream_id: wanted.stream_id,
        session_id: wanted.session_id,
        old: wanted.old.to_owned(),
        new: wanted.new.to_owned(),
        reason: wanted.reason.to_owned(),
        detail: String::new(),
        is_fault: false,
    }
}
