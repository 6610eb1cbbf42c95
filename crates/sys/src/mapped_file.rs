//! Files mapped into memory and shared with other processes.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;

/// How a mapping may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Loads and stores.
    ReadWrite,
    /// Loads only; a store would fault.
    ReadOnly,
}

impl Access {
    fn protection(self) -> libc::c_int {
        match self {
            Self::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
            Self::ReadOnly => libc::PROT_READ,
        }
    }
}

/// A shared mapping of a whole file, or of anonymous memory. Unmapped when dropped.
#[derive(Debug)]
pub struct MappedFile {
    base: NonNull<u8>,
    length: usize,
    access: Access,
}

// SAFETY: the mapping is plain memory with no thread affinity; races on its bytes are the business of the
// atomic accessors laid over it.
unsafe impl Send for MappedFile {}
// SAFETY: as for Send.
unsafe impl Sync for MappedFile {}

/// Fails for a directory, a pipe or a device, which have no length to map.
pub fn check_is_file(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "it is no regular file, but a directory, a pipe or a device",
    ))
}

impl MappedFile {
    /// Creates `path`, which must not exist, with `length` zero bytes and maps it.
    ///
    /// With `preallocate` the file system reserves every block now, so that running out of space is an error
    /// here and not a fault at the first store. On any error the file is removed again.
    pub fn create(path: &Path, length: u64, preallocate: bool) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o666)
            .open(path)?;
        let mapped = file
            .set_len(length)
            .and_then(|()| {
                if preallocate {
                    allocate_blocks(&file, length)
                } else {
                    Ok(())
                }
            })
            .and_then(|()| Self::map(Some(&file), length, Access::ReadWrite));
        if mapped.is_err() {
            // The caller is told of the first failure; a file that cannot be removed adds nothing to it.
            let _ = std::fs::remove_file(path);
        }
        mapped
    }

    /// Maps all of an existing file at its present length. Anything else in its place, such as a pipe, is refused and not
    /// waited for.
    pub fn open(path: &Path, access: Access) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(access == Access::ReadWrite)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)?;
        let metadata = file.metadata()?;
        check_is_file(&metadata)?;
        Self::map(Some(&file), metadata.len(), access)
    }

    /// Zeroed memory without a file.
    pub fn anonymous(length: usize) -> io::Result<Self> {
        Self::map(None, length as u64, Access::ReadWrite)
    }

    fn map(file: Option<&File>, length: u64, access: Access) -> io::Result<Self> {
        let length = usize::try_from(length).map_err(io::Error::other)?;
        if length == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "cannot map a file of length 0",
            ));
        }
        let (flags, descriptor) = match file {
            Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
            None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
        };
        // SAFETY: a null hint lets the kernel choose the address; the descriptor is open or -1 as the flags
        // demand. The result is checked before use.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                access.protection(),
                flags,
                descriptor,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(address.cast()).ok_or_else(|| io::Error::other("mmap returned null"))?;
        Ok(Self { base, length, access })
    }

    /// Gives the file back now, for good. Private memory takes its place, zero until it is written to, so that what still
    /// refers to the mapping stays valid. If the kernel refuses, the file stays mapped until this is dropped.
    pub fn release(&self) {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let address = self.base.as_ptr().cast();
        // SAFETY: it replaces this mapping and no other; to those that access the memory it is as if another process had
        // zeroed it.
        unsafe { libc::mmap(address, self.length, self.access.protection(), flags, -1, 0) };
    }

    /// First byte of the mapping, which is page aligned.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Length of the mapping in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Never true: empty files are refused.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// What the mapping was opened for.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Asks the kernel to write changed pages to the file and waits for it.
    pub fn flush(&self) -> io::Result<()> {
        // SAFETY: base and length are those of a live mapping owned by self.
        match unsafe { libc::msync(self.base.as_ptr().cast(), self.length, libc::MS_SYNC) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: base and length are those that mmap returned, and nothing can hold the mapping after drop:
        // every view keeps its owner alive.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

fn allocate_blocks(file: &File, length: u64) -> io::Result<()> {
    let length = i64::try_from(length).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open for the duration of the call.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_created_file_is_zeroed_and_has_the_length_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mapped = MappedFile::create(&path, 8192, true).unwrap();
        assert_eq!(
            (mapped.len(), std::fs::metadata(&path).unwrap().len()),
            (8192, 8192)
        );
        // SAFETY: the mapping is live and no one else has it.
        let bytes = unsafe { std::slice::from_raw_parts(mapped.base().as_ptr(), mapped.len()) };
        assert!(bytes.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn an_existing_file_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, b"keep").unwrap();
        let error = MappedFile::create(&path, 4096, false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"keep");
    }

    #[test]
    fn a_failed_creation_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        assert!(MappedFile::create(&path, u64::MAX / 2, false).is_err());
        assert!(!path.exists());
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: the name is a C string that outlives the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let refusal = MappedFile::open(&path, Access::ReadOnly).err().unwrap();
        assert!(refusal.to_string().contains("no regular file"), "{refusal}");
    }

    #[test]
    fn an_empty_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, b"").unwrap();
        assert!(MappedFile::open(&path, Access::ReadOnly).is_err());
    }

    #[test]
    fn a_file_that_was_given_back_leaves_zeroes_that_can_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mapped = MappedFile::create(&path, 8192, false).unwrap();
        let last = mapped.base().as_ptr().wrapping_add(8191);
        // SAFETY: inside the mapping, which no other thread knows.
        unsafe { last.write_volatile(7) };
        mapped.release();
        // SAFETY: as above.
        assert_eq!(unsafe { last.read_volatile() }, 0);
        // SAFETY: as above.
        unsafe { last.write_volatile(8) };
        assert_eq!(std::fs::read(&path).unwrap()[8191], 7);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        assert!(!maps.contains(path.to_str().unwrap()));
    }
}
