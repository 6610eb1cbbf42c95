//! Where Rust and Python meet: arguments, errors, memory that both see, forks, and the end of the interpreter.
//!
//! Every other room stands on this one.

#[macro_use]
mod macros;

pub(crate) mod arguments;
pub(crate) mod build_info;
#[allow(unsafe_code)]
pub(crate) mod c_api;
pub(crate) mod client_ref;
pub(crate) mod columns;
pub(crate) mod errors;
pub(crate) mod fork_guard;
pub(crate) mod handler_error;
pub(crate) mod interpreter_exit;
pub(crate) mod lock;
pub(crate) mod repr;
