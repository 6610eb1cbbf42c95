//! Recordings written frame by frame and read back, also when they are damaged or still growing.

use std::fs;
use std::path::{Path, PathBuf};

use headrace_buffers::align;
use headrace_buffers::log::frame::{FRAME_ALIGNMENT, HEADER_LENGTH};
use headrace_recording::{
    Blocks, Checksum, FrameWalk, Incomplete, MessageFilter, Range, RecordingError, RecordingReader,
    RecordingShape, Segments, Walked,
};
use tempfile::TempDir;

const TERM_LENGTH: i32 = 64 * 1024;
const SEGMENT_LENGTH: i32 = 128 * 1024;
const STREAM_ID: i32 = 1001;
const INITIAL_TERM_ID: i32 = 7;

/// Segment files of one recording, written frame by frame.
struct Recording {
    directory: TempDir,
    start: i64,
    bytes: Vec<u8>,
}

impl Recording {
    fn new(start: i64) -> Self {
        Self {
            directory: TempDir::new().expect("a directory"),
            start,
            bytes: vec![0; (start % i64::from(TERM_LENGTH)) as usize],
        }
    }

    fn base(&self) -> i64 {
        self.start - self.start % i64::from(TERM_LENGTH)
    }

    fn end(&self) -> i64 {
        self.base() + self.bytes.len() as i64
    }

    fn frame(&mut self, kind: u16, flags: u8, session_id: i32, reserved_value: i64, payload: &[u8]) {
        let position = self.end();
        let length = HEADER_LENGTH + payload.len();
        self.bytes.extend((length as i32).to_le_bytes());
        self.bytes.extend([0, flags]);
        self.bytes.extend(kind.to_le_bytes());
        let term_id = INITIAL_TERM_ID + (position / i64::from(TERM_LENGTH)) as i32;
        for value in [
            (position % i64::from(TERM_LENGTH)) as i32,
            session_id,
            STREAM_ID,
            term_id,
        ] {
            self.bytes.extend(value.to_le_bytes());
        }
        self.bytes.extend(reserved_value.to_le_bytes());
        self.bytes.extend(payload);
        let padded = align(self.bytes.len(), FRAME_ALIGNMENT);
        self.bytes.resize(padded, 0);
    }

    fn message(&mut self, payload: &[u8], mtu: usize) {
        let count = payload.len().div_ceil(mtu).max(1);
        let total: usize = (0..count)
            .map(|index| {
                align(
                    HEADER_LENGTH + payload.len().min((index + 1) * mtu) - index * mtu,
                    32,
                )
            })
            .sum();
        let room = TERM_LENGTH as usize - self.bytes.len() % TERM_LENGTH as usize;
        if total > room {
            self.frame(0, 0xC0, 1, 0, &vec![0; room - HEADER_LENGTH]);
        }
        for index in 0..count {
            let flags = (u8::from(index == 0) * 0x80) | (u8::from(index + 1 == count) * 0x40);
            let part = &payload[index * mtu..payload.len().min((index + 1) * mtu)];
            self.frame(1, flags, 1, payload.len() as i64, part);
        }
    }

    fn write(&self) -> Written {
        for (index, chunk) in self.bytes.chunks(SEGMENT_LENGTH as usize).enumerate() {
            let mut chunk = chunk.to_vec();
            chunk.resize(SEGMENT_LENGTH as usize, 0);
            fs::write(self.segment(index), chunk).expect("written");
        }
        Written {
            directory: self.directory.path().to_path_buf(),
            segment_length: SEGMENT_LENGTH,
            shape: self.shape(),
        }
    }

    fn shape(&self) -> RecordingShape {
        RecordingShape {
            recording_id: 3,
            start_position: self.start,
            initial_term_id: INITIAL_TERM_ID,
            term_length: TERM_LENGTH,
            stream_id: STREAM_ID,
            session_id: None,
            checksum: None,
        }
    }

    /// The same by an archive that puts checksums into frames.
    fn write_with_checksums(&mut self, kind: Checksum) -> Written {
        let first = (self.start - self.base()) as usize;
        kind.put(&mut self.bytes[first..]);
        let mut written = self.write();
        written.shape.checksum = Some(kind);
        written.shape.session_id = Some(42);
        written
    }

