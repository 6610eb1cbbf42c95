//! A number that tells threads apart, cheap to compare and to keep in an atomic.

use std::sync::atomic::{AtomicU64, Ordering};

/// No thread has this token.
pub(crate) const NO_THREAD: u64 = 0;

static NEXT: AtomicU64 = AtomicU64::new(NO_THREAD + 1);

thread_local! {
    static TOKEN: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
}

/// The calling thread's token, or [`NO_THREAD`] while the thread is being torn down.
pub(crate) fn current() -> u64 {
    TOKEN.try_with(|token| *token).unwrap_or(NO_THREAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_token_and_shares_it_with_nobody() {
        let mine = current();
        let other = std::thread::spawn(current).join().unwrap();
        assert_eq!(mine, current());
        assert!(mine != other && mine != NO_THREAD && other != NO_THREAD);
    }
}
