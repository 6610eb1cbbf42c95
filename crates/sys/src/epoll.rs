//! One descriptor that stands for several.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Readable while one of the descriptors that were added to it is. For an event loop, which then watches this one only.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

impl Epoll {
    /// Stands for nothing yet.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the call takes flags only; its result is checked before it is owned.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor with no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Stands for `descriptor` too, until that is removed or its last copy is closed.
    pub fn add(&self, descriptor: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor)
    }

    /// No longer stands for `descriptor`.
    pub fn remove(&self, descriptor: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, descriptor)
    }

    fn control(&self, operation: libc::c_int, descriptor: RawFd) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: 0,
        };
        // SAFETY: the event lives during the call; a descriptor that is not open is refused.
        if unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, descriptor, &mut event) } == 0 {
            return Ok(());
        }
        Err(io::Error::last_os_error())
    }
}

impl AsRawFd for Epoll {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;
    use crate::poll::Poll;

    #[test]
    fn it_is_readable_while_one_of_its_descriptors_is() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let (quiet, _quiet_end) = UnixStream::pair().unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add(far.as_raw_fd()).unwrap();
        epoll.add(quiet.as_raw_fd()).unwrap();
        let mut poll = Poll::default();
        let mut is_readable = |timeout| {
            poll.wait([epoll.as_raw_fd()].into_iter(), timeout);
            poll.is_ready(0)
        };
        assert!(!is_readable(Duration::ZERO));
        near.write_all(&[1]).unwrap();
        assert!(is_readable(Duration::from_secs(600)));
        far.read_exact(&mut [0]).unwrap();
        assert!(!is_readable(Duration::ZERO));
        near.write_all(&[1]).unwrap();
        epoll.remove(far.as_raw_fd()).unwrap();
        assert!(!is_readable(Duration::ZERO));
        assert!(epoll.add(-1).is_err() && epoll.remove(far.as_raw_fd()).is_err());
    }
}
