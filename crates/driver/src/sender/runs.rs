//! Combines datagrams in the log into runs that the kernel segments itself.

use std::io;
use std::net::SocketAddr;

use headrace_buffers::AtomicBuffer;
use headrace_buffers::log::scan::Datagram;
use headrace_sys::Region;
use headrace_sys::net::Run;

use crate::transport::Transport;

/// Runs handed over in one call. Bounds the stack; a longer list goes in several calls.
const RUNS_MAX: usize = 64;

/// Sends datagrams straight from the log, in order, and returns how many of them went completely.
///
/// Neighbours of equal length that follow on in memory become one run, which may end with one shorter datagram. At most
/// `call_max` of them go in one call.
pub(super) fn send_datagrams(
    transport: &dyn Transport,
    to: Option<SocketAddr>,
    term: &AtomicBuffer,
    datagrams: &[Datagram],
    call_max: usize,
) -> io::Result<usize> {
    let mut sent_count = 0;
    while sent_count < datagrams.len() {
        let mut runs = [Run {
            region: Region::of(&[]),
            datagram_length: 0,
        }; RUNS_MAX];
        let mut run_count = 0;
        let mut grouped = 0;
        let mut bytes = 0;
        let ready = &datagrams[sent_count..];
        let ready = &ready[..ready.len().min(call_max)];
        while run_count < RUNS_MAX && grouped < ready.len() {
            let (count, length) = next_run(&ready[grouped..]);
            let first = ready[grouped];
            runs[run_count] = Run {
                region: term.region(first.offset, length),
                datagram_length: first.length,
            };
            run_count += 1;
            grouped += count;
            bytes += length;
        }
        let accepted = match transport.send_runs(&runs[..run_count], to) {
            Ok(accepted) => accepted,
            Err(_) if sent_count > 0 => return Ok(sent_count), // the error returns with the next attempt
            Err(error) => return Err(error),
        };
        if accepted < bytes {
            return Ok(sent_count + whole(ready, accepted));
        }
        sent_count += grouped;
    }
    Ok(sent_count)
}

/// How many datagrams the first run takes, and its bytes.
fn next_run(datagrams: &[Datagram]) -> (usize, usize) {
    let first = datagrams[0];
    let (mut count, mut bytes) = (1, first.length);
    let mut previous = first;
    for next in &datagrams[1..] {
        let follows_on = previous.padding == 0 && next.offset == previous.offset + previous.length;
        if !follows_on || previous.length != first.length || next.length > first.length {
            break;
        }
        count += 1;
        bytes += next.length;
        previous = *next;
    }
    (count, bytes)
}

/// How many datagrams are covered by `bytes`.
fn whole(datagrams: &[Datagram], bytes: usize) -> usize {
    let ends = datagrams.iter().scan(0, |end, datagram| {
        *end += datagram.length;
        Some(*end)
    });
    ends.take_while(|end| *end <= bytes).count()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::os::fd::RawFd;

    use headrace_sys::net::{Coalesced, OffloadMode, ReceiveBatch};

    use super::*;

    /// A socket that takes all, and knows how many datagrams each call brought.
    #[derive(Default)]
    struct Taking(RefCell<Vec<usize>>);

    impl Transport for Taking {
        fn send_runs(&self, runs: &[Run<'_>], _to: Option<SocketAddr>) -> io::Result<usize> {
            let lengths = || runs.iter().map(|run| (run.region.len(), run.datagram_length));
            let count = lengths().map(|(bytes, length)| bytes.div_ceil(length)).sum();
            self.0.borrow_mut().push(count);
            Ok(lengths().map(|(bytes, _)| bytes).sum())
        }

        fn send(&self, _datagram: &[u8], _to: Option<SocketAddr>) -> io::Result<usize> {
            Ok(0)
        }

        fn receive(
            &self,
            _batch: &mut ReceiveBatch,
            _handler: &mut dyn FnMut(Coalesced<'_>),
        ) -> io::Result<usize> {
            Ok(0)
        }

        fn connect(&self, _remote: SocketAddr) -> io::Result<()> {
            Ok(())
        }

        fn descriptor(&self) -> Option<RawFd> {
            None
        }

        fn send_mode(&self) -> OffloadMode {
            OffloadMode::Segmentation
        }

        fn receive_mode(&self) -> OffloadMode {
            OffloadMode::Segmentation
        }
    }

    #[test]
    fn a_call_takes_as_many_datagrams_as_it_may() {
        let term = AtomicBuffer::allocate(4_096);
        let all = datagrams(&[(128, 0), (128, 0), (128, 0), (64, 0), (32, 0)]);
        for (call_max, calls) in [
            (1, vec![1; 5]),
            (3, vec![3, 2]),
            (4, vec![4, 1]),
            (usize::MAX, vec![5]),
        ] {
            let socket = Taking::default();
            let sent = send_datagrams(&socket, None, &term, &all, call_max);
            assert_eq!(sent.unwrap(), 5);
            assert_eq!(*socket.0.borrow(), calls, "call_max={call_max}");
        }
    }

    fn datagrams(shapes: &[(usize, usize)]) -> Vec<Datagram> {
        let mut offset = 0;
        shapes
            .iter()
            .map(|&(length, padding)| {
                let datagram = Datagram {
                    offset,
                    length,
                    padding,
                };
                offset += length + padding;
                datagram
            })
            .collect()
    }

    fn run_counts(shapes: &[(usize, usize)]) -> Vec<usize> {
        let all = datagrams(shapes);
        let mut counts = Vec::new();
        let mut at = 0;
        while at < all.len() {
            let (count, bytes) = next_run(&all[at..]);
            assert_eq!(bytes, all[at..at + count].iter().map(|d| d.length).sum::<usize>());
            counts.push(count);
            at += count;
        }
        counts
    }

    #[test]
    fn equal_neighbours_and_one_shorter_make_a_run() {
        assert_eq!(run_counts(&[(128, 0), (128, 0), (64, 0)]), [3]);
        assert_eq!(run_counts(&[(128, 0), (64, 0), (64, 0)]), [2, 1]);
        assert_eq!(run_counts(&[(64, 0), (128, 0), (128, 0)]), [1, 2]);
    }

    #[test]
    fn what_a_padding_frame_spans_ends_a_run() {
        assert_eq!(run_counts(&[(128, 0), (128, 96), (128, 0)]), [2, 1]);
    }

    #[test]
    fn only_datagrams_accepted_whole_count() {
        let all = datagrams(&[(128, 0), (128, 32), (64, 0)]);
        let counts = [0, 127, 128, 255, 256, 319, 320].map(|bytes| whole(&all, bytes));
        assert_eq!(counts, [0, 0, 1, 1, 2, 2, 3]);
    }
}
