//! Named pipes that carry nothing but "wake up".
//!
//! Both sides open a FIFO for reading and writing. So opening never waits for the other side, a write never meets a
//! pipe without a reader (which would raise SIGPIPE), and bytes that no process reads stay until one does.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Bytes read at once: rarely more than a few are there.
const DRAIN_LENGTH: usize = 1024;
/// Reads in which a full FIFO is drained: a page for each of the kernel's 16 buffers.
const DRAIN_READS_MAX: usize = 16 * 4096 / DRAIN_LENGTH;

/// An open FIFO. Closed when dropped, and at `exec`.
#[derive(Debug)]
pub struct Fifo(File);

impl Fifo {
    /// Opens an existing FIFO; what is no FIFO is refused.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
            .open(path)?;
        if !file.metadata()?.file_type().is_fifo() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a FIFO"));
        }
        Ok(Self(file))
    }

    /// As [`Self::open`], making the FIFO where there is none.
    pub fn create(path: &Path) -> io::Result<Self> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: the path is a C string that lives during the call.
        if unsafe { libc::mkfifo(name.as_ptr(), 0o666) } != 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::AlreadyExists {
                return Err(error);
            }
        }
        Self::open(path)
    }

    /// Takes the lock on the FIFO, which the kernel keeps until this and every copy of its descriptor is closed.
    /// False when another opener has it.
    pub fn try_lock(&self) -> io::Result<bool> {
        // SAFETY: the descriptor is open for the duration of the call.
        if unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            return Ok(true);
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            error => Err(error),
        }
    }

    /// Makes the FIFO readable. Never waits: a full one is readable already.
    #[inline]
    pub fn wake(&self) {
        let _ = (&self.0).write(&[1]);
    }

    /// Takes what was written. True when there was something. A stranger who goes on writing does not keep the caller:
    /// what is left after as much as a FIFO holds, the next call takes.
    pub fn drain(&self) -> bool {
        drain(&self.0)
    }
}

fn drain(mut from: impl Read) -> bool {
    let mut bytes = [0; DRAIN_LENGTH];
    let mut found = false;
    for _ in 0..DRAIN_READS_MAX {
        let count = from.read(&mut bytes).unwrap_or(0);
        found |= count > 0;
        if count < DRAIN_LENGTH {
            break;
        }
    }
    found
}

impl AsRawFd for Fifo {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_opener_writes_another_drains() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("07");
        let (waiter, writer) = (Fifo::create(&path).unwrap(), Fifo::create(&path).unwrap());
        assert!(!waiter.drain());
        writer.wake();
        assert!(waiter.drain() && !waiter.drain());
    }

    #[test]
    fn a_full_fifo_and_one_without_a_reader_stop_no_writer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("07");
        drop(Fifo::create(&path).unwrap());
        let writer = Fifo::open(&path).unwrap();
        (0..100_000).for_each(|_| writer.wake());
        assert!(Fifo::open(&path).unwrap().drain());
    }

    /// A FIFO that a stranger fills as fast as it is read.
    struct Flooded(usize);

    impl Read for Flooded {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            assert!(self.0 <= 64 * 1024, "more than a FIFO holds");
            Ok(bytes.len())
        }
    }

    #[test]
    fn a_writer_without_end_does_not_keep_the_one_that_drains() {
        assert!(drain(&mut Flooded(0)));
        let dir = tempfile::tempdir().unwrap();
        let fifo = Fifo::create(&dir.path().join("07")).unwrap();
        while (&fifo.0).write(&[1; 4096]).is_ok() {}
        assert!(
            fifo.drain() && !fifo.drain(),
            "all that a FIFO holds is taken at once"
        );
    }

    #[test]
    fn the_lock_has_one_owner_and_goes_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("07");
        let owner = Fifo::create(&path).unwrap();
        let other = Fifo::open(&path).unwrap();
        assert!(owner.try_lock().unwrap() && !other.try_lock().unwrap());
        drop(owner);
        assert!(other.try_lock().unwrap());
    }

    #[test]
    fn what_is_no_fifo_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("07");
        std::fs::write(&path, b"text").unwrap();
        assert!(Fifo::create(&path).is_err());
        assert!(Fifo::open(&dir.path().join("absent")).is_err());
        let link = dir.path().join("08");
        drop(Fifo::create(&dir.path().join("09")).unwrap());
        std::os::unix::fs::symlink(dir.path().join("09"), &link).unwrap();
        assert!(Fifo::open(&link).is_err());
    }
}
