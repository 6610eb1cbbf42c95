//! The operating-system edge of Headrace: mapped files, UDP sockets, clocks, idling.
//!
//! This crate knows nothing of the protocol. Every call into the kernel is made here, so that the crates
//! above it stay free of `unsafe` and can be driven by tests without a machine underneath.

pub mod affinity;
pub mod barrier;
pub mod byte_locks;
pub mod clock;
pub mod disk;
pub mod epoll;
pub mod file_watch;
pub mod fork;
pub mod futex;
pub mod idle;
mod lead;
pub mod mapped_file;
pub mod native_handler;
pub mod net;
pub mod park;
pub mod poll;
pub mod process;
pub mod region;
pub mod signals;
pub mod wake_file;

pub use clock::{Clock, SystemClock};
pub use mapped_file::{Access, MappedFile, check_is_file};
pub use region::Region;
