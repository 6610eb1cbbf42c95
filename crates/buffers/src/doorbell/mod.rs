//! Doorbells: how a writer wakes the threads that wait for what it wrote.
//!
//! A file of our own in the driver's directory; programs that do not know it neither wake nor are woken. See
//! `docs/design/0017-waking-waiters.md`, and `table.rs` for the algorithm.

mod blocking;
mod held_slot;
#[cfg(all(test, loom))]
mod loom_models;
mod parker;
mod shared;
mod shared_parker;
mod table;
#[cfg(all(test, not(loom)))]
mod tests;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use headrace_sys::{Access, MappedFile, barrier, fork};

use crate::{AtomicBuffer, Memory};

pub use blocking::{Awaited, BlockingIdle};
use held_slot::HeldSlot;
pub use parker::{Alarm, Interests, Parker};
pub use shared::DriverIdentity;
use shared::Shared;
pub use shared_parker::{Armed, SharedParker};
pub use table::Bell;
use table::{
    BELL_LENGTH, BellWord, FILE_LENGTH, PID_OFFSET, REFUSALS_OFFSET, START_TIMESTAMP_OFFSET, VERSION,
    VERSION_OFFSET,
};

/// The file in the driver's directory.
pub const FILE_NAME: &str = "doorbells.dat";
/// The directory of the waiters' files in the driver's directory.
pub const WAITERS: &str = "waiters";

/// The doorbells of one driver's directory, or none: then ringing does nothing and there is no [`Parker`]. Clones share
/// them.
#[derive(Clone, Debug, Default)]
pub struct Doorbells(Option<Arc<Shared>>);

impl Doorbells {
    /// No doorbells.
    pub fn none() -> Self {
        Self(None)
    }

    /// Makes the file and the directory of the waiters' files in a driver's directory.
    pub fn create(directory: &Path, identity: DriverIdentity) -> io::Result<Self> {
        fs::create_dir(directory.join(WAITERS))?;
        let mapping = MappedFile::create(&directory.join(FILE_NAME), FILE_LENGTH as u64, true)?;
        let file = AtomicBuffer::of_mapping(Arc::new(mapping));
        file.put_i64(PID_OFFSET, identity.pid);
        file.put_i64(START_TIMESTAMP_OFFSET, identity.start_timestamp_ms);
        file.put_i32_release(VERSION_OFFSET, VERSION);
        Ok(Self::over(file, directory, identity))
    }

    /// The doorbells of a running driver; none when it has no such file, as drivers of other implementations, or one
    /// that cannot be used. Nothing but latency depends on it.
    pub fn open(directory: &Path, identity: DriverIdentity) -> Self {
        let Ok(mapping) = MappedFile::open(&directory.join(FILE_NAME), Access::ReadWrite) else {
            return Self::none();
        };
        let file = AtomicBuffer::of_mapping(Arc::new(mapping));
        let is_usable = file.capacity() >= FILE_LENGTH
            && file.get_i32_acquire(VERSION_OFFSET) == VERSION
            && file.get_i64(PID_OFFSET) == identity.pid
            && file.get_i64(START_TIMESTAMP_OFFSET) == identity.start_timestamp_ms;
        if is_usable {
            Self::over(file, directory, identity)
        } else {
            Self::none()
        }
    }

    fn over(file: AtomicBuffer, directory: &Path, identity: DriverIdentity) -> Self {
        barrier::register();
        fork::watch();
        Self(Some(Arc::new(Shared::new(
            file,
            identity,
            directory.join(WAITERS),
        ))))
    }

    /// The writer's end of a doorbell.
    pub fn bell(&self, bell: Bell) -> Doorbell {
        static NONE: LazyLock<AtomicBuffer> = LazyLock::new(|| AtomicBuffer::allocate(BELL_LENGTH));
        let index = bell.index();
        let word = match &self.0 {
            Some(shared) => shared.file.slice(table::bell_offset(index), BELL_LENGTH),
            None => NONE.clone(),
        };
        Doorbell {
            word,
            index,
            shared: self.0.clone(),
        }
    }

    /// A slot for one thread to wait with; none without doorbells, or when all are taken.
    pub fn parker(&self) -> Option<Parker> {
        self.hold_slot().map(Parker::new)
    }

