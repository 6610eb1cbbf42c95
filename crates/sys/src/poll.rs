//! Waiting for descriptors to become readable.

use std::os::fd::RawFd;
use std::time::Duration;

use crate::park::make_precise;

/// Waits for descriptors. Kept between waits, so that waiting allocates nothing.
#[derive(Default)]
pub struct Poll(Vec<libc::pollfd>);

impl Poll {
    /// Waits until one of `descriptors` is readable, a signal comes or `timeout` is over. The caller looks for work
    /// next, whatever it was.
    pub fn wait(&mut self, descriptors: impl Iterator<Item = RawFd>, timeout: Duration) {
        make_precise();
        self.0.clear();
        self.0.extend(descriptors.map(|descriptor| libc::pollfd {
            fd: descriptor,
            events: libc::POLLIN,
            revents: 0,
        }));
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs() as libc::time_t,
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // SAFETY: the array and the time are live for the duration of the call, the length is the array's, and a
        // null mask leaves signals as they are. A descriptor that is closed is only reported.
        let result = unsafe {
            libc::ppoll(
                self.0.as_mut_ptr(),
                self.0.len() as libc::nfds_t,
                &timeout,
                std::ptr::null(),
            )
        };
        if result <= 0 {
            // Nothing was ready, or the call was interrupted and wrote nothing.
            self.0.iter_mut().for_each(|entry| entry.revents = 0);
        }
    }

    /// True when the descriptor at `index` was readable at the end of the last wait.
    pub fn is_ready(&self, index: usize) -> bool {
        self.0
            .get(index)
            .is_some_and(|entry| entry.revents & libc::POLLIN != 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_readable_descriptor_ends_the_wait_and_one_that_is_not_open_does_no_harm() {
        let (mut near, far) = UnixStream::pair().unwrap();
        near.write_all(&[1]).unwrap();
        let mut poll = Poll::default();
        poll.wait([-1, far.as_raw_fd()].into_iter(), Duration::from_secs(600));
        assert!(poll.is_ready(1) && !poll.is_ready(0) && !poll.is_ready(2));
        poll.wait(std::iter::empty(), Duration::from_nanos(1));
    }
}
