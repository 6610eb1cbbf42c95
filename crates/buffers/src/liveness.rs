//! Whether the processes of a driver and of its clients live, told by the kernel and not by heartbeats.
//!
//! A driver of Headrace makes a lock file in its directory and holds its first byte. A client of Headrace holds the
//! byte with the number of its client id. The kernel lets go of a byte when its process ends. Others do not know the
//! file: where it is not there, or a byte was never held, heartbeats and their time-outs decide as the protocol says.

use std::io;
use std::path::Path;

use headrace_sys::byte_locks::ByteLocks;

/// Name of the file in the driver's directory.
pub const FILE_NAME: &str = "liveness.lock";

/// Client ids start at 1.
const DRIVER: i64 = 0;

/// The lock file of a driver's directory.
#[derive(Debug)]
pub struct Liveness {
    locks: ByteLocks,
}

impl Liveness {
    /// Makes the file and shows that the driver lives, until this is dropped or the process ends.
    pub fn create(directory: &Path) -> io::Result<Self> {
        let locks = ByteLocks::create(&directory.join(FILE_NAME))?;
        if !locks.hold(DRIVER)? {
            return Err(io::Error::other("another process holds the new file"));
        }
        Ok(Self { locks })
    }

    /// Opens the file; none if the driver of the directory makes none.
    pub fn open(directory: &Path) -> io::Result<Option<Self>> {
        match ByteLocks::open(&directory.join(FILE_NAME)) {
            Ok(locks) => Ok(Some(Self { locks })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Shows that a client lives, until this is dropped or the process ends.
    pub fn hold_client(&self, client_id: i64) -> io::Result<bool> {
        self.locks.hold(client_id)
    }

    /// Whether the driver that made the file lives. Must not be asked by that driver.
    pub fn is_driver_alive(&self) -> io::Result<bool> {
        self.locks.is_held(DRIVER)
    }

    /// Whether a client lives that shows it.
    pub fn is_client_alive(&self, client_id: i64) -> io::Result<bool> {
        self.locks.is_held(client_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_sees_the_end_of_the_other() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Liveness::open(dir.path()).unwrap().is_none());
        let driver = Liveness::create(dir.path()).unwrap();
        let client = Liveness::open(dir.path()).unwrap().unwrap();
        assert!(client.is_driver_alive().unwrap());
        assert!(!driver.is_client_alive(9).unwrap());
        assert!(client.hold_client(9).unwrap());
        assert!(driver.is_client_alive(9).unwrap());
        drop(client);
        assert!(!driver.is_client_alive(9).unwrap());
        let watcher = Liveness::open(dir.path()).unwrap().unwrap();
        drop(driver);
        assert!(!watcher.is_driver_alive().unwrap());
    }
}
