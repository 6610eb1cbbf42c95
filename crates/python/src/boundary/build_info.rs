//! What the extension was built from.

/// The commit, as the Makefile knows it. The binaries alone take it, so that a commit links them anew and compiles nothing
/// else.
pub(crate) const COMMIT: &str = match option_env!("HEADRACE_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};
