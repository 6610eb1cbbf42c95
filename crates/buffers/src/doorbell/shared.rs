//! What the doorbells of one driver's directory share: the file, and the slots that waiters are woken through.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use headrace_sys::fifo::Fifo;

use super::table::{self, BellWord, REFUSALS_OFFSET, SLOT_COUNT};
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

/// A FIFO that this process holds the lock of.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) number: usize,
    pub(super) fifo: Arc<Fifo>,
}

/// What all doorbells of one directory have in this process.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) file: AtomicBuffer,
    pub(super) identity: DriverIdentity,
    pub(super) waiters: PathBuf,
    // Opened when first written to. A FIFO outlives its owners, so it never has to be opened again.
    fifos: [OnceLock<Fifo>; SLOT_COUNT],
    // Slots of this process that no thread uses now.
    spare: Mutex<Vec<Slot>>,
    refusal: Mutex<Refusal>,
}

/// When this process last found no slot.
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
            fifos: [const { OnceLock::new() }; SLOT_COUNT],
            spare: Mutex::default(),
            refusal: Mutex::default(),
        }
    }

    pub(super) fn word(&self, index: usize) -> BellWord<'_> {
        BellWord {
            memory: &self.file,
            offset: table::bell_offset(index),
        }
    }

    pub(super) fn spare(&self) -> std::sync::MutexGuard<'_, Vec<Slot>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fifo_path(&self, number: usize) -> PathBuf {
        self.waiters.join(format!("{number:02}"))
    }

    pub(super) fn refusal(&self) -> std::sync::MutexGuard<'_, Refusal> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims a slot, unless there was none a moment ago: asking for 64 locks costs more than it is worth each time.
    pub(super) fn claim_slot_if_due(&self) -> Option<Slot> {
        let mut refusal = self.refusal();
        if refusal.at.is_some_and(|at| at.elapsed() < REFUSAL_INTERVAL) {
            return None;
        }
        match self.claim_slot() {
            Ok(slot) => {
                refusal.at = None;
                Some(slot)
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
            let path = self.fifo_path(number);
            match Fifo::create(&path).and_then(|fifo| Ok(fifo.try_lock()?.then_some(fifo))) {
                Ok(Some(fifo)) => {
                    let fifo = Arc::new(fifo);
                    return Ok(Slot { number, fifo });
                }
                Ok(None) => {}
                Err(error) => reason = format!("cannot use {}: {error}", path.display()),
            }
        }
        Err(reason)
    }

    /// Wakes the owner of a slot. The bit may be garbage: then there is no FIFO, or a look too many.
    pub(super) fn wake(&self, number: usize) {
        if let Some(fifo) = self.fifos[number].get() {
            fifo.wake();
        } else if let Ok(fifo) = Fifo::open(&self.fifo_path(number)) {
            self.fifos[number].get_or_init(|| fifo).wake();
        }
    }
}