    fn segment(&self, index: usize) -> std::path::PathBuf {
        let base = self.base() + index as i64 * i64::from(SEGMENT_LENGTH);
        self.directory.path().join(format!("3-{base}.rec"))
    }
}

/// What is known of a recording in files.
#[derive(Clone)]
struct Written {
    directory: PathBuf,
    segment_length: i32,
    shape: RecordingShape,
}

impl Written {
    fn reader(&self, range: Range, filter: MessageFilter) -> Result<RecordingReader, RecordingError> {
        let segments = Segments::new(self.directory.clone(), self.segment_length, &self.shape)?;
        RecordingReader::new(self.shape.clone(), segments, range, filter)
    }
}

/// Messages of many lengths over five terms, a third of them fragmented.
fn sample() -> (Recording, Vec<Vec<u8>>) {
    let mut recording = Recording::new(i64::from(TERM_LENGTH) + 96);
    let messages: Vec<Vec<u8>> = (0..600usize)
        .map(|index| vec![index as u8; index * 37 % 1500])
        .collect();
    for message in &messages {
        recording.message(message, 1000);
    }
    (recording, messages)
}

fn read_range(written: &Written, start: i64, stop: i64, limit: i64) -> Result<Vec<Vec<u8>>, RecordingError> {
    let range = Range {
        start,
        stop,
        limit,
        is_frame_at_start: false,
    };
    let mut reader = written.reader(range, MessageFilter::default())?;
    let mut found = Vec::new();
    while reader.read(7, usize::MAX, |message| found.push(message.payload.to_vec()))? > 0 {}
    Ok(found)
}

#[test]
fn gives_every_message_whole_and_in_order() {
    let (recording, messages) = sample();
    let source = recording.write();
    let found = read_range(&source, recording.start, recording.end(), recording.end()).expect("read");
    assert_eq!(found, messages);
}

#[test]
fn ranges_that_meet_anywhere_give_every_message_once() {
    let (recording, messages) = sample();
    let source = recording.write();
    let end = recording.end();
    for step in [32, 1024 + 32, 65536, 100_001] {
        let mut found = Vec::new();
        let mut start = recording.start;
        while start < end {
            let stop = (start + step * 40).min(end);
            found.extend(read_range(&source, start, stop, end).expect("read"));
            start = stop;
        }
        assert_eq!(found, messages, "step={step}");
    }
}

#[test]
fn the_boundary_is_before_a_message_that_is_not_finished() {
    let mut recording = Recording::new(0);
    recording.message(b"whole", 1000);
    let boundary = recording.end();
    recording.frame(1, 0x80, 1, 0, &[1; 1000]);
    let source = recording.write();
    let limit = recording.end();
    let range = Range {
        start: 0,
        stop: limit,
        limit,
        is_frame_at_start: true,
    };
    let mut reader = source.reader(range, MessageFilter::default()).expect("a reader");
    assert_eq!(reader.read(10, usize::MAX, |_| {}).expect("read"), 1);
    // Nothing is lost: the rest may still come.
    assert_eq!((reader.boundary(), reader.incomplete().count), (boundary, 0));
}

#[test]
fn filters_by_session_and_reserved_value() {
    let mut recording = Recording::new(0);
    for (session_id, reserved_value) in [(1, 10), (2, 20), (1, 30), (1, 40)] {
        recording.frame(1, 0xC0, session_id, reserved_value, b"x");
    }
    let source = recording.write();
    let limit = recording.end();
    let filter = MessageFilter {
        session_id: Some(1),
        reserved_value_min: 11,
        reserved_value_max: 30,
    };
    let range = Range {
        start: 0,
        stop: limit,
        limit,
        is_frame_at_start: true,
    };
    let mut reader = source.reader(range, filter).expect("a reader");
    let mut found = Vec::new();
    reader
        .read(10, usize::MAX, |message| {
            found.push((message.reserved_value, message.position))
        })
        .expect("read");
    assert_eq!(found, [(30, 192)]);
}

