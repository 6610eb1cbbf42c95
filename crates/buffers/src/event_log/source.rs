//! Where a reader finds a ring: in memory, or in a file that it reads call by call.
//!
//! A map of a file that another program cuts short ends its reader by a signal. A reader of events has time, so it asks
//! the kernel for each piece instead. The kernel copies from the same pages that the writer has mapped.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};

use crate::memory::Memory;

/// What a ring can be read from. Offsets lie inside the length.
pub trait Source {
    /// Bytes in it.
    fn length(&self) -> usize;
    /// A word, with acquire order.
    fn word(&self, offset: usize) -> i64;
    /// Copies bytes, which may be overwritten meanwhile.
    fn copy(&self, offset: usize, into: &mut [u8]);
    /// Orders earlier reads before later ones.
    fn fence(&self);
    /// Fails when it is not whole any more.
    fn check(&self) -> io::Result<()>;
}

impl<M: Memory> Source for M {
    fn length(&self) -> usize {
        self.capacity()
    }

    fn word(&self, offset: usize) -> i64 {
        self.get_i64_acquire(offset)
    }

    fn copy(&self, offset: usize, into: &mut [u8]) {
        self.get_bytes_relaxed(offset, into);
    }

    fn fence(&self) {
        self.acquire_fence();
    }

    fn check(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A file that other programs write, and may cut short.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    length: usize,
}

impl FileSource {
    /// Opens a file, whose length is held to what it is now.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let length = if metadata.is_file() { metadata.len() } else { 0 };
        Ok(Self {
            file,
            length: usize::try_from(length).unwrap_or(usize::MAX),
        })
    }
}

impl Source for FileSource {
    fn length(&self) -> usize {
        self.length
    }

    /// The kernel copies an aligned word at once, as the writer stores it. Were one torn after all, it would be no
    /// number that the slot may have, and the event lost.
    fn word(&self, offset: usize) -> i64 {
        let mut bytes = [0; 8];
        self.copy(offset, &mut bytes);
        self.fence();
        i64::from_ne_bytes(bytes)
    }

    /// What cannot be read is zero, and [`Self::check`] tells.
    fn copy(&self, offset: usize, into: &mut [u8]) {
        if self.file.read_exact_at(into, offset as u64).is_err() {
            into.fill(0);
        }
    }

    fn fence(&self) {
        fence(Ordering::Acquire);
    }

    fn check(&self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        if length < self.length as u64 {
            let text = format!(
                "it was cut short from {} to {length} bytes while it was read",
                self.length
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(())
    }
}
