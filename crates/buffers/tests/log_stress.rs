//! Many publishers and one reader on a log of the smallest terms, with the limit and the cleaning that the
//! driver does. Whatever the interleaving, each publisher's messages arrive whole, once and in order.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread::{self, Thread};

use headrace_buffers::log::frame::{FLAG_BEGIN, FLAG_END};
use headrace_buffers::log::read::read;
use headrace_buffers::log::{Append, ClaimResult, ConcurrentAppender, LogBuffers, LogSpec};

const TERM: usize = 65_536;
const WINDOW: i64 = TERM as i64 / 2;
const PUBLISHERS: usize = 4;
const MESSAGES: u32 = 6_000;

/// The publisher limit, and a bell that rings when it is raised.
struct Limit {
    position: AtomicI64,
    mutex: Mutex<()>,
    raised: Condvar,
}

impl Limit {
    fn raise(&self, position: i64) {
        self.position.store(position, Ordering::Release);
        let _guard = self.mutex.lock().unwrap();
        self.raised.notify_all();
    }

    fn wait_above(&self, seen: i64) {
        let mut guard = self.mutex.lock().unwrap();
        while self.position.load(Ordering::Acquire) <= seen {
            guard = self.raised.wait(guard).unwrap();
        }
    }
}

/// Lengths that cover single frames, fragments and, at times, a good part of a term.
fn length_of(publisher: usize, sequence: u32) -> usize {
    let mixed = (sequence as usize)
        .wrapping_mul(2_654_435_761)
        .wrapping_add(publisher * 977);
    match mixed % 16 {
        0 => 1400 + mixed / 16 % 4000,
        1..4 => mixed / 16 % 1300,
        _ => mixed / 16 % 64,
    }
}

fn message(publisher: usize, sequence: u32) -> Vec<u8> {
    let mut bytes = vec![publisher as u8];
    bytes.extend_from_slice(&sequence.to_le_bytes());
    bytes.extend((0..length_of(publisher, sequence)).map(|i| (i as u32 ^ sequence) as u8));
    bytes
}

fn publish(appender: &ConcurrentAppender, publisher: usize, limit: &Limit, reader: &Thread) {
    for sequence in 0..MESSAGES {
        let bytes = message(publisher, sequence);
        let in_place = sequence % 3 == 0 && bytes.len() <= appender.max_payload_length();
        if sequence % 50 == 7 {
            // Given back: the reader must see nothing of it.
            let _ = appender
                .try_claim(40, limit.position.load(Ordering::Acquire))
                .unwrap();
            reader.unpark();
        }
        loop {
            let seen = limit.position.load(Ordering::Acquire);
            let outcome = if in_place {
                match appender.try_claim(bytes.len(), seen).unwrap() {
                    ClaimResult::Claimed(mut claim) => {
                        claim.buffer_mut().copy_from_slice(&bytes);
                        let position = claim.position();
                        assert!(claim.commit());
                        Append::Position(position)
                    }
                    ClaimResult::Refused(refusal) => refusal,
                }
            } else {
                appender.offer(&[&bytes[..3], &bytes[3..]], seen).unwrap()
            };
            reader.unpark();
            match outcome {
                Append::Position(_) => break,
                // A rotation is half done; the thread that does it needs the processor.
                Append::AdminAction => thread::yield_now(),
                Append::BackPressured => limit.wait_above(seen),
                refusal => panic!("{refusal:?}"),
            }
        }
    }
}

#[test]
fn messages_of_many_publishers_arrive_whole_and_in_order() {
    let log = LogBuffers::heap(&LogSpec {
        initial_term_id: i32::MAX - 1,
        ..LogSpec::default()
    })
    .unwrap();
    log.metadata().put_is_connected_release(true);
    let limit = Limit {
        position: AtomicI64::new(WINDOW),
        mutex: Mutex::new(()),
        raised: Condvar::new(),
    };
    let running = AtomicUsize::new(PUBLISHERS);
    let reader = thread::current();
    let geometry = log.geometry();

    let (position, next) = thread::scope(|scope| {
        for publisher in 0..PUBLISHERS {
            let (log, limit, running, reader) = (&log, &limit, &running, reader.clone());
            scope.spawn(move || {
                publish(&ConcurrentAppender::new(log), publisher, limit, &reader);
                running.fetch_sub(1, Ordering::Release);
                reader.unpark();
            });
        }
        let (mut position, mut clean_position, mut next) = (0i64, 0i64, [0u32; PUBLISHERS]);
        let mut partial = Vec::new();
        loop {
            let finished = running.load(Ordering::Acquire) == 0;
            let begin = geometry.term_offset(position);
            let mut offset = begin;
            read(
                log.term(geometry.partition(position)),
                geometry,
                &mut offset,
                TERM,
                64,
                |payload, header| {
                    if header.flags() & FLAG_BEGIN != 0 {
                        assert!(partial.is_empty(), "a message began inside another");
                    }
                    partial.extend_from_slice(payload);
                    if header.flags() & FLAG_END != 0 {
                        let publisher = partial[0] as usize;
                        assert!(
                            partial == message(publisher, next[publisher]),
                            "publisher={publisher}"
                        );
                        next[publisher] += 1;
                        partial.clear();
                    }
                },
            );
            position += (offset - begin) as i64;
            if offset == begin {
                if finished && position == log.producer_position() {
                    break (position, next);
                }
                thread::park();
                continue;
            }
            // As the driver: first clean what the reader has left, then let publishers go on.
            while log.clean(&mut clean_position, position) > 0 {}
            limit.raise(position + WINDOW);
        }
    });
    assert_eq!(next, [MESSAGES; PUBLISHERS]);
    assert!(
        position > 20 * TERM as i64,
        "the log must have rotated often: position={position}"
    );
}
