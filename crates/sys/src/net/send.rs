//! Sending runs of datagrams with as few system calls as the kernel allows.
//!
//! One `sendmmsg` carries many messages; with segmentation each message is itself cut by the kernel into up to
//! [`SEGMENTS_MAX`] datagrams of equal length. A message is accepted whole or not at all.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

use socket2::SockAddr;

use super::MAX_DATAGRAM_LENGTH;
use super::offload::{OffloadMode, is_transient};
use super::socket::UdpSocket;
use crate::Region;

/// `k` datagrams next to each other in memory, all `datagram_length` bytes long except that the last may be
/// shorter.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The bytes of all datagrams.
    pub region: Region<'a>,
    /// Length of each datagram but the last.
    pub datagram_length: usize,
}

/// Most datagrams in one segmented message that every kernel with the option takes.
const SEGMENTS_MAX: usize = 64;

/// Most messages handed to the kernel in one call. Bounds the stack the call needs.
const MESSAGES_MAX: usize = 64;

impl UdpSocket {
    /// Sends one datagram, to the connected peer when `to` is `None`. `Ok(0)` when the kernel has no room or
    /// reports that no socket received an earlier datagram.
    pub fn send_to(&self, datagram: Region<'_>, to: Option<SocketAddr>) -> io::Result<usize> {
        send_one(self.as_raw_fd(), datagram, to.map(SockAddr::from).as_ref())
    }

    /// Sends runs of datagrams in order. Returns the bytes of the whole datagrams that the kernel accepted: less
    /// than all when it has no more room.
    pub fn send_runs(&self, runs: &[Run<'_>], to: Option<SocketAddr>) -> io::Result<usize> {
        send_runs(self, runs, to.map(SockAddr::from).as_ref())
    }
}

fn send_one(descriptor: RawFd, datagram: Region<'_>, to: Option<&SockAddr>) -> io::Result<usize> {
    let (address, address_length) = to.map_or((std::ptr::null(), 0), |to| (to.as_ptr().cast(), to.len()));
    // SAFETY: the region is mapped for its lifetime, the address is null or a live address of the length given.
    let sent = unsafe {
        libc::sendto(
            descriptor,
            datagram.as_ptr().cast(),
            datagram.len(),
            libc::MSG_NOSIGNAL,
            address,
            address_length,
        )
    };
    if sent >= 0 {
        return Ok(sent as usize);
    }
    let error = io::Error::last_os_error();
    if is_transient(&error) { Ok(0) } else { Err(error) }
}

/// Address, length and datagram length of bytes that fit one message.
type Piece = (*const u8, usize, usize);

/// Walks runs in pieces that fit one message each, remembering where it is.
struct Pieces<'r, 'a> {
    runs: &'r [Run<'a>],
    run: usize,
    offset: usize,
}

impl Pieces<'_, '_> {
    /// The next piece of at most `segments_max` datagrams.
    fn next(&mut self, segments_max: usize) -> Option<Piece> {
        let run = self.runs.get(self.run)?;
        let remaining = run.region.len() - self.offset;
        let segments = (MAX_DATAGRAM_LENGTH / run.datagram_length).clamp(1, segments_max);
        let length = remaining.min(segments * run.datagram_length);
        // SAFETY: the offset never passes the length of the region.
        let address = unsafe { run.region.as_ptr().add(self.offset) };
        self.advance(length);
        Some((address, length, run.datagram_length))
    }

    fn advance(&mut self, length: usize) {
        self.offset += length;
        if self
            .runs
            .get(self.run)
            .is_some_and(|run| self.offset == run.region.len())
        {
            self.run += 1;
            self.offset = 0;
        }
    }
}

