//! What this driver was built from.

/// Version of this driver, as text.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Commit this driver was built from.
pub const COMMIT: &str = match option_env!("HEADRACE_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};
