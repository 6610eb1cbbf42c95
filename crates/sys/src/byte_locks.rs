//! Bytes of a file that processes hold, and that the kernel lets go of when a process ends, however it ends.
//!
//! The locks belong to the open file (`F_OFD_SETLK`), not to the process: they work between two openings in one
//! process, across pid namespaces, and whatever else the process closes. They end with the last descriptor of the
//! opening. `exec` closes it. A forked child has a copy, and would hold the parent's bytes after the parent's end;
//! so the child points its copies at `/dev/null` before `fork` returns.

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::fork;

/// Openings of lock files in one process. More can be had, but would not be let go of by forked children, so they
/// are refused.
const OPEN_MAX: usize = 1024;
const NONE: c_int = -1;

static INSTALL: Once = Once::new();
static OPEN: [AtomicI32; OPEN_MAX] = [const { AtomicI32::new(NONE) }; OPEN_MAX];

/// An opening of a lock file. Dropping it lets go of the bytes it holds.
#[derive(Debug)]
pub struct ByteLocks {
    slot: &'static AtomicI32,
    file: File,
}

impl ByteLocks {
    /// Makes the file, which must not exist, readable and writable for all that may use the directory.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::over(
            OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o666)
                .open(path)?,
        )
    }

    /// Opens a file that exists.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::over(OpenOptions::new().read(true).write(true).open(path)?)
    }

    fn over(file: File) -> io::Result<Self> {
        INSTALL.call_once(|| fork::call_in_children(let_go_after_fork));
        let descriptor = file.as_raw_fd();
        let free = |slot: &&AtomicI32| {
            slot.compare_exchange(NONE, descriptor, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        match OPEN.iter().find(free) {
            Some(slot) => Ok(Self { slot, file }),
            None => Err(io::Error::other(format!(
                "{OPEN_MAX} lock files are open in this process"
            ))),
        }
    }

    /// Holds a byte until this is dropped or the process ends. False when another opening holds it.
    pub fn hold(&self, offset: i64) -> io::Result<bool> {
        match self.control(libc::F_OFD_SETLK, offset) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// True while another opening, of this process or another, holds the byte.
    pub fn is_held(&self, offset: i64) -> io::Result<bool> {
        let answer = self.control(libc::F_OFD_GETLK, offset)?;
        Ok(c_int::from(answer.l_type) != libc::F_UNLCK)
    }

    fn control(&self, command: c_int, offset: i64) -> io::Result<libc::flock> {
        // SAFETY: an all-zero flock is a valid value; a pid of zero is what these commands demand.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = libc::F_WRLCK as i16;
        lock.l_whence = libc::SEEK_SET as i16;
        lock.l_start = offset;
        lock.l_len = 1;
        // SAFETY: the descriptor is open, and the lock a live local.
        match unsafe { libc::fcntl(self.file.as_raw_fd(), command, &mut lock) } {
            0 => Ok(lock),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for ByteLocks {
    fn drop(&mut self) {
        // Before the descriptor is closed, so that no fork finds another file under its number.
        self.slot.store(NONE, Ordering::Release);
    }
}

/// Called in a forked child, before it does anything else: lets go of what the parent holds.
///
/// The numbers stay open, because their owners will close them.
extern "C" fn let_go_after_fork() {
    // SAFETY: open, dup2 and close may be called between fork and exec, and the path is a terminated string.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if null < 0 {
            return;
        }
        for slot in &OPEN {
            let descriptor = slot.load(Ordering::Acquire);
            if descriptor != NONE {
                libc::dup3(null, descriptor, libc::O_CLOEXEC);
            }
        }
        libc::close(null);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_held_by_one_opening_until_that_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = ByteLocks::create(&path).unwrap();
        let second = ByteLocks::open(&path).unwrap();
        assert!(first.hold(7).unwrap() && first.hold(i64::MAX - 1).unwrap());
        assert!(second.is_held(7).unwrap() && !second.hold(7).unwrap());
        assert!(
            !second.is_held(8).unwrap() && !first.is_held(7).unwrap(),
            "its own does not count"
        );
        // Another look at the file by the same process takes nothing away.
        drop(ByteLocks::open(&path).unwrap());
        assert!(second.is_held(7).unwrap());
        drop(first);
        assert!(!second.is_held(7).unwrap() && !second.is_held(i64::MAX - 1).unwrap());
    }

    #[test]
    fn a_forked_child_holds_nothing_of_its_parents() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = ByteLocks::create(&path).unwrap();
        assert!(held.hold(1).unwrap());
        let watcher = ByteLocks::open(&path).unwrap();
        // SAFETY: the child only waits to be killed.
        let child = unsafe { libc::fork() };
        if child == 0 {
            loop {
                // SAFETY: waits for a signal.
                unsafe { libc::pause() };
            }
        }
        // The child's handlers run before `fork` returns there, not here: its copy may live a moment longer.
        drop(held);
        while watcher.is_held(1).unwrap() {
            std::thread::yield_now();
        }
        // SAFETY: ends and reaps the child started above.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
    }
}