/// Refuses a run without bytes, or of datagrams that no socket sends.
fn check_runs(runs: &[Run<'_>]) -> io::Result<()> {
    let is_wrong =
        |run: &&Run<'_>| run.region.is_empty() || !(1..=MAX_DATAGRAM_LENGTH).contains(&run.datagram_length);
    match runs.iter().find(is_wrong) {
        None => Ok(()),
        Some(run) => {
            let (length, datagram_length) = (run.region.len(), run.datagram_length);
            let reason = format!("a run of {length} bytes cannot hold datagrams of length={datagram_length}");
            Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
        }
    }
}

fn send_runs(socket: &UdpSocket, runs: &[Run<'_>], to: Option<&SockAddr>) -> io::Result<usize> {
    check_runs(runs)?;
    if let [run] = runs
        && run.region.len() <= run.datagram_length
    {
        return send_one(socket.as_raw_fd(), run.region, to); // the cheapest call there is, for latency
    }
    let mut accepted = 0;
    // Position of the first byte not accepted yet.
    let (mut run, mut offset) = (0, 0);
    while run < runs.len() {
        let mode = socket.send_mode();
        let pieces = Pieces { runs, run, offset };
        let outcome = match mode {
            OffloadMode::Segmentation => send_vector(socket.as_raw_fd(), pieces, SEGMENTS_MAX, to),
            OffloadMode::Vectored => send_vector(socket.as_raw_fd(), pieces, 1, to),
            OffloadMode::Single => send_first(socket.as_raw_fd(), pieces, to),
        };
        match outcome {
            Ok(sent) => {
                accepted += sent.bytes;
                (run, offset) = (sent.run, sent.offset);
                if sent.bytes == 0 {
                    return Ok(accepted);
                }
            }
            Err(error) => match fallback(mode, &error) {
                Some(lower) => socket.set_send_mode(lower),
                // What was accepted before counts; the error returns with the next call if it lasts.
                None if accepted > 0 || is_transient(&error) => return Ok(accepted),
                None => return Err(error),
            },
        }
    }
    Ok(accepted)
}

/// Next mode to try after an error that may come from the mode and not from the datagram.
fn fallback(mode: OffloadMode, error: &io::Error) -> Option<OffloadMode> {
    match (mode, error.raw_os_error()?) {
        // EIO: the route has no checksum offload. EINVAL and EMSGSIZE: a datagram is longer than the device can
        // cut. The others: an old kernel or a filter.
        (
            OffloadMode::Segmentation,
            libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP | libc::ENOPROTOOPT,
        ) => Some(OffloadMode::Vectored),
        (OffloadMode::Vectored, libc::ENOSYS | libc::EOPNOTSUPP) => Some(OffloadMode::Single),
        _ => None,
    }
}

/// How far a call came.
#[derive(Clone, Copy)]
struct Sent {
    bytes: usize,
    run: usize,
    offset: usize,
}

fn send_first(descriptor: RawFd, mut pieces: Pieces<'_, '_>, to: Option<&SockAddr>) -> io::Result<Sent> {
    let (run, offset) = (pieces.run, pieces.offset);
    let Some((address, length, _)) = pieces.next(1) else {
        return Ok(Sent {
            bytes: 0,
            run,
            offset,
        });
    };
    // SAFETY: the piece lies inside a region that is mapped while the runs are borrowed.
    let datagram = unsafe { Region::new(address, length) };
    match send_one(descriptor, datagram, to)? {
        0 => Ok(Sent {
            bytes: 0,
            run,
            offset,
        }),
        bytes => Ok(Sent {
            bytes,
            run: pieces.run,
            offset: pieces.offset,
        }),
    }
}

/// The control message that carries the segment length, laid out as the kernel reads it.
#[repr(C)]
#[derive(Clone, Copy)]
struct SegmentControl {
    header: libc::cmsghdr,
    segment_length: u16,
}

// SAFETY: CMSG_SPACE only computes.
const SEGMENT_CONTROL_SPACE: usize = unsafe { libc::CMSG_SPACE(size_of::<u16>() as u32) } as usize;
const _: () = assert!(size_of::<SegmentControl>() == SEGMENT_CONTROL_SPACE);

/// Messages under construction. The headers point into the other arrays, so it must not move once filled.
struct Messages {
    headers: [MaybeUninit<libc::mmsghdr>; MESSAGES_MAX],
    vectors: [MaybeUninit<libc::iovec>; MESSAGES_MAX],
    controls: [MaybeUninit<SegmentControl>; MESSAGES_MAX],
}

impl Messages {
    fn put(&mut self, index: usize, (address, length, datagram_length): Piece, to: Option<&SockAddr>) {
        let vector = self.vectors[index].write(libc::iovec {
            iov_base: address.cast_mut().cast(),
            iov_len: length,
        });
        // SAFETY: an all-zero msghdr names no buffers.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = vector;
        header.msg_iovlen = 1;
        if let Some(to) = to {
            header.msg_name = to.as_ptr().cast_mut().cast();
            header.msg_namelen = to.len();
        }
        if length > datagram_length {
            let control = self.controls[index].write(SegmentControl {
                header: libc::cmsghdr {
                    // SAFETY: CMSG_LEN only computes.
                    cmsg_len: unsafe { libc::CMSG_LEN(size_of::<u16>() as u32) } as _,
                    cmsg_level: libc::SOL_UDP,
                    cmsg_type: libc::UDP_SEGMENT,
                },
                segment_length: datagram_length as u16, // checked to be at most MAX_DATAGRAM_LENGTH
            });
            header.msg_control = std::ptr::from_mut(control).cast();
            header.msg_controllen = SEGMENT_CONTROL_SPACE as _;
        }
        self.headers[index].write(libc::mmsghdr {
            msg_hdr: header,
            msg_len: 0,
        });
    }
}

fn send_vector(
    descriptor: RawFd,
    mut pieces: Pieces<'_, '_>,
    segments_max: usize,
    to: Option<&SockAddr>,
) -> io::Result<Sent> {
    let nothing = Sent {
        bytes: 0,
        run: pieces.run,
        offset: pieces.offset,
    };
    let mut messages = Messages {
        headers: [const { MaybeUninit::uninit() }; MESSAGES_MAX],
        vectors: [const { MaybeUninit::uninit() }; MESSAGES_MAX],
        controls: [const { MaybeUninit::uninit() }; MESSAGES_MAX],
    };
    let mut after = [nothing; MESSAGES_MAX]; // what is sent, and where the rest starts, after message i
    let mut count = 0;
    let mut bytes = 0;
    while count < MESSAGES_MAX
        && let Some(piece) = pieces.next(segments_max)
    {
        messages.put(count, piece, to);
        bytes += piece.1;
        after[count] = Sent {
            bytes,
            run: pieces.run,
            offset: pieces.offset,
        };
        count += 1;
    }
    if count == 0 {
        return Ok(nothing);
    }
    // SAFETY: the first `count` messages were written above and point to vectors, controls, an address and
    // regions that all outlive the call; the kernel only reads them, apart from the message lengths.
    let sent = unsafe {
        libc::sendmmsg(
            descriptor,
            messages.headers.as_mut_ptr().cast(),
            count as libc::c_uint,
            libc::MSG_NOSIGNAL as _,
        )
    };
    match sent {
        1.. => Ok(after[sent as usize - 1]),
        0 => Ok(nothing),
        _ => Err(io::Error::last_os_error()),
    }
}
