//! Files of a driver that belong to another user.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use headrace_sys::process::effective_user_id;

/// Who owns the file that the system refused, and how a driver and a program of two users share it; nothing of other errors.
pub(crate) fn advice(path: &Path, error: &io::Error) -> String {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return String::new();
    }
    // A directory that may not be entered hides its files.
    let owned = path
        .ancestors()
        .find_map(|path| Some((path, fs::metadata(path).ok()?)));
    let owner = owned.map_or_else(String::new, |(path, file)| {
        let (uid, gid, mode) = (file.uid(), file.gid(), file.mode() & 0o777);
        format!(" {} has uid={uid} gid={gid} mode={mode:04o};", path.display())
    });
    format!(
        ":{owner} this program has uid={}. Run both as one user; or run the driver in a group that this program's user is in, \
         with umask 0007, so that the group may write (systemd: Group= and UMask=0007)",
        effective_user_id()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_owner_mode_user_and_umask() {
        let directory = tempfile::tempdir().unwrap();
        let metadata = fs::metadata(directory.path()).unwrap();
        let missing = directory.path().join("cnc.dat");
        let text = advice(&missing, &io::ErrorKind::PermissionDenied.into());
        let owner = format!(
            "{} has uid={} gid={} mode={:04o}; this program has uid={}.",
            directory.path().display(),
            metadata.uid(),
            metadata.gid(),
            metadata.mode() & 0o777,
            effective_user_id()
        );
        assert!(text.contains(&owner), "{text}");
        assert!(text.contains("umask 0007"), "{text}");
        assert_eq!(advice(&missing, &io::ErrorKind::NotFound.into()), "");
    }
}
