//! The default directory of a driver and its clients.

use std::path::PathBuf;

/// The directory of a driver and its clients when no setting names one.
pub(crate) fn default_directory() -> PathBuf {
    let user = std::env::var("USER").ok().filter(|user| !user.is_empty());
    directory_of(&user.or_else(account_name).unwrap_or_else(|| "default".to_owned()))
}

/// The same for a user.
pub(super) fn directory_of(user: &str) -> PathBuf {
    let parent = if cfg!(target_os = "linux") {
        PathBuf::from("/dev/shm")
    } else {
        std::env::temp_dir()
    };
    parent.join(format!("aeron-{user}"))
}

/// Name of the account this process runs as, from the system's account table.
fn account_name() -> Option<String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let user_id = std::fs::metadata("/proc/self").ok()?.uid().to_string();
        let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
        let fields = accounts
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>())
            .find(|fields| fields.get(2) == Some(&user_id.as_str()))?;
        Some(fields[0].to_owned())
    }
    #[cfg(not(unix))]
    std::env::var("USERNAME").ok()
}
