//! How near the two cores are to each other: a virtual machine may be given two threads of one core, two cores that share
//! a cache or two that share none, and another pair from second to second.

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Alone on the lines that a processor fetches together.
#[repr(align(128))]
struct Line(AtomicUsize);

/// Prints the nanoseconds in which a cache line goes to a thread on the other core and comes back.
pub(crate) fn run(round_trips: &str) -> Result<(), Box<dyn Error>> {
    let last = 2 * round_trips.parse::<usize>()?;
    let line = Line(AtomicUsize::new(0));
    let await_turn = |turn: usize| {
        while line.0.load(Ordering::Acquire) != turn {
            std::hint::spin_loop();
        }
    };
    let elapsed = std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in (1..last).step_by(2) {
                await_turn(turn);
                line.0.store(turn + 1, Ordering::Release);
            }
        });
        let start = Instant::now();
        for turn in (0..last).step_by(2) {
            line.0.store(turn + 1, Ordering::Release);
            await_turn(turn + 2);
        }
        start.elapsed()
    });
    println!("{}", elapsed.as_nanos() * 2 / last.max(1) as u128);
    Ok(())
}
