//! Sleeping until another thread, or process, changes a word of shared memory.

use std::ffi::c_int;
use std::sync::atomic::AtomicI32;
use std::time::Duration;

use crate::park::make_precise;

/// Sleeps while `word` is `seen`: until [`wake`], a signal, or `timeout` is over. The caller looks next, whatever it was.
pub fn sleep(word: &AtomicI32, seen: i32, timeout: Duration) {
    make_precise();
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // SAFETY: the word, of which the kernel only loads, and the time are live for the duration of the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            seen,
            &raw const timeout,
        )
    };
}

/// Wakes the thread that sleeps on `word`, which the caller has changed. Never waits.
pub fn wake(word: &AtomicI32) {
    const SLEEPERS: c_int = 1;
    // SAFETY: the word is live for the duration of the call, which only takes its address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, SLEEPERS) };
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn a_wake_ends_the_sleep_before_it_and_the_one_after_it() {
        let word = AtomicI32::new(7);
        std::thread::scope(|scope| {
            scope.spawn(|| sleep(&word, 7, Duration::from_secs(600)));
            word.store(8, Ordering::SeqCst);
            wake(&word);
        });
        sleep(&word, 7, Duration::from_secs(600));
        sleep(&word, 8, Duration::from_nanos(1));
    }
}
