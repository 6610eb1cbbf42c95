//! How much of a core a thread gets. Two threads of one core share its execution units; if the other one belongs to
//! another program of the host, a virtual machine sees no stolen time, only a slower processor.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Some microseconds, so that reading the clock costs nothing.
const STEPS_AT_A_TIME: u64 = 10_000;

/// Prints the steps of a thread that touches no memory, alone, window by window.
pub(crate) fn run(window_count: &str, window_ms: &str) -> Result<(), Box<dyn Error>> {
    let window = Duration::from_millis(window_ms.parse()?);
    for _ in 0..window_count.parse::<usize>()? {
        let mut count = 0;
        let start = Instant::now();
        while start.elapsed() < window {
            black_box(compute());
            count += STEPS_AT_A_TIME;
        }
        println!("{count} {}", start.elapsed().as_nanos());
    }
    Ok(())
}

/// Four chains that do not wait for each other keep the units of a core busy.
fn compute() -> [u64; 4] {
    let mut chains = black_box([1u64, 2, 3, 4]);
    for _ in 0..STEPS_AT_A_TIME {
        for chain in &mut chains {
            *chain = chain.rotate_left(5).wrapping_add(*chain ^ 7);
        }
    }
    chains
}
