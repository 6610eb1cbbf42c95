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
    mode_of(set_option(descriptor, libc::SOL_UDP, libc::UDP_SEGMENT, 0))
}

/// Asks the kernel to join datagrams of equal length from one source.
pub(super) fn enable_coalescing(descriptor: RawFd) -> OffloadMode {
    mode_of(set_option(descriptor, libc::SOL_UDP, libc::UDP_GRO, 1))
}

/// Asks the kernel to note when datagrams arrive; false when it cannot.
pub(super) fn enable_timestamps(descriptor: RawFd) -> bool {
    set_option(descriptor, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

fn mode_of(is_known: bool) -> OffloadMode {
    if is_known {
        OffloadMode::Segmentation
    } else {
        OffloadMode::Vectored
    }
}

fn set_option(descriptor: RawFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> bool {
    // SAFETY: the descriptor is open and the value a live local of the length given.
    let result = unsafe {
        libc::setsockopt(
            descriptor,
            level,
            name,
            std::ptr::from_ref(&value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    result == 0
}

/// The path to where the datagram should go takes only shorter ones, as far as the kernel knows.
pub fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

/// The kernel has no room, was interrupted, or passes on that an earlier datagram was not wanted: nothing is
/// wrong with the socket.
pub(super) fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED | libc::ENOBUFS)
    )
}
