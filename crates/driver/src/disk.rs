//! The free space for files; a seam, so that a test can fill a disk.

use std::io;
use std::path::Path;

/// Knows the free space. Files themselves are always real.
pub trait Disk: Send + Sync {
    /// Bytes that can still be written to the file system that holds `path`.
    fn usable_space(&self, path: &Path) -> io::Result<u64>;
}

/// The operating system's file systems.
pub(crate) struct SystemDisk;

impl Disk for SystemDisk {
    fn usable_space(&self, path: &Path) -> io::Result<u64> {
        headrace_sys::disk::usable_space(path)
    }
}
