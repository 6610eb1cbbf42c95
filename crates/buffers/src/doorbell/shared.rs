//! What the doorbells of one driver's directory share: the file, and the slots that waiters are woken through.

use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use headrace_sys::file_watch::FileWatch;
use headrace_sys::wake_file::WakeFile;

use super::table::{self, BellWord, REFUSALS_OFFSET, SLOT_COUNT, SlotWords};
use crate::{AtomicBuffer, Memory};

/// How long a process that found no slot goes without before it asks again.
const REFUSAL_INTERVAL: Duration = Duration::from_secs(1);

/// Which driver made the file, as its CnC file has it: what another driver left behind is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverIdentity {
    /// Process id of the driver.
    pub pid: i64,
    /// When the driver started, epoch ms.
    pub start_timestamp_ms: i64,
}

/// A slot whose file this process holds the lock of.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) number: usize,
    /// Of its file, while its owner may wait for descriptors too.
    pub(super) watch: Option<FileWatch>,
    // Open for the lock.
    _file: WakeFile,
}

/// What all doorbells of one directory have in this process.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) file: AtomicBuffer,
    pub(super) identity: DriverIdentity,
    pub(super) waiters: PathBuf,
    // Opened when first written to. A file outlives its slot's owners, so it never has to be opened again.
    files: [OnceLock<WakeFile>; SLOT_COUNT],
    // Slots of this process that no thread uses now; none are kept once the client is closed.
    spare: Mutex<Option<Vec<Slot>>>,
    refusal: Mutex<Refusal>,
    watch_refusal: Mutex<Refusal>,
}

/// When this process last found no slot, or no watch.
#[derive(Debug, Default)]
pub(super) struct Refusal {
    pub(super) at: Option<Instant>,
    is_known: bool,
    // Why, until the program is told.
    pub(super) untold: Option<String>,
}

impl Shared {
    pub(super) fn new(file: AtomicBuffer, identity: DriverIdentity, waiters: PathBuf) -> Self {
        Self {
            file,
            identity,
            waiters,
            files: [const { OnceLock::new() }; SLOT_COUNT],
            spare: Mutex::new(Some(Vec::new())),
            refusal: Mutex::default(),
            watch_refusal: Mutex::default(),
        }
    }

    pub(super) fn word(&self, index: usize) -> BellWord<'_> {
        BellWord {
            memory: &self.file,
            offset: table::bell_offset(index),
        }
    }

    pub(super) fn slot(&self, number: usize) -> SlotWords<'_> {
        SlotWords {
            memory: &self.file,
            offset: table::slot_offset(number),
        }
    }

    pub(super) fn spare(&self) -> MutexGuard<'_, Option<Vec<Slot>>> {
        lock(&self.spare)
    }

    fn slot_path(&self, number: usize) -> PathBuf {
        self.waiters.join(format!("{number:02}"))
    }

    pub(super) fn refusal(&self) -> MutexGuard<'_, Refusal> {
        lock(&self.refusal)
    }

    /// Why this process found no slot or no watch, the first time: once.
    pub(super) fn take_refusal(&self) -> Option<String> {
        let of_slot = self.refusal().untold.take();
        of_slot.or_else(|| lock(&self.watch_refusal).untold.take())
    }

    /// Claims a slot, unless there was none a moment ago: asking for 64 locks costs more than it is worth each time.
    pub(super) fn claim_slot_if_due(&self) -> Option<Slot> {
        self.unless_refused(&self.refusal, || self.claim_slot())
    }

    /// Watches the file of a slot, for an owner that waits for descriptors too. Its word is to be looked at next.
    pub(super) fn watch_if_due(&self, slot: &mut Slot) -> Option<RawFd> {
        if slot.watch.is_none() {
            slot.watch = self.unless_refused(&self.watch_refusal, || {
                let path = self.slot_path(slot.number);
                FileWatch::of_writes(&path).map_err(|error| {
                    format!(
                        "cannot watch {}: {error} (fs.inotify.max_user_instances limits how many files the programs of a \
                         user watch)",
                        path.display()
                    )
                })
            });
            self.slot(slot.number).set_watched(slot.watch.is_some());
        }
        slot.watch.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Takes back what [`Self::watch_if_due`] did.
    pub(super) fn unwatch(&self, slot: &mut Slot) {
        if slot.watch.take().is_some() {
            self.slot(slot.number).set_watched(false);
        }
    }

    fn unless_refused<T>(
        &self,
        refusal: &Mutex<Refusal>,
        claim: impl FnOnce() -> Result<T, String>,
    ) -> Option<T> {
        let mut refusal = lock(refusal);
        if refusal.at.is_some_and(|at| at.elapsed() < REFUSAL_INTERVAL) {
            return None;
        }
        match claim() {
            Ok(claimed) => {
                refusal.at = None;
                Some(claimed)
            }
            Err(reason) => {
                self.file.get_and_add_i64(REFUSALS_OFFSET, 1);
                refusal.at = Some(Instant::now());
                if !std::mem::replace(&mut refusal.is_known, true) {
                    refusal.untold = Some(reason);
                }
                None
            }
        }
    }

    pub(super) fn claim_slot(&self) -> Result<Slot, String> {
        let mut reason = format!("all {SLOT_COUNT} slots for waiting threads are taken");
        for number in 0..SLOT_COUNT {
            let path = self.slot_path(number);
            match WakeFile::create(&path).and_then(|file| Ok(file.try_lock()?.then_some(file))) {
                Ok(Some(file)) => {
                    // The owner before may have died while it watched.
                    self.slot(number).set_watched(false);
                    return Ok(Slot {
                        number,
                        watch: None,
                        _file: file,
                    });
                }
                Ok(None) => {}
                Err(error) => reason = format!("cannot use {}: {error}", path.display()),
            }
        }
        Err(reason)
    }

    /// Wakes the owner of a slot. The bit may be garbage: then there is no owner, or a look too many.
    pub(super) fn wake(&self, number: usize) {
        let is_watched = self.slot(number).wake();
        self.file.wake(table::slot_offset(number));
        if !is_watched {
            return;
        }
        if let Some(file) = self.files[number].get() {
            file.wake();
        } else if let Ok(file) = WakeFile::open(&self.slot_path(number)) {
            self.files[number].get_or_init(|| file).wake();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
