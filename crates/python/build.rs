//! Writes the docstrings that the stub `python/headrace/_core.pyi` has to where `docstring!` finds them.

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

const STUB: &str = "../../python/headrace/_core.pyi";
const SCRIPT: &str = "docstrings.py";

fn main() {
    for input in [STUB, SCRIPT, "build.rs"] {
        println!("cargo:rerun-if-changed={input}");
    }
    println!("cargo:rerun-if-env-changed=PYO3_PYTHON");
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("docstrings");
    // The interpreter that the extension is built for, as PyO3 finds it.
    let python = env::var_os("PYO3_PYTHON").unwrap_or_else(|| "python3".into());
    let status = Command::new(&python).arg(SCRIPT).arg(STUB).arg(&folder).status();
    assert!(
        status.as_ref().is_ok_and(ExitStatus::success),
        "{python:?} {SCRIPT} {STUB}: {status:?}; set PYO3_PYTHON to a Python of 3.11 or later"
    );
}