/// Reads ranges that meet at `cuts`; gives the first byte of each message, and each range's incomplete messages.
fn read_cut(recording: &Recording, cuts: &[i64]) -> (Vec<u8>, Vec<Incomplete>) {
    let source = recording.write();
    let mut firsts = Vec::new();
    let incomplete = cuts.windows(2).map(|cut| {
        let range = Range {
            start: cut[0],
            stop: cut[1],
            limit: recording.end(),
            is_frame_at_start: false,
        };
        let mut reader = source.reader(range, MessageFilter::default()).expect("a reader");
        let read = reader.read(usize::MAX, usize::MAX, |message| firsts.push(message.payload[0]));
        read.expect("read");
        assert!(reader.is_at_end());
        reader.incomplete()
    });
    let incomplete = incomplete.collect();
    (firsts, incomplete)
}

const BEGIN: u8 = 0x80;
const MIDDLE: u8 = 0;
const END: u8 = 0x40;
const WHOLE: u8 = 0xC0;

#[test]
fn messages_that_a_gap_took_fragments_of_are_counted_by_the_range_in_which_they_begin() {
    const GAP: u8 = 1;
    let lost = |count, position| Incomplete { count, position };
    // Every frame has 64 bytes.
    for (frames, expected) in [
        (&[WHOLE, BEGIN, GAP, END, WHOLE][..], lost(1, 64)),
        (&[WHOLE, BEGIN, GAP, MIDDLE, END, WHOLE], lost(1, 64)),
        (&[WHOLE, BEGIN, WHOLE, END, WHOLE], lost(2, 64)),
        (&[WHOLE, GAP, MIDDLE, END, WHOLE], lost(1, 128)),
        (&[WHOLE, GAP, END, BEGIN, END], lost(1, 128)),
        (&[WHOLE, BEGIN, BEGIN, END, WHOLE], lost(1, 64)),
        (&[WHOLE, BEGIN, GAP, BEGIN, GAP], lost(2, 64)),
        (&[WHOLE, GAP, WHOLE, BEGIN], lost(0, 0)),
    ] {
        let mut recording = Recording::new(0);
        for (index, flags) in frames.iter().enumerate() {
            let (kind, flags) = if *flags == GAP { (0, WHOLE) } else { (1, *flags) };
            recording.frame(kind, flags, 1, 0, &[index as u8; 32]);
        }
        let (whole, incomplete) = read_cut(&recording, &[0, recording.end()]);
        assert_eq!(incomplete, [expected], "{frames:?}");
        for cut in (0..=recording.end()).step_by(32) {
            let (found, incomplete) = read_cut(&recording, &[0, cut, recording.end()]);
            assert_eq!(found, whole, "{frames:?} cut at {cut}");
            let count: u64 = incomplete.iter().map(|each| each.count).sum();
            // A range knows of no loss before its first frame.
            assert!(count <= expected.count, "{frames:?} cut at {cut}: {incomplete:?}");
            if frames[1] == BEGIN && cut > 64 {
                assert_eq!(
                    incomplete[0].position, expected.position,
                    "{frames:?} cut at {cut}"
                );
            }
        }
    }
}

#[test]
fn a_message_longer_than_its_terms_allow_is_an_error_with_its_place() {
    let mut recording = Recording::new(0);
    recording.message(b"whole", 1000);
    let begin = recording.end();
    recording.frame(1, BEGIN, 1, 0, &[1; 992]);
    while recording.end() < 2 * i64::from(TERM_LENGTH) {
        let room = i64::from(TERM_LENGTH) - recording.end() % i64::from(TERM_LENGTH);
        recording.frame(1, MIDDLE, 1, 0, &vec![1; room.min(1024) as usize - HEADER_LENGTH]);
    }
    let source = recording.write();
    let error = read_range(&source, 0, recording.end(), recording.end()).expect_err("too long");
    let text = error.to_string();
    for expected in [
        "3-0.rec".to_owned(),
        format!("position={begin} in recording_id=3"),
        format!("more than {TERM_LENGTH} bytes"),
    ] {
        assert!(text.contains(&expected), "{text}: no {expected}");
    }
}

fn damaged(damage: impl FnOnce(&Path)) -> RecordingError {
    let (recording, _) = sample();
    let source = recording.write();
    damage(&recording.segment(1));
    let error = read_range(&source, recording.start, recording.end(), recording.end()).expect_err("damaged");
    let name = format!("3-{}.rec", 3 * TERM_LENGTH);
    assert!(error.to_string().contains(&name), "{error} does not name {name}");
    error
}

