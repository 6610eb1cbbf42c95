//! One native thread that watches what coroutines wait for, and wakes their event loop through a socket.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use headrace_client::{Alarm, Awaited, BlockingIdle, Doorbells, Interests, PARK_MAX, Parker};
use headrace_sys::idle::IdleStrategy;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::awaited::{self, Watched};
use crate::fork_guard::ForkGuard;
use crate::images::lock;
use crate::publication::Publication;
use crate::subscription::Subscription;

#[doc = docstring!("Watcher")]
#[pyclass(frozen, weakref, module = "headrace.client")]
pub(crate) struct Watcher {
    parts: ForkGuard<Parts>,
}

struct Parts {
    shared: Arc<Shared>,
    wake_up: UnixStream,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    next_ticket: u64,
    watched: HashMap<u64, Watched>,
    ready: Vec<u64>,
    stopped: bool,
    // Ends the sleep of the thread, so that it looks at something new.
    alarm: Option<Alarm>,
}

impl Shared {
    fn run(&self, mut wake_up: UnixStream) {
        while self.wait_for_something_to_watch() {
            // Anew for each run of watching: the next may be for another driver's streams.
            let mut idle = BlockingIdle::new(IdleStrategy::default(), PARK_MAX);
            let alarm = idle.parker(&self.doorbells()).map(Parker::alarm);
            lock(&self.state).alarm = alarm;
            while let Some(found) = self.take_found() {
                if found > 0 {
                    // A full socket already says what this byte would; one that is closed has no loop to wake.
                    let _ = wake_up.write(&[1]);
                }
                idle.idle(found, self);
            }
        }
    }

    /// False once the watcher is stopped.
    fn wait_for_something_to_watch(&self) -> bool {
        let mut state = lock(&self.state);
        state.alarm = None;
        while state.watched.is_empty() && !state.stopped {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        !state.stopped
    }

    /// Moves the tickets of what happened to those that are ready, and counts them. Nothing when there is nothing left
    /// to watch.
    fn take_found(&self) -> Option<usize> {
        let mut state = lock(&self.state);
        if state.watched.is_empty() || state.stopped {
            return None;
        }
        let found: Vec<u64> = state
            .watched
            .iter()
            .filter(|(_, watched)| watched.is_ready())
            .map(|(ticket, _)| *ticket)
            .collect();
        let done: Vec<_> = found.iter().map(|ticket| state.watched.remove(ticket)).collect();
        state.ready.extend_from_slice(&found);
        drop(state);
        // Dropped here, unlocked: the last reference to a publication closes it.
        drop(done);
        Some(found.len())
    }

    fn stop(&self) {
        let mut state = lock(&self.state);
        state.stopped = true;
        self.wake(&state);
    }

    fn watch(&self, watched: Watched) -> u64 {
        let mut state = lock(&self.state);
        state.next_ticket += 1;
        let ticket = state.next_ticket;
        state.watched.insert(ticket, watched);
        self.wake(&state);
        ticket
    }

    fn wake(&self, state: &State) {
        match &state.alarm {
            Some(alarm) => alarm.wake(),
            None => self.changed.notify_one(),
        }
    }
}

impl Awaited for Shared {
    fn doorbells(&self) -> Doorbells {
        awaited::doorbells(lock(&self.state).watched.values())
    }

    fn describe(&self, interests: &mut Interests) {
        awaited::describe(lock(&self.state).watched.values(), interests);
    }
}

impl Parts {
    fn start() -> std::io::Result<Self> {
        let (wake_up, thread_end) = UnixStream::pair()?;
        wake_up.set_nonblocking(true)?;
        thread_end.set_nonblocking(true)?;
        let shared = Arc::new(Shared::default());
        let watcher = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("headrace-watcher".to_owned())
            .spawn(move || watcher.run(thread_end))?;
        Ok(Self {
            shared,
            wake_up,
            thread: Mutex::new(Some(thread)),
        })
    }

    fn close(&self) {
        self.shared.stop();
        if let Some(thread) = lock(&self.thread).take() {
            // A panic of the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.close();
    }
}

#[pymethods]
impl Watcher {
    #[new]
    fn new() -> PyResult<Self> {
        let parts = Parts::start()
            .map_err(|error| PyOSError::new_err(format!("cannot start the watcher's thread: {error}")))?;
        Ok(Self {
            parts: ForkGuard::new(parts),
        })
    }

    #[doc = docstring!("Watcher.fileno")]
    fn fileno(&self) -> PyResult<i32> {
        Ok(self.parts.get()?.wake_up.as_raw_fd())
    }

    #[doc = docstring!("Watcher.watch_subscription")]
    #[pyo3(signature = (subscription, /))]
    fn watch_subscription(&self, subscription: &Bound<'_, Subscription>) -> PyResult<u64> {
        let watched = Watched::Messages(subscription.get().shared()?);
        Ok(self.parts.get()?.shared.watch(watched))
    }

    #[doc = docstring!("Watcher.watch_publication")]
    #[pyo3(signature = (publication, /))]
    fn watch_publication(&self, publication: &Bound<'_, Publication>) -> PyResult<u64> {
        let watched = Watched::Room(publication.get().shared()?);
        Ok(self.parts.get()?.shared.watch(watched))
    }

    #[doc = docstring!("Watcher.cancel")]
    #[pyo3(signature = (ticket, /))]
    fn cancel(&self, ticket: u64) -> PyResult<()> {
        let watched = {
            let mut state = lock(&self.parts.get()?.shared.state);
            state.ready.retain(|ready| *ready != ticket);
            state.watched.remove(&ticket)
        };
        drop(watched);
        Ok(())
    }

    #[doc = docstring!("Watcher.take_ready")]
    fn take_ready(&self) -> PyResult<Vec<u64>> {
        let parts = self.parts.get()?;
        let mut bytes = [0; 64];
        while matches!((&parts.wake_up).read(&mut bytes), Ok(count) if count == bytes.len()) {}
        Ok(std::mem::take(&mut lock(&parts.shared.state).ready))
    }

    #[doc = docstring!("Watcher.close")]
    fn close(&self, py: Python<'_>) {
        if let Some(parts) = self.parts.get_if_own() {
            py.detach(|| parts.close());
        }
    }
}
