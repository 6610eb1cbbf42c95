//! How much room the disk of a node has.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use headrace_driver::environment::Disk;

/// Room where nothing is said: more than any driver asks for. What the real disk has is not for the seed to know.
const AMPLE: u64 = 1 << 60;
/// What the system counts the size of files in.
const BLOCK_LENGTH: u64 = 512;

/// A disk that holds the logs of one driver, and nothing else that counts.
pub(crate) struct NodeDisk {
    logs: [PathBuf; 2],
    room: AtomicU64,
}

impl NodeDisk {
    /// For the driver of `directory`.
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            logs: ["publications", "images"].map(|name| directory.join(name)),
            room: AtomicU64::new(AMPLE),
        }
    }

    /// Bytes for all logs together.
    pub(crate) fn set_room(&self, bytes: Option<u64>) {
        self.room.store(bytes.unwrap_or(AMPLE), Ordering::Relaxed);
    }

    fn used(&self) -> io::Result<u64> {
        let mut used = 0;
        for directory in &self.logs {
            for entry in fs::read_dir(directory)? {
                // As on a real disk, holes of sparse files take nothing.
                used += entry?.metadata()?.blocks() * BLOCK_LENGTH;
            }
        }
        Ok(used)
    }
}

impl Disk for NodeDisk {
    fn usable_space(&self, _path: &Path) -> io::Result<u64> {
        let room = self.room.load(Ordering::Relaxed);
        if room == AMPLE {
            return Ok(AMPLE);
        }
        Ok(room.saturating_sub(self.used()?))
    }
}
