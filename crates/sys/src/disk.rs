//! Space on file systems.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes that an unprivileged process can still write to the file system holding `path`.
pub fn usable_space(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: an all-zero statvfs is a valid value for the kernel to overwrite.
    let mut status: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path is a terminated string and the result a live local.
    match unsafe { libc::statvfs(path.as_ptr(), &mut status) } {
        0 => Ok((status.f_bavail as u64).saturating_mul(status.f_frsize as u64)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Mount point and type of the file system holding `path`, such as `/dev/shm (tmpfs)`; the path itself when
/// the system does not say. For messages to people.
pub fn description(path: &Path) -> String {
    let absolute = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    std::fs::read_to_string("/proc/self/mounts")
        .ok()
        .and_then(|mounts| describe(&absolute, &mounts))
        .unwrap_or_else(|| path.display().to_string())
}

/// Finds the deepest mount that `path` lies in; of several mounts on one point the last one hides the others.
fn describe(path: &Path, mounts: &str) -> Option<String> {
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let point = fields.next()?.replace("\\040", " ");
            let kind = fields.next()?;
            path.starts_with(&point)
                .then(|| (point.len(), format!("{point} ({kind})")))
        })
        .max_by_key(|(length, _)| *length)
        .map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str =
        "/dev/vda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n/dev/vdb /mnt/a\\040b xfs rw 0 0\n";

    #[test]
    fn space_is_reported_and_a_missing_path_is_an_error() {
        assert!(usable_space(Path::new("/")).unwrap() > 0);
        assert!(usable_space(Path::new("/no/such/place")).is_err());
    }

    #[test]
    fn the_deepest_mount_describes_a_path() {
        let of = |path: &str| describe(Path::new(path), MOUNTS);
        assert_eq!(of("/dev/shm/x").as_deref(), Some("/dev/shm (tmpfs)"));
        assert_eq!(of("/dev/shmx").as_deref(), Some("/ (ext4)"));
        assert_eq!(of("/mnt/a b/c").as_deref(), Some("/mnt/a b (xfs)"));
    }

    #[test]
    fn a_path_without_a_mount_describes_itself() {
        assert_eq!(describe(Path::new("relative"), MOUNTS), None);
        assert!(!description(Path::new("/")).is_empty());
    }
}
