//! The version of this driver, and the version of Aeron that it implements.

/// Version of this driver, as text.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The release of Aeron whose files, frames and texts this driver implements. Tools and test suites of Aeron compare
/// the labels of counters with the version of their own library.
pub const AERON_VERSION: &str = "1.53.0";
