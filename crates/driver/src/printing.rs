//! Prints lines for the user who started the program.
//!
//! If they can no longer be written, because their reader has gone or a disk is full, the driver continues without
//! them; the macros of the standard library would panic.

use std::fmt::Display;
use std::io::{self, Write};

/// Prints a line on standard error, if that is possible.
pub fn to_stderr(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints a line on standard output, if that is possible.
pub fn to_stdout(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}
