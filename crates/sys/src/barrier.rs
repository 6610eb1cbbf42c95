//! A store and a later load that must not swap, at the cost of the side that has time.
//!
//! Two threads that each store one word and then load the other's miss each other unless both keep that order. The
//! side that does it all the time asks for nothing but the compiler's order ([`light`]); the other makes every running
//! thread of every process that [`register`]ed pass a full barrier at some moment during [`heavy`]. Where the kernel
//! does not offer that, the light side pays for a fence.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

const GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

/// True once the kernel promised that `heavy` calls of other processes reach this one.
static IS_REACHED: AtomicBool = AtomicBool::new(false);

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call takes three integers and touches no memory of the caller.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Makes this process one that [`heavy`] reaches, if the kernel can. Called before the first [`light`] counts.
pub fn register() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        if membarrier(REGISTER_GLOBAL_EXPEDITED) {
            IS_REACHED.store(true, Ordering::Release);
        }
    });
}

/// Keeps earlier stores before later loads, as far as a [`heavy`] of another thread can tell.
#[inline(always)]
pub fn light() {
    if IS_REACHED.load(Ordering::Relaxed) {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// Keeps earlier stores before later loads, here and in all threads that call [`light`]. False when the kernel
/// refused: a light side that relies on it may then be missed.
#[inline]
pub fn heavy() -> bool {
    fence(Ordering::SeqCst);
    membarrier(GLOBAL_EXPEDITED)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// The litmus test of store buffers: in each round one of the two sides has to see the other.
    #[test]
    fn the_two_sides_never_both_miss_each_other() {
        const ROUNDS: usize = 2_000;
        register();
        let words = || -> Vec<AtomicBool> { (0..ROUNDS).map(|_| AtomicBool::new(false)).collect() };
        let (light_words, heavy_words, start) = (words(), words(), Barrier::new(2));
        let (seen_by_light, seen_by_heavy): (Vec<bool>, Vec<bool>) = std::thread::scope(|scope| {
            let light_side = scope.spawn(|| {
                let round = |(own, other): (&AtomicBool, &AtomicBool)| {
                    start.wait();
                    own.store(true, Ordering::Relaxed);
                    light();
                    other.load(Ordering::Relaxed)
                };
                light_words.iter().zip(&heavy_words).map(round).collect()
            });
            let round = |(own, other): (&AtomicBool, &AtomicBool)| {
                start.wait();
                own.store(true, Ordering::Relaxed);
                // Where the kernel refuses, waiters do not rely on it, and there is nothing to test.
                !heavy() || other.load(Ordering::Relaxed)
            };
            let seen_by_heavy = heavy_words.iter().zip(&light_words).map(round).collect();
            (light_side.join().unwrap(), seen_by_heavy)
        });
        let missed = seen_by_light
            .iter()
            .zip(&seen_by_heavy)
            .filter(|(light, heavy)| !**light && !**heavy);
        assert_eq!(missed.count(), 0);
    }
}
