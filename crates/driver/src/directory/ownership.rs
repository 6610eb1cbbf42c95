//! Whether the directory still belongs to the driver that made it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use headrace_buffers::cnc;

/// The CnC file of a driver, which the next driver of the directory replaces.
///
/// A process that does not run for longer than the driver's time-out, because it was stopped or its machine slept, counts as
/// dead, and another driver may have taken its directory over before it goes on. The names of logs begin anew with each
/// driver, so that the first one must touch nothing there any more. To be asked by that driver alone: as long as it
/// has its own file mapped, no other file gets its number.
#[derive(Debug)]
pub(crate) struct Ownership {
    path: PathBuf,
    file: (u64, u64),
}

impl Ownership {
    /// Of the driver that has just made the CnC file of the directory.
    pub(crate) fn of(directory: &Path) -> io::Result<Self> {
        let path = directory.join(cnc::FILE_NAME);
        let file = identity(&path)?;
        Ok(Self { path, file })
    }

    /// True when another driver has the directory. A file that is not there, or cannot be asked for, is no other driver's.
    pub(crate) fn is_lost(&self) -> bool {
        identity(&self.path).is_ok_and(|file| file != self.file)
    }

    /// True when the file is in no place any more, so that no client finds this driver.
    pub(crate) fn is_deleted(&self) -> bool {
        identity(&self.path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_lost_when_another_file_is_in_the_place_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Ownership::of(directory.path()).is_err());
        let path = directory.path().join(cnc::FILE_NAME);
        let _own = fs::File::create(&path).unwrap();
        let ownership = Ownership::of(directory.path()).unwrap();
        assert!(!ownership.is_lost());
        fs::remove_file(&path).unwrap();
        assert!(!ownership.is_lost(), "no other driver has it");
        assert!(ownership.is_deleted());
        fs::File::create(&path).unwrap();
        assert!(ownership.is_lost());
        assert!(!ownership.is_deleted());
    }
}
