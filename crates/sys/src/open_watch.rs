//! Learning that some process has opened a file.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Room for some events; each is 16 bytes, since the file itself is watched and not a directory.
const EVENTS_LENGTH: usize = 256;

/// Tells of openings of one file, by any process.
#[derive(Debug)]
pub struct OpenWatch(File);

impl OpenWatch {
    /// Watches `path` from now on. Fails where the system does not offer it, or a user's watches are used up.
    pub fn new(path: &Path) -> io::Result<Self> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: the call takes flags only; its result is checked before it is owned.
        let descriptor = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor with no other owner.
        let file = unsafe { File::from_raw_fd(descriptor) };
        // SAFETY: the descriptor is open and the path a C string that lives during the call.
        if unsafe { libc::inotify_add_watch(descriptor, name.as_ptr(), libc::IN_OPEN) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(file))
    }

    /// True when the file was opened since the last call.
    pub fn take(&self) -> bool {
        let mut events = [0; EVENTS_LENGTH];
        let mut opened = false;
        while let Ok(length) = (&self.0).read(&mut events) {
            opened |= length > 0;
            if length < EVENTS_LENGTH / 2 {
                break;
            }
        }
        opened
    }
}

impl AsRawFd for OpenWatch {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_opening_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, b"").unwrap();
        let watch = OpenWatch::new(&path).unwrap();
        assert!(!watch.take());
        drop(File::open(&path).unwrap());
        assert!(watch.take() && !watch.take());
        assert!(OpenWatch::new(&dir.path().join("absent")).is_err());
    }
}
