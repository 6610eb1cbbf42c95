//! One mapping per log file, shared by everything in this client that uses the log.
//!
//! The registry shares a mapping between the handles of one log, and keeps it for a while after the last of them was
//! closed. Then it unmaps the file, however long the program keeps the handles: they refer to an empty log from then
//! on. A handler may still read a message in place during a poll, so a log waits for the polls of its images.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Weak};

use headrace_buffers::doorbell::Doorbells;
use headrace_buffers::log::LogBuffers;

use super::leaving::Leaving;
use crate::error::ClientError;
use crate::image::Image;

/// One mapped log.
pub(crate) struct Mapping {
    log: LogBuffers,
    // Those that the program may still hold.
    images: Vec<Weak<Image>>,
    // Number of open publications and images.
    references: usize,
    // When to let go, once there are none.
    release_at_ns: i64,
}

impl Mapping {
    /// Unmaps the file. False, with nothing done, while an image is being polled.
    pub(crate) fn unmap(&self) -> bool {
        let images: Vec<Arc<Image>> = self.images.iter().filter_map(Weak::upgrade).collect();
        let held_off: Option<Vec<_>> = images.iter().map(|image| image.reader.hold_off_polls()).collect();
        if held_off.is_some() {
            self.log.unmap();
        }
        held_off.is_some()
    }
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

    /// The mapping of a file, made now or shared. Each call is matched by one of [`Self::release`].
    pub(crate) fn acquire(
        &mut self,
        id: i64,
        file_name: &str,
        pre_touch: bool,
    ) -> Result<LogBuffers, ClientError> {
        if let Some(mapping) = self.mappings.get_mut(&id) {
            mapping.references += 1;
            return Ok(mapping.log.clone());
        }
        let log = LogBuffers::map(Path::new(file_name)).map_err(|error| unusable_log(file_name, &error))?;
        let log = log.with_doorbells(&self.doorbells);
        if pre_touch {
            log.pre_touch();
        }
        let mapping = Mapping {
            log: log.clone(),
            images: Vec::new(),
            references: 1,
            release_at_ns: i64::MAX,
        };
        self.mappings.insert(id, mapping);
        Ok(log)
    }

    /// An image reads the log.
    pub(crate) fn note_image(&mut self, id: i64, image: &Arc<Image>) {
        if let Some(mapping) = self.mappings.get_mut(&id) {
            mapping.images.retain(|image| image.strong_count() > 0);
            mapping.images.push(Arc::downgrade(image));
        }
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

    /// Takes out the mappings whose linger time is over, for the caller to unmap, which takes time where there are
    /// gigabytes.
    pub(crate) fn take_expired(&mut self, now_ns: i64) -> Leaving<Vec<(i64, Mapping)>> {
        let over = |mapping: &Mapping| mapping.references == 0 && mapping.release_at_ns <= now_ns;
        let ids: Vec<i64> = self
            .mappings
            .iter()
            .filter(|(_, mapping)| over(mapping))
            .map(|(id, _)| *id)
            .collect();
        let expired = ids.iter().filter_map(|id| self.mappings.remove_entry(id));
        Leaving::new(expired.collect())
    }

    /// Takes back a mapping that could not be unmapped, unless the log is in use again under another one.
    pub(crate) fn put_back(&mut self, id: i64, mapping: Mapping) {
        self.mappings.entry(id).or_insert(mapping);
    }

    pub(crate) fn remove_all(&mut self) -> Leaving<Vec<Mapping>> {
        Leaving::new(std::mem::take(&mut self.mappings).into_values().collect())
    }
}

pub(super) fn unusable_log(file_name: &str, error: &dyn std::error::Error) -> ClientError {
    ClientError::DriverFiles {
        reason: format!("cannot use log file={file_name}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use headrace_buffers::log::LogSpec;

    const LINGER_NS: i64 = 1000;

    fn expired(mappings: &mut LogMappings, now_ns: i64) -> usize {
        let lock = Mutex::new(());
        mappings.take_expired(now_ns).unlock(lock.lock().unwrap()).len()
    }

    fn with_log() -> (tempfile::TempDir, String) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.logbuffer");
        LogBuffers::create(&path, &LogSpec::default()).unwrap();
        (directory, path.to_str().unwrap().to_owned())
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
        assert_eq!(expired(&mut mappings, i64::MAX), 0, "still in use");
        mappings.release(1, 5000, LINGER_NS);
        assert_eq!(expired(&mut mappings, 5999), 0);
        assert_eq!(expired(&mut mappings, 6000), 1);
        assert_eq!(expired(&mut mappings, i64::MAX), 0, "let go once");
    }

    #[test]
    fn a_lingering_log_can_be_used_again() {
        let (_directory, path) = with_log();
        let mut mappings = LogMappings::default();
        mappings.acquire(1, &path, false).unwrap();
        mappings.release(1, 0, LINGER_NS);
        std::fs::remove_file(&path).unwrap();
        assert!(mappings.acquire(1, &path, false).is_ok(), "mapped all along");
        assert_eq!(expired(&mut mappings, LINGER_NS), 0);
        mappings.release(1, 2000, LINGER_NS);
        assert_eq!(expired(&mut mappings, 3000), 1);
    }
}
