//! One mapping per log file, shared by everything in this client that uses the log.
//!
//! Images and publications hold the mapping themselves, so memory is never pulled from under a poller. The
//! registry shares a mapping between the handles of one log, and keeps it for a while after the last of them was
//! closed: unmapping gigabytes takes time, which the conductor can spare and a polling thread cannot.

use std::collections::BTreeMap;
use std::path::Path;

use headrace_buffers::doorbell::Doorbells;
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
    doorbells: Doorbells,
    mappings: BTreeMap<i64, Mapping>,
}

impl LogMappings {
    /// No mappings yet of a driver's logs.
    pub(crate) fn new(doorbells: Doorbells) -> Self {
        Self {
            doorbells,
            ..Self::default()
        }
    }

    /// The mapping of `path`, made now or shared. Each call is matched by one of [`Self::release`].
    pub(crate) fn acquire(&mut self, id: i64, path: &Path, pre_touch: bool) -> Result<LogBuffers, LogError> {
        if let Some(mapping) = self.mappings.get_mut(&id) {
            mapping.references += 1;
            return Ok(mapping.log.clone());
        }
        let log = LogBuffers::map(path)?.with_doorbells(&self.doorbells);
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
        let mappings = std::mem::take(&mut self.mappings);
        mappings.into_values().map(|mapping| mapping.log).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headrace_buffers::log::LogSpec;

    const LINGER_NS: i64 = 1000;

    fn with_log() -> (tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.logbuffer");
        LogBuffers::create(&path, &LogSpec::default()).unwrap();
        (directory, path)
    }

    #[test]
    fn a_log_is_mapped_once_for_all_that_use_it() {
        let (_directory, path) = with_log();
        let mut mappings = LogMappings::default();
        let first = mappings.acquire(1, &path, true).unwrap();
        // The driver may unlink the file as soon as a client has mapped it.
        std::fs::remove_file(&path).unwrap();
        let second = mappings.acquire(1, &path, false).unwrap();
        first.metadata().put_is_connected_release(true);
        assert!(second.metadata().is_connected_acquire());
        assert!(mappings.acquire(2, &path, false).is_err());
    }

    #[test]
    fn the_last_release_starts_the_linger_time() {
        let (_directory, path) = with_log();
        let mut mappings = LogMappings::default();
        for _ in 0..2 {
            mappings.acquire(1, &path, false).unwrap();
        }
        mappings.release(1, 0, LINGER_NS);
        assert!(mappings.expire(i64::MAX).is_empty(), "still in use");
        mappings.release(1, 5000, LINGER_NS);
        assert!(mappings.expire(5999).is_empty());
        assert_eq!(mappings.expire(6000).len(), 1);
        assert!(mappings.expire(i64::MAX).is_empty(), "let go once");
    }

    #[test]
    fn a_lingering_log_can_be_used_again() {
        let (_directory, path) = with_log();
        let mut mappings = LogMappings::default();
        mappings.acquire(1, &path, false).unwrap();
        mappings.release(1, 0, LINGER_NS);
        std::fs::remove_file(&path).unwrap();
        assert!(mappings.acquire(1, &path, false).is_ok(), "mapped all along");
        assert!(mappings.expire(LINGER_NS).is_empty());
        mappings.release(1, 2000, LINGER_NS);
        assert_eq!(mappings.expire(3000).len(), 1);
    }
}
