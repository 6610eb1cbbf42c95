//! Orderly stop on SIGINT and SIGTERM.
//!
//! A signal handler may do almost nothing: it stores the number and writes a byte to a pipe, and the thread
//! that waits on the pipe wakes.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

static RECEIVED: AtomicI32 = AtomicI32::new(0);
static WAKE_DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);
static INSTALLED: AtomicBool = AtomicBool::new(false);

const SIGNALS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGTERM];

/// While it lives, SIGINT and SIGTERM are remembered instead of ending the process. One at a time per process;
/// dropping it restores what was there before.
#[derive(Debug)]
pub struct ShutdownSignals {
    read_end: OwnedFd,
    // Held so that the handler's descriptor stays open.
    _write_end: OwnedFd,
    previous: [Previous; SIGNALS.len()],
}

struct Previous(libc::sigaction);

impl std::fmt::Debug for Previous {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Previous")
    }
}

extern "C" fn on_signal(signal: libc::c_int) {
    RECEIVED.store(signal, Ordering::Release);
    let descriptor = WAKE_DESCRIPTOR.load(Ordering::Acquire);
    // SAFETY: write is allowed in a handler; the byte is static; a full or closed pipe is a plain error. errno
    // is restored so that the interrupted code does not see it change.
    unsafe {
        let errno = libc::__errno_location();
        let saved = *errno;
        libc::write(descriptor, b"!".as_ptr().cast(), 1);
        *errno = saved;
    }
}

impl ShutdownSignals {
    /// Takes over both signals. An error when they are taken over already.
    pub fn install() -> io::Result<Self> {
        if INSTALLED.swap(true, Ordering::AcqRel) {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "shutdown signals are already handled",
            ));
        }
        Self::take_over().inspect_err(|_| INSTALLED.store(false, Ordering::Release))
    }

    fn take_over() -> io::Result<Self> {
        let mut ends = [-1; 2];
        // SAFETY: the array is a live local of two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: pipe2 succeeded, so both descriptors are open and have no other owner.
        let (read_end, write_end) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
        RECEIVED.store(0, Ordering::Release);
        WAKE_DESCRIPTOR.store(write_end.as_raw_fd(), Ordering::Release);
        // SAFETY: an all-zero sigaction has an empty mask and no flags; the handler is set below.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        let previous = SIGNALS.map(|signal| {
            // SAFETY: as for `action`.
            let mut previous: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: both structures are live locals, the handler is async-signal-safe, and the two signals can
            // be caught, so the call cannot fail.
            unsafe { libc::sigaction(signal, &action, &mut previous) };
            Previous(previous)
        });
        Ok(Self {
            read_end,
            _write_end: write_end,
            previous,
        })
    }

    /// Number of the last signal received, if any.
    pub fn received(&self) -> Option<i32> {
        match RECEIVED.load(Ordering::Acquire) {
            0 => None,
            signal => Some(signal),
        }
    }

    /// Waits for a signal at most this long and returns it.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<i32> {
        if self.received().is_none() {
            let mut entry = libc::pollfd {
                fd: self.read_end.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            let timeout_ms = libc::c_int::try_from(timeout.as_millis()).unwrap_or(libc::c_int::MAX);
            // SAFETY: one entry, a live local. Any outcome, an interruption too, is followed by a look.
            unsafe { libc::poll(&mut entry, 1, timeout_ms) };
        }
        self.received()
    }
}

impl Drop for ShutdownSignals {
    fn drop(&mut self) {
        for (signal, previous) in SIGNALS.iter().zip(&self.previous) {
            // SAFETY: the structure is what sigaction itself returned for this signal.
            unsafe { libc::sigaction(*signal, &previous.0, std::ptr::null_mut()) };
        }
        WAKE_DESCRIPTOR.store(-1, Ordering::Release);
        INSTALLED.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_wakes_the_waiter_and_the_old_behaviour_returns_after() {
        let signals = ShutdownSignals::install().unwrap();
        assert_eq!(signals.received(), None);
        assert_eq!(
            ShutdownSignals::install().unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        // SAFETY: the handler just installed catches the signal.
        unsafe { libc::raise(libc::SIGTERM) };
        assert_eq!(signals.wait_timeout(Duration::from_secs(10)), Some(libc::SIGTERM));
        drop(signals);
        let again = ShutdownSignals::install().unwrap();
        assert_eq!(again.wait_timeout(Duration::ZERO), None);
    }
}
