//! The end of the process, as its daemon threads meet it.
//!
//! A thread that asks for the GIL once the interpreter finalizes is ended by it at that place. Where this happens in a
//! handler, Rust frames lie under it, which such an end must not unwind: the process would abort. So the exiting thread
//! first closes the clients, and then waits until no other thread is inside a poll that calls handlers; polls hand over
//! no further message meanwhile.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// The thread on which the interpreter ends the process, once it does.
static EXITING: OnceLock<ThreadId> = OnceLock::new();

/// Polls with a handler now, of all threads. Written with the GIL held only.
static HANDLER_POLLS: AtomicUsize = AtomicUsize::new(0);

/// A handler that takes longer than this is not waited for.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(1);
const CHECK_INTERVAL: Duration = Duration::from_micros(200);

/// This thread ends the process.
pub(crate) fn begin() {
    EXITING.get_or_init(|| std::thread::current().id());
}

/// True on daemon threads of a process that is ending.
#[inline]
pub(crate) fn is_exiting_elsewhere() -> bool {
    EXITING
        .get()
        .is_some_and(|exiting| *exiting != std::thread::current().id())
}

/// Waits, without the GIL, until no thread is inside a poll with a handler, for at most a second.
pub(crate) fn await_handlers() {
    let start = Instant::now();
    while HANDLER_POLLS.load(Ordering::Acquire) > 0 && start.elapsed() < HANDLER_TIMEOUT {
        std::thread::sleep(CHECK_INTERVAL);
    }
}

/// A poll that calls handlers, from its beginning to its end. Made and dropped with the GIL held, so that plain loads
/// and stores count.
pub(crate) struct HandlerPoll(());

impl HandlerPoll {
    #[inline]
    pub(crate) fn begin() -> Self {
        HANDLER_POLLS.store(HANDLER_POLLS.load(Ordering::Relaxed) + 1, Ordering::Release);
        Self(())
    }
}

impl Drop for HandlerPoll {
    #[inline]
    fn drop(&mut self) {
        HANDLER_POLLS.store(HANDLER_POLLS.load(Ordering::Relaxed) - 1, Ordering::Release);
    }
}
