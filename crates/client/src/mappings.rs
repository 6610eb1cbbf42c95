//! One mapping per log file, shared by everything in this client that uses the log.
//!
//! Images and publications hold the mapping themselves, so memory is never pulled from under a poller. The
//! registry shares a mapping between the handles of one log, and keeps it for a while after the last of them was
//! closed: unmapping gigabytes takes time, which the conductor can spare and a polling thread cannot.

use std::collections::HashMap;
use std::path::Path;

use headrace_buffers::log::{LogBuffers, LogError};

struct Mapping {
    log: LogBuffers,
    // Number of open publications and images.
    references: usize,
    // When to let go, once there are none.
    release_at_ns: i64,
}

/// Mapped logs by original registration id (publications, IPC images) or image correlation id.
#[derive(Default)]
pub(crate) struct LogMappings {
    mappings: HashMap<i64, Mapping>,
}

impl LogMappings {
    /// The mapping of `path`, made now or shared. Each call is matched by one of [`Self::release`].
    pub(crate) fn acquire(&mut self, id: i64, path: &Path, pre_touch: bool) -> Result<LogBuffers, LogError> {
        if let Some(mapping) = self.mappings.get_mut(&id) {
            mapping.references += 1;
            return Ok(mapping.log.clone());
        }
        let log = LogBuffers::map(path)?;
        if pre_touch {
            log.pre_touch();
        }
        let mapping = Mapping {
            log: log.clone(),
            references: 1,
            release_at_ns: i64::MAX,
        };
        self.mappings.insert(id, mapping);
        Ok(log)
    }

    /// One handle fewer. The last starts the linger time.
    pub(crate) fn release(&mut self, id: i64, now_ns: i64, linger_ns: i64) {
        if let Some(mapping) = self.mappings.get_mut(&id) {
            mapping.references = mapping.references.saturating_sub(1);
            if mapping.references == 0 {
                mapping.release_at_ns = now_ns.saturating_add(linger_ns);
            }
        }
    }

    /// Takes out the mappings whose linger time is over, for the caller to drop once nothing is locked.
    pub(crate) fn expire(&mut self, now_ns: i64) -> Vec<LogBuffers> {
        let over = |mapping: &Mapping| mapping.references == 0 && mapping.release_at_ns <= now_ns;
        if !self.mappings.values().any(over) {
            return Vec::new();
        }
        let ids: Vec<i64> = self
            .mappings
            .iter()
            .filter(|(_, mapping)| over(mapping))
            .map(|(id, _)| *id)
            .collect();
        ids.iter()
            .filter_map(|id| self.mappings.remove(id))
            .map(|mapping| mapping.log)
            .collect()
    }

    /// Takes out everything.
    pub(crate) fn drain(&mut self) -> Vec<LogBuffers> {
        self.mappings.drain().map(|(_, mapping)| mapping.log).collect()
    }
}
