//! Costs of the per-message path: `cargo bench -p headrace-buffers --bench log`.
//!
//! Each figure is the best of several rounds, because other work on the machine only ever adds to it.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use headrace_buffers::log::rebuild::insert_run;
use headrace_buffers::log::scan::scan_datagrams;
use headrace_buffers::log::{
    Append, ClaimResult, ConcurrentAppender, ExclusiveAppender, LogBuffers, LogSpec, LogType, read,
};

const TERM_LENGTH: usize = 1 << 20;
const ROUNDS: usize = 15;
const IPC_MESSAGES: u64 = 10_000_000;

fn log(log_type: LogType) -> LogBuffers {
    LogBuffers::heap(&LogSpec {
        log_type,
        term_length: TERM_LENGTH,
        ..LogSpec::default()
    })
    .expect("a sound specification")
}

/// Runs `work` on a term's worth of messages at a time, cleaning in between, outside the measurement.
fn per_message(name: &str, mut work: impl FnMut() -> (u64, Duration)) {
    let best = (0..ROUNDS)
        .map(|_| {
            let (messages, elapsed) = work();
            elapsed.as_nanos() as f64 / messages as f64
        })
        .fold(f64::INFINITY, f64::min);
    println!("{name:<44} {best:>8.2} ns/message {:>8.1} M/s", 1e3 / best);
}

fn append_exclusive(length: usize) {
    let log = log(LogType::ExclusivePublication);
    let mut appender = ExclusiveAppender::new(&log).expect("a fresh log");
    let message = vec![7u8; length];
    let mut clean = 0;
    per_message(&format!("exclusive offer of {length} bytes"), || {
        let (mut messages, start) = (0, Instant::now());
        while let Ok(Append::Position(_)) = appender.offer_one(black_box(&message), i64::MAX) {
            messages += 1;
        }
        let elapsed = start.elapsed();
        log.clean(&mut clean, appender.position());
        (messages, elapsed)
    });
}

fn append_concurrent(length: usize) {
    let log = log(LogType::ConcurrentPublication);
    let appender = ConcurrentAppender::new(&log);
    let message = vec![7u8; length];
    let mut clean = 0;
    per_message(&format!("concurrent offer of {length} bytes"), || {
        let (mut messages, start) = (0, Instant::now());
        while let Ok(Append::Position(_)) = appender.offer(black_box(&[&message]), i64::MAX) {
            messages += 1;
        }
        let elapsed = start.elapsed();
        log.clean(&mut clean, appender.position());
        (messages, elapsed)
    });
}

fn claim_exclusive(length: usize) {
    let log = log(LogType::ExclusivePublication);
    let mut appender = ExclusiveAppender::new(&log).expect("a fresh log");
    let mut clean = 0;
    per_message(&format!("exclusive claim of {length} bytes"), || {
        let (mut messages, start) = (0, Instant::now());
        while let Ok(ClaimResult::Claimed(mut claim)) = appender.try_claim(length, i64::MAX) {
            claim.buffer_mut().fill(3);
            assert!(claim.commit());
            messages += 1;
        }
        let elapsed = start.elapsed();
        log.clean(&mut clean, appender.position());
        (messages, elapsed)
    });
}

/// A log whose first term is full of messages of one length.
fn full_term(length: usize) -> LogBuffers {
    let log = log(LogType::ExclusivePublication);
    let mut appender = ExclusiveAppender::new(&log).expect("a fresh log");
    let message = vec![7u8; length];
    while let Ok(Append::Position(_)) = appender.offer_one(&message, i64::MAX) {}
    log
}

fn read_term(length: usize) {
    let log = full_term(length);
    per_message(&format!("read of {length} bytes"), || {
        let (mut offset, mut sum, start) = (0, 0usize, Instant::now());
        let messages = read::read(
            log.term(0),
            log.geometry(),
            &mut offset,
            TERM_LENGTH,
            usize::MAX,
            |payload, _| sum += payload.len() + payload[0] as usize,
        );
        black_box(sum);
        (messages as u64, start.elapsed())
    });
}

fn scan_term(length: usize) {
    let log = full_term(length);
    let frames = TERM_LENGTH / headrace_buffers::align(length + 32, 32);
    let mut datagrams = Vec::with_capacity(4096);
    per_message(&format!("cut into datagrams, {length} byte messages"), || {
        datagrams.clear();
        let start = Instant::now();
        let total = scan_datagrams(log.term(0), 0, TERM_LENGTH, 1408, TERM_LENGTH, &mut datagrams);
        black_box(total);
        (frames as u64, start.elapsed())
    });
}

fn rebuild_term() {
    let image = log(LogType::Image);
    let source = full_term(1376);
    let length = TERM_LENGTH / 1408 * 1408;
    // SAFETY: the source is this thread's own and no longer written.
    let bytes = unsafe { source.term(0).bytes(0, length) };
    let mut clean = 0;
    per_message("insert of a 1408 byte datagram", || {
        let start = Instant::now();
        let inserted = insert_run(image.term(0), 0, bytes, 1408);
        let elapsed = start.elapsed();
        clean = 0;
        image.clean(&mut clean, TERM_LENGTH as i64);
        (inserted as u64, elapsed)
    });
}

/// One publisher and one subscriber on threads of their own, with the limit and the cleaning that a driver
/// would do, done by the subscriber.
fn ipc(length: usize) {
    let log = log(LogType::ExclusivePublication);
    let mut appender = ExclusiveAppender::new(&log).expect("a fresh log");
    let limit = AtomicI64::new(TERM_LENGTH as i64 / 2);
    let done = AtomicBool::new(false);
    let message = vec![7u8; length];
    let start = Instant::now();
    let received = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sent = 0;
            while sent < IPC_MESSAGES {
                match appender.offer_one(&message, limit.load(Ordering::Acquire)) {
                    Ok(Append::Position(_)) => sent += 1,
                    _ => std::thread::yield_now(),
                }
            }
            done.store(true, Ordering::Release);
        });
        let (mut position, mut clean, mut received, mut sum) = (0i64, 0i64, 0u64, 0usize);
        while received < IPC_MESSAGES {
            let geometry = log.geometry();
            let begin = geometry.term_offset(position);
            let mut offset = begin;
            let term = log.term(geometry.partition(position));
            let count = read::read(term, geometry, &mut offset, TERM_LENGTH, 256, |payload, _| {
                sum += payload[0] as usize;
            });
            received += count as u64;
            position += (offset - begin) as i64;
            if position - clean > TERM_LENGTH as i64 / 8 {
                log.clean(&mut clean, position);
                limit.store(position + TERM_LENGTH as i64 / 2, Ordering::Release);
            }
            if count == 0 && !done.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
        black_box(sum);
        received
    });
    let elapsed = start.elapsed();
    println!(
        "{:<44} {:>8.2} ns/message {:>8.1} M/s",
        format!("IPC of {length} bytes, two threads"),
        elapsed.as_nanos() as f64 / received as f64,
        received as f64 / elapsed.as_secs_f64() / 1e6
    );
}

fn main() {
    for length in [32, 64, 256, 1376] {
        append_exclusive(length);
        append_concurrent(length);
        claim_exclusive(length);
        read_term(length);
        scan_term(length);
    }
    rebuild_term();
    for length in [32, 32, 32, 1376] {
        ipc(length);
    }
}
