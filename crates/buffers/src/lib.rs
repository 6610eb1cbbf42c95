//! Shared-memory structures: what two processes on one host must agree on, byte by byte.
//!
//! Algorithms are written over the [`Memory`] trait, which is laid over a mapping by [`AtomicBuffer`] in
//! programs and over loom's own atomics in models.

pub mod atomic_buffer;
pub mod broadcast;
pub mod cnc;
pub mod counters;
pub mod doorbell;
pub mod error;
pub mod error_log;
pub mod event_log;
pub mod liveness;
pub mod log;
#[cfg(all(test, loom))]
pub(crate) mod loom_memory;
pub mod loss_report;
pub mod memory;
pub mod pulse;
mod record;
pub mod ring;
pub mod seq_lock;

pub use atomic_buffer::AtomicBuffer;
pub use error::BufferError;
pub use memory::Memory;

/// Rounds `value` up to a multiple of `alignment`, a power of two.
#[inline]
pub const fn align(value: usize, alignment: usize) -> usize {
    (value + (alignment - 1)) & !(alignment - 1)
}
