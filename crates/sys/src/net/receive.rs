//! Receiving many datagrams a call into buffers allocated once.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

use super::address;
use super::offload::{OffloadMode, is_transient};
use super::socket::UdpSocket;

/// Room for whatever the kernel joins: never more than one maximal IP packet.
const BUFFER_LENGTH: usize = 64 * 1024;

/// Words of control space a message: three for the integer of `UDP_GRO`, four for the time of `SO_TIMESTAMPNS`, with room
/// to spare.
const CONTROL_WORDS: usize = 12;

impl UdpSocket {
    /// Fills the batch with what has arrived and returns the number of datagrams: 0 when there are none.
    pub fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        batch.fill(self)
    }
}

/// Tells from the bytes of a message how long the first of the datagrams in it is: from 1 to all of them.
pub type FirstDatagram = fn(&[u8]) -> usize;

/// Datagrams that arrived together from one source.
#[derive(Debug)]
pub struct Coalesced<'a> {
    /// The bytes of all of them: `bytes.chunks_mut(datagram_length)` are the datagrams. Empty for one datagram
    /// without payload.
    pub bytes: &'a mut [u8],
    /// Length of each datagram but the last, which may be shorter. At least 1.
    pub datagram_length: usize,
    /// Where they came from.
    pub source: SocketAddr,
    /// When the first of them arrived, in nanoseconds since 1970-01-01 UTC, on a socket whose kernel notes that.
    pub arrived_ns: Option<i64>,
}

/// Buffers for datagrams, reused by every receive on every socket of an agent.
pub struct ReceiveBatch {
    // `messages` and `vectors` are pointed into the other boxes anew for each receive.
    bytes: Box<[u8]>,
    buffer_length: usize,
    sources: Box<[libc::sockaddr_storage]>,
    controls: Box<[[u64; CONTROL_WORDS]]>,
    vectors: Box<[libc::iovec]>,
    messages: Box<[libc::mmsghdr]>,
    first_datagram: Option<FirstDatagram>,
    cut: Cut,
    filled: usize,
    truncated: u64,
    withheld: u64,
}

// SAFETY: the raw pointers lead only into boxes that the batch owns, so they move with it to another thread.
unsafe impl Send for ReceiveBatch {}

impl std::fmt::Debug for ReceiveBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReceiveBatch")
            .field("buffers", &self.messages.len())
            .field("filled", &self.filled)
            .finish_non_exhaustive()
    }
}

impl ReceiveBatch {
    /// Room for `buffers` messages, at least one, each of which may hold many datagrams. Memory is only taken as
    /// messages fill it.
    pub fn new(buffers: usize) -> Self {
        Self::with_buffer_length(buffers.max(1), BUFFER_LENGTH)
    }

    /// As [`Self::new`], for a protocol whose datagrams tell their length.
    ///
    /// The kernel then need not say where it joined some, and a message that comes alone is received by the call that
    /// costs least. A function that finds other ends than the kernel's must find such as mean the same.
    pub fn of(buffers: usize, first_datagram: FirstDatagram) -> Self {
        Self {
            first_datagram: Some(first_datagram),
            ..Self::new(buffers)
        }
    }

    fn with_buffer_length(buffers: usize, buffer_length: usize) -> Self {
        // SAFETY: all-zero socket addresses and message headers are valid values that name no memory.
        let (no_source, no_message) = unsafe {
            (
                std::mem::zeroed::<libc::sockaddr_storage>(),
                std::mem::zeroed::<libc::mmsghdr>(),
            )
        };
        let no_vector = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        Self {
            bytes: vec![0; buffers * buffer_length].into_boxed_slice(),
            buffer_length,
            sources: vec![no_source; buffers].into_boxed_slice(),
            controls: vec![[0; CONTROL_WORDS]; buffers].into_boxed_slice(),
            vectors: vec![no_vector; buffers].into_boxed_slice(),
            messages: vec![no_message; buffers].into_boxed_slice(),
            first_datagram: None,
            cut: Cut::AsNoted,
            filled: 0,
            truncated: 0,
            withheld: 0,
        }
    }

    /// Has datagrams found where their sender ended them while `receive` runs, and not where it makes no difference.
    pub fn as_sent<R>(&mut self, receive: impl FnOnce(&mut Self) -> R) -> R {
        let told = self.first_datagram.take();
        let outcome = receive(self);
        self.first_datagram = told;
        outcome
    }

