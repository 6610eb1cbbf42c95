//! The end of the process, as its daemon threads meet it.
//!
//! A thread that asks for the GIL once the interpreter finalizes is ended by it at that place. Where this happens in a
//! handler, Rust frames lie under it, which such an end must not unwind: the process would abort. So the exiting thread
//! first closes the clients, and then waits until no other thread is inside a poll that calls handlers; polls hand over
//! no further message meanwhile.
//!
//! Where it happens after a call that had released the GIL, PyO3 stops the unwinding by a guard that sleeps for ever. This
//! works only if the extension shares its unwinder with the C library: wheels, which zig links, have one of their own, and
//! the process would die of SIGSEGV. So every call releases the GIL with `detach`, and a thread that would take it again
//! after the last exit hook sleeps at once.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// The thread on which the interpreter ends the process, once it does.
static EXITING: OnceLock<ThreadId> = OnceLock::new();

/// Polls with a handler now, of all threads. Written with the GIL held only.
static HANDLER_POLLS: AtomicUsize = AtomicUsize::new(0);

/// Set by the last exit hook: no other thread takes the GIL again.
static HELD: AtomicBool = AtomicBool::new(false);

/// Threads that found `HELD` unset, and now take the GIL.
static ATTACHING: AtomicUsize = AtomicUsize::new(0);

/// A handler, or a thread that takes the GIL, is waited for no longer than this.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
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
    await_none(&HANDLER_POLLS);
}

fn await_none(threads: &AtomicUsize) {
    let start = Instant::now();
    while threads.load(Ordering::SeqCst) > 0 && start.elapsed() < EXIT_TIMEOUT {
        std::thread::sleep(CHECK_INTERVAL);
    }
}

#[doc = docstring!("hold_threads")]
#[pyfunction]
pub(crate) fn hold_threads(py: Python<'_>) {
    begin();
    // Before the count is read, as `detach` counts itself before it reads this: one of the two sees the other.
    HELD.store(true, Ordering::SeqCst);
    py.detach(|| await_none(&ATTACHING));
}

/// Does work without the GIL, as `Python::detach` does. After the last exit hook a daemon thread does not come back:
/// it sleeps here until the process is gone.
pub(crate) fn detach<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    let value = py.detach(|| {
        let value = work();
        ATTACHING.fetch_add(1, Ordering::SeqCst);
        if HELD.load(Ordering::SeqCst) && is_exiting_elsewhere() {
            ATTACHING.fetch_sub(1, Ordering::SeqCst);
            loop {
                std::thread::park();
            }
        }
        value
    });
    ATTACHING.fetch_sub(1, Ordering::SeqCst);
    value
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
