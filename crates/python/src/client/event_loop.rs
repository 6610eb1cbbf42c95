//! What the coroutines of one event loop wait for.
//!
//! The loop watches one descriptor, which is readable when a doorbell rang; no thread stands between. For each driver
//! there is one slot, however many coroutines wait. Nothing relies on a doorbell: the loop also looks at everything
//! when [`Watcher::look_after_s`] has passed.

use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::time::Duration;

use headrace_client::{Armed, Awaited, Doorbells, PARK_MAX, SharedParker};
use headrace_sys::epoll::Epoll;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::boundary::fork_guard::ForkGuard;
use crate::boundary::lock::lock;
use crate::client::waitables::any_of;
use crate::waiting::doorbells::warn_unwoken;
use crate::waiting::waitable::AnyOf;

/// How often to look where no doorbell wakes: another implementation's driver, or all slots taken.
const UNRUNG_LOOK_AFTER: Duration = Duration::from_millis(1);

#[doc = docstring!("Watcher")]
#[pyclass(frozen, weakref, module = "headrace.client")]
pub(crate) struct Watcher {
    parts: ForkGuard<Parts>,
}

struct Parts {
    // Stands for the slot of each driver.
    epoll: Epoll,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last_ticket: u64,
    drivers: Vec<Driver>,
}

/// One driver's streams, and the waits for them by ticket.
struct Driver {
    doorbells: Doorbells,
    parker: Option<SharedParker>,
    waits: HashMap<u64, Wait>,
}

struct Wait {
    awaited: AnyOf,
    // None where nothing rings.
    armed: Option<Armed>,
}

impl Driver {
    fn new(doorbells: Doorbells) -> Self {
        Self {
            doorbells,
            parker: None,
            waits: HashMap::new(),
        }
    }

    /// Takes a slot if it has none and there is one to be had; `epoll` stands for it then.
    fn take_slot(&mut self, epoll: &Epoll) {
        if self.parker.is_some() {
            return;
        }
        let parker = self.doorbells.shared_parker(PARK_MAX);
        self.parker = parker.filter(|parker| epoll.add(parker.descriptor()).is_ok());
        if let Some(parker) = &mut self.parker {
            for wait in self.waits.values_mut() {
                wait.armed = Some(parker.arm(&wait.awaited));
            }
        }
    }

    /// The slot goes to another waiter, whose wake-ups are not for this one.
    fn give_slot_back(&mut self, epoll: &Epoll) {
        if let Some(parker) = self.parker.take() {
            // It was added, and is open.
            let _ = epoll.remove(parker.descriptor());
        }
    }

    /// True when nothing waits with the doorbells of a client that is closed; another one of the same driver has its own.
    fn is_over(&self) -> bool {
        self.waits.is_empty() && self.doorbells.is_closed()
    }

    /// Begins a wait, or gives it back if it is over already.
    fn begin(&mut self, ticket: u64, awaited: AnyOf) -> Option<AnyOf> {
        let armed = self.parker.as_mut().map(|parker| parker.arm(&awaited));
        let is_over = awaited.is_ready();
        self.waits.insert(ticket, Wait { awaited, armed });
        is_over.then(|| self.end(ticket)).flatten()
    }

    fn end(&mut self, ticket: u64) -> Option<AnyOf> {
        let wait = self.waits.remove(&ticket)?;
        if let (Some(parker), Some(armed)) = (&mut self.parker, wait.armed) {
            parker.disarm(armed);
        }
        Some(wait.awaited)
    }

    /// Ends the waits that are over, of those whose doorbells rang.
    fn end_rung(&mut self, over: &mut Vec<(u64, AnyOf)>) {
        let Some(parker) = &mut self.parker else { return };
        let waits = self.waits.iter();
        let rung = parker.take_rung(waits.filter_map(|(ticket, wait)| Some((*ticket, wait.armed.as_ref()?))));
        let count_before = over.len();
        for ticket in rung {
            let Some(awaited) = self.end(ticket) else { continue };
            let is_over = awaited.is_ready();
            // Anew if it is not: an image that came has a doorbell of its own.
            let ended = if is_over {
                Some(awaited)
            } else {
                self.begin(ticket, awaited)
            };
            over.extend(ended.map(|awaited| (ticket, awaited)));
        }
        if let Some(parker) = &mut self.parker {
            parker.on_looked(over.len() > count_before);
        }
    }

    /// Ends the waits that are over, of all.
    fn end_ready(&mut self, over: &mut Vec<(u64, AnyOf)>) {
        if let Some(parker) = &mut self.parker {
            parker.listen();
        }
        let is_ready = |(ticket, wait): (&u64, &Wait)| wait.awaited.is_ready().then_some(*ticket);
        let ready: Vec<u64> = self.waits.iter().filter_map(is_ready).collect();
        for ticket in ready {
            over.extend(self.end(ticket).map(|awaited| (ticket, awaited)));
        }
    }