    /// What tells it where a datagram ends, unless the kernel is to.
    pub fn first_datagram(&self) -> Option<FirstDatagram> {
        self.first_datagram
    }

    /// Messages that one receive takes at most.
    pub fn capacity(&self) -> usize {
        self.messages.len()
    }

    /// Datagrams dropped so far because they were longer than a buffer.
    pub fn truncated(&self) -> u64 {
        self.truncated
    }

    /// Bytes so far that arrived and were dropped on purpose, before a handler saw them.
    pub fn withheld(&self) -> u64 {
        self.withheld
    }

    /// Notes that a datagram of so many bytes is dropped on purpose.
    pub fn withhold(&mut self, bytes: usize) {
        self.withheld += bytes as u64;
    }

    /// Calls `handler` for what the last receive brought, in order of arrival.
    pub fn for_each(&mut self, mut handler: impl FnMut(Coalesced<'_>)) {
        let cut = self.cut;
        for (i, chunk) in self
            .bytes
            .chunks_exact_mut(self.buffer_length)
            .take(self.filled)
            .enumerate()
        {
            let message = &self.messages[i];
            if message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
                continue;
            }
            let Some(source) = address::from_storage(&self.sources[i]) else {
                continue;
            };
            let length = message.msg_len as usize;
            let notes = notes(&message.msg_hdr);
            let mut rest = &mut chunk[..length];
            loop {
                let (bytes, others) = rest.split_at_mut(cut.end(rest));
                handler(Coalesced {
                    datagram_length: notes.datagram_length.unwrap_or(bytes.len()).max(1),
                    bytes,
                    source,
                    arrived_ns: notes.arrived_ns,
                });
                if others.is_empty() {
                    break;
                }
                rest = others;
            }
        }
    }

