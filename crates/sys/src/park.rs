//! Sleeping for microseconds and meaning it.
//!
//! Linux rounds a thread's sleeps up by its timer slack, 50 microseconds unless told otherwise, so that a
//! back-off of "one microsecond" would first cost fifty. A thread that parks asks for the least slack once.

use std::cell::Cell;
use std::time::Duration;

const LEAST_SLACK_NS: libc::c_ulong = 1;

thread_local! {
    static IS_PRECISE: Cell<bool> = const { Cell::new(false) };
}

/// Asks for the least slack, once for each thread.
pub(crate) fn make_precise() {
    if !IS_PRECISE.replace(true) {
        // SAFETY: the call only changes a number in the calling thread's own task. Should it fail, sleeps are
        // as long as they were before.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, LEAST_SLACK_NS, 0, 0, 0) };
    }
}

/// Sleeps for `duration`, as exactly as the system's timers allow.
pub fn park(duration: Duration) {
    make_precise();
    std::thread::sleep(duration);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parking_once_leaves_the_thread_with_the_least_slack() {
        let slack = std::thread::spawn(|| {
            park(Duration::from_nanos(1));
            // SAFETY: reads a number of the calling thread's own task.
            unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) }
        });
        assert_eq!(slack.join().unwrap(), 1);
    }
}
