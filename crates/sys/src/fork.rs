//! Telling a forked child from the process it was copied from.
//!
//! Threads do not survive a fork, and a child shares the parent's mapped files, so objects made before a fork
//! must not be used after it. Asking the kernel for the process id costs a system call; the hot path compares
//! a counter that only a fork moves.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

static GENERATION: AtomicU64 = AtomicU64::new(1);
static INSTALL: Once = Once::new();

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Starts counting forks. Called before the first [`generation`] is remembered; further calls do nothing.
pub fn watch() {
    INSTALL.call_once(|| call_in_children(in_child));
}

/// Has each forked child call a function, which does only what is safe between fork and exec: atomics, open, dup3, close.
pub(crate) fn call_in_children(handler: extern "C" fn()) {
    // SAFETY: the handler is a function of this program without arguments. A failure (no memory) leaves it uncalled.
    unsafe { libc::pthread_atfork(None, None, Some(handler)) };
}

/// Number of forks between the process that first called [`watch`] and this one, plus one. Two equal values
/// in one program mean the same process.
#[inline]
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_sees_another_generation_and_the_parent_the_same() {
        watch();
        watch();
        let before = generation();
        // SAFETY: the child calls only an atomic load and _exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends the child without running anything else.
            unsafe { libc::_exit(i32::from(generation() == before)) };
        }
        let mut status = -1;
        // SAFETY: waits for the child started above; status is a live integer.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!((status, generation()), (0, before));
    }
}
