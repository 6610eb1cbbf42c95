//! Learning that some process has opened a file, or has written to it.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Room for some events; each is 16 bytes, since the file itself is watched and not a directory.
const EVENTS_LENGTH: usize = 256;

/// Tells of what any process does with one file. The kernel joins events that are alike, so few are there to be taken.
#[derive(Debug)]
pub struct FileWatch(File);

impl FileWatch {
    /// Tells of openings of `path` from now on. Fails where the system does not offer it, or a user's watches are used
    /// up.
    pub fn of_openings(path: &Path) -> io::Result<Self> {
        Self::new(path, libc::IN_OPEN)
    }

    /// As [`Self::of_openings`], of writes to it.
    pub fn of_writes(path: &Path) -> io::Result<Self> {
        Self::new(path, libc::IN_MODIFY)
    }

    fn new(path: &Path, events: u32) -> io::Result<Self> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: the call takes flags only; its result is checked before it is owned.
        let descriptor = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor with no other owner.
        let file = unsafe { File::from_raw_fd(descriptor) };
        // SAFETY: the descriptor is open and the path a C string that lives during the call.
        if unsafe { libc::inotify_add_watch(descriptor, name.as_ptr(), events) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(file))
    }

    /// True when it happened since the last call.
    pub fn take(&self) -> bool {
        let mut events = [0; EVENTS_LENGTH];
        let mut happened = false;
        while let Ok(length) = (&self.0).read(&mut events) {
            happened |= length > 0;
            if length < EVENTS_LENGTH / 2 {
                break;
            }
        }
        happened
    }
}

impl AsRawFd for FileWatch {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn each_opening_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, b"").unwrap();
        let watch = FileWatch::of_openings(&path).unwrap();
        assert!(!watch.take());
        drop(File::open(&path).unwrap());
        assert!(watch.take() && !watch.take());
        assert!(FileWatch::of_openings(&dir.path().join("absent")).is_err());
    }

    #[test]
    fn writes_are_told_and_reading_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut file = File::create(&path).unwrap();
        let watch = FileWatch::of_writes(&path).unwrap();
        (0..10_000).for_each(|_| file.write_all(b"x").unwrap());
        assert!(watch.take() && !watch.take());
        assert_eq!(std::fs::read(&path).unwrap().len(), 10_000);
        assert!(!watch.take());
    }
}