#[test]
fn a_missing_segment_is_an_error_with_its_name() {
    let error = damaged(|path| fs::remove_file(path).expect("removed"));
    assert!(matches!(error, RecordingError::MissingSegment { .. }), "{error}");
}

#[test]
fn a_truncated_segment_is_an_error_with_its_name() {
    let cut = |path: &Path| {
        fs::OpenOptions::new()
            .write(true)
            .open(path)
            .expect("open")
            .set_len(70_000)
    };
    let error = damaged(|path| cut(path).expect("cut"));
    assert!(
        matches!(error, RecordingError::TruncatedSegment { length: 70_000, .. }),
        "{error}"
    );
}

#[test]
fn bad_frames_are_errors_with_their_place() {
    for (offset, value, expected) in [
        (0, 0, "there is no frame"),
        (0, -1, "length=-1"),
        (0, 31, "length=31"),
        (0, i32::MAX, "length=2147483647"),
        (4, 0x0005_C000, "type=5"),
        (8, 32, "term_offset=32, expected 0"),
        (16, 5, "stream_id=5, expected 1001"),
        (20, 5, "term_id=5, expected 10"),
    ] {
        let error = damaged(|path| {
            let mut bytes = fs::read(path).expect("read");
            bytes[offset..offset + 4].copy_from_slice(&i32::to_le_bytes(value));
            fs::write(path, bytes).expect("written");
        });
        assert!(error.to_string().contains(expected), "{error}: no {expected}");
    }
}

#[test]
fn frames_with_checksums_are_read_as_those_without() {
    for kind in [Checksum::Crc32, Checksum::Crc32c] {
        let (mut recording, messages) = sample();
        let source = recording.write_with_checksums(kind);
        let found = read_range(&source, recording.start, recording.end(), recording.end()).expect("read");
        assert_eq!(found, messages);
    }
}

#[test]
fn with_checksums_messages_are_of_the_publisher_in_the_catalog() {
    let mut recording = Recording::new(0);
    recording.message(b"one", 1000);
    let source = recording.write_with_checksums(Checksum::Crc32);
    let limit = recording.end();
    let range = Range {
        start: 0,
        stop: limit,
        limit,
        is_frame_at_start: true,
    };
    for (wanted, expected) in [(42, vec![42]), (1, vec![])] {
        let filter = MessageFilter {
            session_id: Some(wanted),
            ..MessageFilter::default()
        };
        let mut reader = source.reader(range, filter).expect("a reader");
        let mut found = Vec::new();
        reader
            .read(10, usize::MAX, |message| found.push(message.session_id))
            .expect("read");
        assert_eq!(found, expected);
    }
}

#[test]
fn a_changed_byte_fails_with_its_place_if_checksums_are_known() {
    let (mut recording, _) = sample();
    let source = recording.write_with_checksums(Checksum::Crc32c);
    // A message of more than 32 bytes begins the second segment; all its 32-byte words are payload or alignment.
    for offset in [HEADER_LENGTH, HEADER_LENGTH + 30] {
        let path = recording.segment(1);
        let sound = fs::read(&path).expect("read");
        let mut bytes = sound.clone();
        bytes[offset] ^= 1;
        fs::write(&path, &bytes).expect("written");
        let end = recording.end();
        let error = read_range(&source, recording.start, end, end).expect_err("damaged");
        let position = 3 * TERM_LENGTH;
        let text = error.to_string();
        for expected in [
            path.display().to_string(),
            format!("recording_id=3 offset=0 position={position}: checksum="),
        ] {
            assert!(text.contains(&expected), "{text}: no {expected}");
        }
        let mut unaware = source.clone();
        unaware.shape.checksum = None;
        read_range(&unaware, recording.start, end, end).expect("no checksum is checked");
        fs::write(&path, sound).expect("written");
    }
}