    /// A slot for many waits whose owner looks every `park_max` at least; none as for [`Self::parker`].
    pub fn shared_parker(&self, park_max: Duration) -> Option<SharedParker> {
        self.hold_slot()
            .and_then(|slot| SharedParker::new(slot, park_max))
    }

    fn hold_slot(&self) -> Option<HeldSlot> {
        let shared = self.0.as_ref()?;
        let spare = shared.spare().as_mut().and_then(Vec::pop);
        let slot = spare.or_else(|| shared.claim_slot_if_due())?;
        Some(HeldSlot::new(Arc::clone(shared), slot))
    }

    /// How often processes found no slot, each once a second at most.
    pub fn refusal_count(&self) -> i64 {
        let count = |shared: &Arc<Shared>| shared.file.get_i64_acquire(REFUSALS_OFFSET);
        self.0.as_ref().map_or(0, count)
    }

    /// Why this process found no slot to be woken through, or none that an event loop can watch, the first time: once.
    pub fn take_refusal(&self) -> Option<String> {
        self.0.as_ref()?.take_refusal()
    }

    /// The client that opened them is closed: its slots go back to all as its waits end, however long the program keeps
    /// what it made with it.
    pub fn close(&self) {
        if let Some(shared) = &self.0 {
            let spare = shared.spare().take();
            drop(spare);
        }
    }

    /// True after [`Self::close`].
    pub fn is_closed(&self) -> bool {
        self.0.as_ref().is_some_and(|shared| shared.spare().is_none())
    }

    /// True for doorbells of the same driver, and for none and none.
    pub fn is_same_driver(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(own), Some(theirs)) => own.identity == theirs.identity && own.waiters == theirs.waiters,
            (own, theirs) => own.is_none() && theirs.is_none(),
        }
    }

    /// A client says that it rings.
    pub fn register_client(&self, client_id: i64) {
        if let Some(shared) = &self.0 {
            shared
                .file
                .put_i64_release(table::client_offset(client_id), client_id);
        }
    }

    /// True for a client that said so.
    pub fn is_registered(&self, client_id: i64) -> bool {
        self.0
            .as_ref()
            .is_some_and(|shared| shared.file.get_i64_acquire(table::client_offset(client_id)) == client_id)
    }
}

/// The writer's end of one doorbell.
#[derive(Clone, Debug)]
pub struct Doorbell {
    // This doorbell's part of the file, or a word that stays 0.
    word: AtomicBuffer,
    index: usize,
    shared: Option<Arc<Shared>>,
}

impl Doorbell {
    /// A doorbell that no thread waits for.
    pub fn none() -> Self {
        Doorbells::none().bell(Bell::Conductor)
    }

    #[inline(always)]
    fn word(&self) -> BellWord<'_> {
        BellWord {
            memory: &self.word,
            offset: 0,
        }
    }

    /// Wakes those that wait for what this thread has just made visible. One load when no thread does.
    #[inline(always)]
    pub fn ring(&self) {
        if self.word().is_armed() {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        let Some(shared) = &self.shared else { return };
        let mut bits = self.word().take();
        while bits != 0 {
            shared.wake(bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }

    /// True when a thread may wait for it.
    pub fn is_armed(&self) -> bool {
        self.word().is_armed()
    }

    /// Says that a writer that does not ring may be what is waited for, and has waiters look again.
    pub fn mark_foreign(&self) {
        if self.shared.is_some() {
            self.word().mark_foreign();
            self.ring();
        }
    }
}

/// The doorbells of one log.
#[derive(Clone, Debug)]
pub struct LogDoorbells {
    /// See [`Bell::Data`].
    pub data: Doorbell,
    /// See [`Bell::Position`].
    pub position: Doorbell,
    /// See [`Bell::Limit`].
    pub limit: Doorbell,
}

impl LogDoorbells {
    /// Those of the log with this correlation id.
    pub fn new(doorbells: &Doorbells, correlation_id: i64) -> Self {
        Self {
            data: doorbells.bell(Bell::Data(correlation_id)),
            position: doorbells.bell(Bell::Position(correlation_id)),
            limit: doorbells.bell(Bell::Limit(correlation_id)),
        }
    }
}
