//! Cost of one event: `cargo bench -p headrace-buffers --bench events`.
//!
//! Each figure is the best of several rounds, because other work on the machine only ever adds to it.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use headrace_buffers::event_log::{Event, EventLog, WriterIdentity};

const LIMIT: usize = 1024;
const ROUNDS: usize = 20;
const EVENTS: i64 = 100_000;

fn append_from(log: &EventLog, thread: i64) {
    for id in 0..EVENTS {
        black_box(log.append(&Event {
            time_ns: id,
            kind: "image",
            id,
            parent_id: Some(thread),
            stream_id: Some(1001),
            session_id: Some(-77),
            old: "Active",
            new: "Draining",
            reason: black_box("nothing received for the image liveness time-out"),
            detail: "10.0.0.5:40123",
            is_fault: true,
        }));
    }
}

/// Nanoseconds an event, as each of the threads sees them.
fn round(log: &EventLog, threads: i64) -> f64 {
    let begin = Barrier::new(threads as usize);
    let elapsed = thread::scope(|scope| {
        let begin = &begin;
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    begin.wait();
                    let start = Instant::now();
                    append_from(log, thread);
                    start.elapsed()
                })
            })
            .collect();
        running
            .into_iter()
            .map(|one| one.join().expect("it only appends"))
            .max()
    });
    elapsed.unwrap_or_default().as_nanos() as f64 / EVENTS as f64
}

fn main() {
    let directory = tempfile::tempdir_in("/dev/shm").expect("shared memory");
    let identity = WriterIdentity {
        pid: 1,
        start_timestamp_ms: 0,
    };
    let log = EventLog::create(directory.path(), LIMIT, identity).expect("256 KiB of room");
    for threads in [1, 2] {
        let best = (0..ROUNDS)
            .map(|_| round(&log, threads))
            .fold(f64::INFINITY, f64::min);
        println!("append by {threads} threads: {best:>8.1} ns/event");
    }
}
