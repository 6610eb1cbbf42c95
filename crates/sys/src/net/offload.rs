//! How much of the batching the kernel does, and which of its errors are none of the socket's.

use std::io;
use std::os::fd::RawFd;

/// How many datagrams one system call moves, best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum OffloadMode {
    /// The kernel cuts one buffer into many datagrams (`UDP_SEGMENT`) and joins many into one (`UDP_GRO`).
    #[default]
    Segmentation = 0,
    /// Many buffers, one datagram each, in one call.
    Vectored = 1,
    /// One datagram a call.
    Single = 2,
}

impl OffloadMode {
    /// Short name for labels and settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Segmentation => "segmentation",
            Self::Vectored => "vectored",
            Self::Single => "single",
        }
    }

    /// The mode of that [`name`](Self::name).
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Segmentation, Self::Vectored, Self::Single]
            .into_iter()
            .find(|mode| mode.name() == name)
    }

    pub(super) fn from_u8(value: u8) -> Self {
        match value {
            0 => Self::Segmentation,
            1 => Self::Vectored,
            _ => Self::Single,
        }
    }
}

/// Finds whether the kernel knows the segmentation option. A device may still refuse it later.
pub(super) fn probe(descriptor: RawFd) -> OffloadMode {
    let off: libc::c_int = 0;
    // SAFETY: the descriptor is open and the value a live local of the length given.
    let result = unsafe {
        libc::setsockopt(
            descriptor,
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            std::ptr::from_ref(&off).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match result {
        0 => OffloadMode::Segmentation,
        _ => OffloadMode::Vectored,
    }
}

/// Asks the kernel to join datagrams of equal length from one source.
pub(super) fn enable_coalescing(descriptor: RawFd) -> OffloadMode {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open and the value a live local of the length given.
    let result = unsafe {
        libc::setsockopt(
            descriptor,
            libc::SOL_UDP,
            libc::UDP_GRO,
            std::ptr::from_ref(&on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match result {
        0 => OffloadMode::Segmentation,
        _ => OffloadMode::Vectored,
    }
}

/// The kernel has no room, was interrupted, or passes on that an earlier datagram was not wanted: nothing is
/// wrong with the socket.
pub(super) fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED | libc::ENOBUFS)
    )
}
