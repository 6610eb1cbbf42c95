//! Lines for the one who started the program.
//!
//! That they can no longer be written, because their reader has gone or a disk is full, is no reason to fail: a driver goes
//! on without them. The macros of the standard library panic then.

use std::fmt::Display;
use std::io::{self, Write};

/// A line on standard error, if it takes one.
pub fn to_stderr(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// A line on standard output, if it takes one.
pub fn to_stdout(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}
