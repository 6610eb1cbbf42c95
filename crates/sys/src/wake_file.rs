//! Regular files that carry nothing but "wake up".
//!
//! The owner watches its file; a write by another process makes the watch readable. Programs that copy directories open
//! and read such a file as any other, without waiting.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::check_is_file;

/// An open file for waking its owner. Closed when dropped, and at `exec`.
#[derive(Debug)]
pub struct WakeFile(File);

impl WakeFile {
    /// Opens an existing file; links and what is no regular file are refused, and not waited for.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_with(path, OpenOptions::new().read(true).write(true))
    }

    /// As [`Self::open`], making the file where there is none.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o666);
        Self::open_with(path, &mut options)
    }

    fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<Self> {
        let file = options
            .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
            .open(path)?;
        check_is_file(&file.metadata()?)?;
        Ok(Self(file))
    }

    /// Takes the lock on the file, which the kernel keeps until this and every copy of its descriptor is closed.
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

    /// Makes the owner's watch readable.
    pub fn wake(&self) {
        // On a full disk its owner looks a little later.
        let _ = self.0.write_at(&[1], 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_watch::FileWatch;

    #[test]
    fn what_one_opener_writes_the_owner_sees_and_the_file_does_not_grow() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("07");
        let owner = WakeFile::create(&path).unwrap();
        let watch = FileWatch::of_writes(&path).unwrap();
        (0..1000).for_each(|_| WakeFile::open(&path).unwrap().wake());
        assert!(watch.take() && !watch.take());
        owner.wake();
        assert!(watch.take());
        assert_eq!(std::fs::read(&path).unwrap(), [1]);
    }

    #[test]
    fn the_lock_has_one_owner_and_goes_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("07");
        let owner = WakeFile::create(&path).unwrap();
        let other = WakeFile::open(&path).unwrap();
        assert!(owner.try_lock().unwrap() && !other.try_lock().unwrap());
        drop(owner);
        assert!(other.try_lock().unwrap());
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("07")).unwrap();
        std::os::unix::fs::symlink(at("09"), at("08")).unwrap();
        drop(WakeFile::create(&at("09")).unwrap());
        for name in ["07", "08", "absent"] {
            assert!(WakeFile::open(&at(name)).is_err(), "{name}");
        }
        assert!(WakeFile::create(&at("07")).is_err() && WakeFile::create(&at("08")).is_err());
    }
}