    fn look_after(&self) -> Option<Duration> {
        let of_parker = |parker: &SharedParker| parker.look_after();
        (!self.waits.is_empty()).then(|| self.parker.as_ref().map_or(UNRUNG_LOOK_AFTER, of_parker))
    }
}

impl Parts {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            epoll: Epoll::new()?,
            state: Mutex::default(),
        })
    }

    /// Begins a wait. None if it is over already.
    fn watch(&self, awaited: AnyOf) -> Option<u64> {
        let mut state = lock(&self.state);
        state.last_ticket += 1;
        let ticket = state.last_ticket;
        let driver = self.driver(&mut state.drivers, awaited.doorbells());
        driver.take_slot(&self.epoll);
        let over = driver.begin(ticket, awaited);
        drop(state);
        // Dropped here, unlocked: the last reference to a publication closes it.
        over.is_none().then_some(ticket)
    }

    /// The driver with these doorbells. One that nothing waits for makes room for another.
    fn driver<'a>(&self, drivers: &'a mut Vec<Driver>, doorbells: Doorbells) -> &'a mut Driver {
        self.let_go_of_closed(drivers);
        let is_known = |driver: &Driver| driver.doorbells.is_same_driver(&doorbells);
        let index = drivers.iter().position(is_known).unwrap_or_else(|| {
            for idle in drivers.extract_if(.., |driver| driver.waits.is_empty()) {
                { idle }.give_slot_back(&self.epoll);
            }
            drivers.push(Driver::new(doorbells));
            drivers.len() - 1
        });
        &mut drivers[index]
    }

    /// A closed client leaves no slot taken.
    fn let_go_of_closed(&self, drivers: &mut Vec<Driver>) {
        for over in drivers.extract_if(.., |driver| driver.is_over()) {
            { over }.give_slot_back(&self.epoll);
        }
    }

    fn take(&self, end: impl Fn(&mut Driver, &mut Vec<(u64, AnyOf)>)) -> Vec<u64> {
        let mut over = Vec::new();
        let mut state = lock(&self.state);
        for driver in &mut state.drivers {
            end(driver, &mut over);
        }
        self.let_go_of_closed(&mut state.drivers);
        drop(state);
        // What was waited for is dropped here, unlocked.
        over.into_iter().map(|(ticket, _)| ticket).collect()
    }

    fn cancel(&self, ticket: u64) {
        let mut state = lock(&self.state);
        let ended = state.drivers.iter_mut().find_map(|driver| driver.end(ticket));
        self.let_go_of_closed(&mut state.drivers);
        drop(state);
        drop(ended);
    }

    fn look_after(&self) -> Option<Duration> {
        lock(&self.state)
            .drivers
            .iter()
            .filter_map(Driver::look_after)
            .min()
    }
}

#[pymethods]
impl Watcher {
    #[new]
    fn new() -> PyResult<Self> {
        let parts = Parts::new()
            .map_err(|error| PyOSError::new_err(format!("cannot make the watcher's descriptor: {error}")))?;
        Ok(Self {
            parts: ForkGuard::new(parts),
        })
    }

    #[doc = docstring!("Watcher.fileno")]
    fn fileno(&self) -> PyResult<i32> {
        Ok(self.parts.get()?.epoll.as_raw_fd())
    }

    #[doc = docstring!("Watcher.watch")]
    #[pyo3(signature = (*awaited))]
    fn watch(&self, awaited: &Bound<'_, PyTuple>) -> PyResult<Option<u64>> {
        let parts = self.parts.get()?;
        let objects = any_of(awaited)?;
        let doorbells = objects.doorbells();
        let ticket = parts.watch(objects);
        warn_unwoken(awaited.py(), &doorbells);
        Ok(ticket)
    }

    #[doc = docstring!("Watcher.cancel")]
    #[pyo3(signature = (ticket, /))]
    fn cancel(&self, ticket: u64) -> PyResult<()> {
        self.parts.get()?.cancel(ticket);
        Ok(())
    }

    #[doc = docstring!("Watcher.take_rung")]
    fn take_rung(&self) -> PyResult<Vec<u64>> {
        Ok(self.parts.get()?.take(Driver::end_rung))
    }

    #[doc = docstring!("Watcher.take_ready")]
    fn take_ready(&self) -> PyResult<Vec<u64>> {
        Ok(self.parts.get()?.take(Driver::end_ready))
    }

    #[doc = docstring!("Watcher.look_after_s")]
    #[getter]
    fn look_after_s(&self) -> PyResult<Option<f64>> {
        Ok(self.parts.get()?.look_after().map(|time| time.as_secs_f64()))
    }
}