#[test]
fn refuses_ranges_and_descriptions_that_cannot_be() {
    let source = Recording::new(64).write();
    let refused = |source: Written, start, stop, limit| {
        let range = Range {
            start,
            stop,
            limit,
            is_frame_at_start: false,
        };
        source
            .reader(range, MessageFilter::default())
            .err()
            .expect("refused")
            .to_string()
    };
    assert!(refused(source.clone(), 0, 64, 64).starts_with("start=0"));
    assert!(refused(source.clone(), 128, 64, 64).starts_with("stop=64"));
    assert!(refused(source.clone(), 64, 64, 65).starts_with("limit=65"));
    let mut odd = source.clone();
    odd.shape.term_length = 3;
    assert!(refused(odd, 64, 64, 64).starts_with("term_length=3"));
    let short = Written {
        segment_length: 65536 / 2,
        ..source
    };
    assert!(refused(short, 64, 64, 64).starts_with("segment_length"));
}

/// A replay: blocks of a few whole frames, each of them asked for in vain before it comes.
struct Trickle {
    start: i64,
    bytes: Vec<u8>,
    is_due: bool,
}

impl Blocks for Trickle {
    fn load(
        &mut self,
        position: i64,
        needed: usize,
        limit: i64,
        block: &mut Vec<u8>,
    ) -> Result<usize, RecordingError> {
        assert!(
            position + needed as i64 <= limit,
            "the bytes after the limit are not needed"
        );
        self.is_due = !self.is_due;
        if self.is_due {
            return Ok(0);
        }
        let rest = &self.bytes[(position - self.start) as usize..];
        let frame = |at: usize| i32::from_le_bytes(rest[at..at + 4].try_into().expect("four bytes")) as usize;
        let mut length = align(frame(0), FRAME_ALIGNMENT);
        while length < 2000 && length < rest.len() {
            length += align(frame(length), FRAME_ALIGNMENT);
        }
        block.clear();
        block.extend_from_slice(&rest[..length]);
        Ok(length)
    }

    fn place(&self, _position: i64) -> String {
        "replay".to_owned()
    }
}

fn trickle(recording: &Recording, session_id: Option<i32>) -> RecordingReader {
    let skipped = (recording.start - recording.base()) as usize;
    let blocks = Trickle {
        start: recording.start,
        bytes: recording.bytes[skipped..].to_vec(),
        is_due: false,
    };
    let range = Range {
        start: recording.start,
        stop: recording.end(),
        limit: recording.end(),
        is_frame_at_start: true,
    };
    let shape = RecordingShape {
        session_id,
        ..recording.shape()
    };
    RecordingReader::new(shape, blocks, range, MessageFilter::default()).expect("a reader")
}

#[test]
fn what_comes_bit_by_bit_is_read_as_it_comes() {
    let (recording, messages) = sample();
    let mut reader = trickle(&recording, None);
    let mut found = Vec::new();
    let mut pauses = 0;
    while !reader.is_at_end() {
        let count = reader.read(usize::MAX, usize::MAX, |message| {
            found.push(message.payload.to_vec())
        });
        pauses += usize::from(count.expect("read") == 0);
    }
    assert_eq!(found, messages);
    assert_eq!(reader.incomplete().count, 0);
    assert!(pauses > 0, "everything was there at once, so nothing was tested");
}

#[test]
fn a_replays_messages_have_the_session_of_the_recording() {
    let (recording, _) = sample();
    let mut reader = trickle(&recording, Some(77));
    let mut sessions = Vec::new();
    while !reader.is_at_end() {
        reader
            .read(10, usize::MAX, |message| sessions.push(message.session_id))
            .expect("read");
    }
    assert_eq!(sessions, [77; 600]);
}

#[test]
fn a_bad_frame_of_a_replay_is_an_error_with_its_place() {
    let (mut recording, _) = sample();
    let start = (recording.start - recording.base()) as usize;
    recording.bytes[start + 16] += 1;
    let (mut reader, mut read) = (trickle(&recording, None), Ok(0));
    while matches!(read, Ok(0)) {
        read = reader.read(1, usize::MAX, |_| {});
    }
    let text = read.expect_err("damaged").to_string();
    assert_eq!(
        text,
        format!(
            "bad frame: replay position={}: stream_id=1002, expected 1001",
            recording.start
        )
    );
}

fn frame_walk(recording: &Recording, checksum: Option<Checksum>) -> FrameWalk {
    let shape = RecordingShape {
        session_id: Some(1),
        checksum,
        ..recording.shape()
    };
    FrameWalk::new(shape).expect("a shape")
}

