//! What this driver was built from.

/// Version of this driver, as text.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