    fn fill(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        // The kernel looks once more after the last message that it finds. That is a good part of what a message costs
        // that comes alone, so only a socket that had several of late is asked for several.
        let offered = if socket.expects_several() {
            self.messages.len()
        } else {
            1
        };
        let plain = self
            .first_datagram
            .filter(|_| offered == 1 && !socket.stamps_arrivals());
        self.cut = plain.map_or(Cut::AsNoted, Cut::AsTold);
        if plain.is_none() {
            self.reset(offered);
        }
        loop {
            let outcome = if plain.is_some() {
                self.fill_plainly(socket.as_raw_fd())
            } else if offered == 1 || socket.receive_mode() == OffloadMode::Single {
                self.fill_singly(socket.as_raw_fd(), offered)
            } else {
                self.fill_vector(socket.as_raw_fd())
            };
            match outcome {
                Ok(filled) => {
                    socket.set_expects_several(filled > 1 || filled == offered);
                    self.filled = filled;
                    return Ok(self.count());
                }
                Err(error) if is_transient(&error) => {
                    socket.set_expects_several(false);
                    return Ok(0);
                }
                Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                    socket.set_receive_mode(OffloadMode::Single);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Offers so many buffers to the kernel, each at its full length.
    fn reset(&mut self, offered: usize) {
        self.filled = 0;
        let chunks = self.bytes.chunks_exact_mut(self.buffer_length).take(offered);
        for (i, chunk) in chunks.enumerate() {
            self.vectors[i] = libc::iovec {
                iov_base: chunk.as_mut_ptr().cast(),
                iov_len: chunk.len(),
            };
            let header = &mut self.messages[i].msg_hdr;
            header.msg_name = (&raw mut self.sources[i]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_control = (&raw mut self.controls[i]).cast();
            header.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
            header.msg_iov = &raw mut self.vectors[i];
            header.msg_iovlen = 1;
            header.msg_flags = 0;
        }
    }

    /// Receives one message without what the kernel could say of it, which costs 100 ns less where none is there and
    /// 200 ns less where one is.
    fn fill_plainly(&mut self, descriptor: RawFd) -> io::Result<usize> {
        self.filled = 0;
        let mut source_length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        // SAFETY: the kernel writes at most one buffer's length of bytes and the length given of the source, both of
        // which are there and belong to this batch, which is borrowed exclusively.
        let received = unsafe {
            libc::recvfrom(
                descriptor,
                self.bytes.as_mut_ptr().cast(),
                self.buffer_length,
                libc::MSG_DONTWAIT | libc::MSG_TRUNC,
                (&raw mut self.sources[0]).cast(),
                &mut source_length,
            )
        };
        let length = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        let message = &mut self.messages[0];
        message.msg_len = length.min(self.buffer_length) as u32;
        message.msg_hdr.msg_controllen = 0;
        message.msg_hdr.msg_flags = if length > self.buffer_length {
            libc::MSG_TRUNC
        } else {
            0
        };
        Ok(1)
    }

    fn fill_vector(&mut self, descriptor: RawFd) -> io::Result<usize> {
        // SAFETY: each message points to buffers of this batch as `reset` left them, and the batch is
        // borrowed exclusively.
        let received = unsafe {
            libc::recvmmsg(
                descriptor,
                self.messages.as_mut_ptr(),
                self.messages.len() as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }

    fn fill_singly(&mut self, descriptor: RawFd, offered: usize) -> io::Result<usize> {
        for (i, message) in self.messages[..offered].iter_mut().enumerate() {
            // SAFETY: as for `fill_vector`.
            let received = unsafe { libc::recvmsg(descriptor, &mut message.msg_hdr, libc::MSG_DONTWAIT) };
            match u32::try_from(received) {
                Ok(length) => message.msg_len = length,
                Err(_) if i == 0 => return Err(io::Error::last_os_error()),
                // What came before counts; an error that lasts returns with the next call.
                Err(_) => return Ok(i),
            }
        }
        Ok(offered)
    }

    fn count(&mut self) -> usize {
        let mut datagrams = 0;
        for (i, message) in self.messages[..self.filled].iter().enumerate() {
            if message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
                self.truncated += 1;
                continue;
            }
            let length = message.msg_len as usize;
            if let Some(each) = notes(&message.msg_hdr).datagram_length {
                datagrams += length.div_ceil(each);
                continue;
            }
            let mut rest = &self.bytes[i * self.buffer_length..][..length];
            loop {
                datagrams += 1;
                rest = &rest[self.cut.end(rest)..];
                if rest.is_empty() {
                    break;
                }
            }
        }
        datagrams
    }
}

/// Where the datagrams end in a message that the kernel has joined of some.
#[derive(Clone, Copy)]
enum Cut {
    /// Where the kernel says; without its word the message is one datagram.
    AsNoted,
    /// Where the bytes say.
    AsTold(FirstDatagram),
}

impl Cut {
    /// End of the first part.
    fn end(self, rest: &[u8]) -> usize {
        match self {
            Self::AsNoted => rest.len(),
            Self::AsTold(first_datagram) => first_datagram(rest).max(1).min(rest.len()),
        }
    }
}

/// What the kernel says of a message beside its bytes.
#[derive(Default)]
struct Notes {
    /// Length of the datagrams that it joined.
    datagram_length: Option<usize>,
    /// When the first of them arrived.
    arrived_ns: Option<i64>,
}

fn notes(header: &libc::msghdr) -> Notes {
    let mut notes = Notes::default();
    // SAFETY: the kernel wrote the control space and its length; the walk stays within that length.
    let mut control = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: null or a header inside the control space.
    while let Some(found) = unsafe { control.as_ref() } {
        match (found.cmsg_level, found.cmsg_type) {
            (libc::SOL_UDP, libc::UDP_GRO) => {
                // SAFETY: the kernel writes an integer after a header of this type.
                let length = unsafe { libc::CMSG_DATA(control).cast::<libc::c_int>().read_unaligned() };
                notes.datagram_length = usize::try_from(length).ok().filter(|length| *length > 0);
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                // SAFETY: the kernel writes a time after a header of this type.
                let time = unsafe { libc::CMSG_DATA(control).cast::<libc::timespec>().read_unaligned() };
                notes.arrived_ns = Some(time.tv_sec * 1_000_000_000 + time.tv_nsec);
            }
            _ => {}
        }
        // SAFETY: `control` came from this same header.
        control = unsafe { libc::CMSG_NXTHDR(header, control) };
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Region;
    use crate::net::SocketOptions;

    #[test]
    fn a_datagram_longer_than_a_buffer_is_dropped_and_counted() {
        for offload in [OffloadMode::Vectored, OffloadMode::Single] {
            let options = SocketOptions {
                offload,
                ..SocketOptions::default()
            };
            let to = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
            let from = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
            for length in [64, 96, 32] {
                let datagram = vec![length as u8; length];
                from.send_to(Region::of(&datagram), to.local_addr().ok()).unwrap();
            }
            let mut batch = ReceiveBatch::with_buffer_length(4, 64);
            assert_eq!(to.receive(&mut batch).unwrap(), 2);
            let mut lengths = Vec::new();
            batch.for_each(|datagrams| lengths.push(datagrams.bytes.len()));
            assert_eq!((lengths, batch.truncated()), (vec![64, 32], 1));
        }
    }

    /// How many of six waiting datagrams each receive takes.
    #[test]
    fn a_socket_is_asked_for_several_messages_once_they_come_together() {
        let options = SocketOptions {
            offload: OffloadMode::Vectored,
            ..SocketOptions::default()
        };
        let to = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let mut batch = ReceiveBatch::new(4);
        assert_eq!(to.receive(&mut batch).unwrap(), 0);
        for _ in 0..6 {
            to.send_to(Region::of(b"message"), to.local_addr().ok()).unwrap();
        }
        let taken = [(); 4].map(|()| to.receive(&mut batch).unwrap());
        assert_eq!(taken, [1, 4, 1, 0]);
    }

    #[test]
    fn an_empty_datagram_counts() {
        for mut batch in [ReceiveBatch::new(2), ReceiveBatch::of(2, first_datagram)] {
            let to = UdpSocket::bind("[::1]:0".parse().unwrap(), &SocketOptions::default()).unwrap();
            assert_eq!(to.receive(&mut batch).unwrap(), 0);
            to.send_to(Region::of(&[]), to.local_addr().ok()).unwrap();
            assert_eq!(to.receive(&mut batch).unwrap(), 1);
            let mut count = 0;
            batch.for_each(|datagrams| {
                assert!(datagrams.bytes.is_empty());
                assert_eq!(datagrams.source, to.local_addr().unwrap());
                count += 1;
            });
            assert_eq!(count, 1);
        }
    }

    /// A datagram of this protocol begins with its length.
    fn first_datagram(message: &[u8]) -> usize {
        message.first().map_or(0, |length| usize::from(*length))
    }

    #[test]
    fn datagrams_that_tell_their_length_are_found_in_a_message_that_comes_alone() {
        let to = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &SocketOptions::default()).unwrap();
        let from = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &SocketOptions::default()).unwrap();
        let mut batch = ReceiveBatch::of(4, first_datagram);
        assert_eq!(to.receive(&mut batch).unwrap(), 0);
        // As the kernel would join three: the last is shorter than it says, and the first of the next message has none.
        for message in [&[2, 0, 3, 0, 0, 9][..], &[0, 1][..]] {
            from.send_to(Region::of(message), to.local_addr().ok()).unwrap();
        }
        assert_eq!(to.receive(&mut batch).unwrap(), 3);
        let mut found = Vec::new();
        batch.for_each(|each| {
            assert_eq!(each.source, from.local_addr().unwrap());
            assert_eq!(each.datagram_length, each.bytes.len());
            found.push(each.bytes.to_vec());
        });
        assert_eq!(found, [vec![2, 0], vec![3, 0, 0], vec![9]]);
        // Several are expected now, and the kernel's word counts.
        assert_eq!(to.receive(&mut batch).unwrap(), 1);
        batch.for_each(|each| assert_eq!(each.bytes, [0, 1]));
        // As it does, on request, for a message that comes alone.
        assert_eq!(to.receive(&mut batch).unwrap(), 0);
        from.send_to(Region::of(&[1, 1]), to.local_addr().ok()).unwrap();
        batch.as_sent(|batch| {
            assert_eq!(to.receive(batch).unwrap(), 1);
            batch.for_each(|each| assert_eq!(each.bytes, [1, 1]));
        });
    }

    #[test]
    fn a_message_that_comes_alone_and_is_longer_than_a_buffer_is_counted() {
        let to = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &SocketOptions::default()).unwrap();
        let mut batch = ReceiveBatch::with_buffer_length(4, 64);
        batch.first_datagram = Some(first_datagram);
        assert_eq!(to.receive(&mut batch).unwrap(), 0);
        to.send_to(Region::of(&[65; 65]), to.local_addr().ok()).unwrap();
        assert_eq!(to.receive(&mut batch).unwrap(), 0);
        batch.for_each(|_| unreachable!());
        assert_eq!(batch.truncated(), 1);
    }
}