#[test]
fn a_walk_ends_after_the_last_frame_that_belongs_to_the_recording() {
    let mut recording = Recording::new(96);
    for _ in 0..40 {
        recording.message(&[7; 5000], 1376);
    }
    let (start, end) = (recording.start, recording.end());
    let last = end - i64::from(align(HEADER_LENGTH + 5000 % 1376, FRAME_ALIGNMENT) as i32);
    let whole = recording.bytes[96..].to_vec();
    let walk = frame_walk(&recording, None);
    let walked = |block: &[u8], limit| {
        let Walked { end, last, fault } = walk.walk(block, start, limit);
        (end, last, fault)
    };
    assert_eq!(walked(&whole, end), (end, Some(last), None), "the block ends");
    let zeros = [whole.clone(), vec![0; 4096]].concat();
    assert_eq!(
        walked(&zeros, i64::MAX),
        (end, Some(last), Some("no frame".to_owned()))
    );
    assert_eq!(
        walked(&whole[..16], end),
        (start, None, None),
        "not even a header"
    );
    let (before, _, fault) = walked(&whole, end - 1);
    assert_eq!(before, last);
    assert!(
        fault
            .expect("a frame that leads out of the file")
            .contains("length=")
    );
    for (offset, name) in [
        (8, "term_offset"),
        (16, "stream_id"),
        (20, "term_id"),
        (6, "type"),
    ] {
        let mut wrong = whole.clone();
        wrong[(last - start) as usize + offset] ^= 0x40;
        let (end, _, fault) = walked(&wrong, i64::MAX);
        assert_eq!(end, last);
        assert!(fault.expect("a frame of another place").starts_with(name));
    }
}

#[test]
fn frames_are_in_doubt_that_have_an_empty_page_and_no_checksum() {
    let mut recording = Recording::new(0);
    recording.frame(1, 0xC0, 1, 0, &[9; 3000]);
    recording.frame(1, 0xC0, 1, 0, &[0; 9000]);
    recording.frame(1, 0xC0, 1, 0, &[9; 9000]);
    recording.frame(0, 0xC0, 1, 0, &[0; 9000]);
    let (second, third) = (3040, 3040 + 9056);
    let doubts = |bytes: &[u8], checksum, from: i64| {
        let mut found = Vec::new();
        let mut walk = frame_walk(&recording, checksum);
        let end = walk.doubts(&bytes[from as usize..], from, |doubt| {
            found.push((doubt.position, doubt.end, doubt.is_wrong));
        });
        (end, found)
    };
    let (bytes, end) = (&recording.bytes, recording.end());
    assert_eq!(doubts(bytes, None, 0), (end, vec![(second, third, false)]));
    assert_eq!(
        doubts(bytes, None, third),
        (end, vec![]),
        "pages are the file's, wherever the block begins"
    );
    assert_eq!(
        doubts(&bytes[..5000], None, 0),
        (second, vec![]),
        "of a frame that is not whole in the block nothing is said"
    );
    let mut sums = bytes.clone();
    Checksum::Crc32c.put(&mut sums);
    assert_eq!(doubts(&sums, Some(Checksum::Crc32c), 0), (end, vec![]));
    sums[third as usize + 40] ^= 1;
    let is_wrong = vec![(third, third + 9056, true)];
    assert_eq!(doubts(&sums, Some(Checksum::Crc32c), 0), (end, is_wrong));
    assert_eq!(
        doubts(bytes, Some(Checksum::Crc32c), 0),
        (end, vec![(second, third, false)]),
        "frames of a time without checksums carry their session id"
    );
}

#[test]
fn hostile_bytes_and_positions_end_a_walk() {
    let mut recording = Recording::new(0);
    recording.frame(1, 0xC0, 1, 0, &[9; 30]);
    let mut walk = frame_walk(&recording, None);
    for length in [i32::MAX, i32::MIN, -1, 31] {
        let mut bytes = recording.bytes.clone();
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        assert!(walk.walk(&bytes, 0, i64::MAX).fault.is_some());
        walk.doubts(&bytes, 0, |_| {});
    }
    for position in [i64::MIN, -32, i64::MAX] {
        walk.walk(&recording.bytes, position, i64::MAX);
        walk.walk(&recording.bytes, position, i64::MIN);
        walk.doubts(&recording.bytes, position, |_| {});
    }
}
