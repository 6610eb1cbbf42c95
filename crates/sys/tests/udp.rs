//! Datagrams over loopback, in every mode: contents, boundaries and order survive.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use headrace_sys::net::{OffloadMode, ReceiveBatch, Run, SocketOptions, UdpSocket};
use headrace_sys::{Clock, Region, SystemClock};
use proptest::prelude::*;

const MODES: [OffloadMode; 3] = [
    OffloadMode::Segmentation,
    OffloadMode::Vectored,
    OffloadMode::Single,
];

/// Far longer than the kernel takes.
const STAMPS_BEGIN_MAX: Duration = Duration::from_secs(10);

fn socket(offload: OffloadMode) -> UdpSocket {
    let options = SocketOptions {
        receive_buffer_length: Some(4 * 1024 * 1024),
        offload,
        ..SocketOptions::default()
    };
    UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap()
}

fn receive_all(socket: &UdpSocket, source: SocketAddr) -> Vec<Vec<u8>> {
    let mut batch = ReceiveBatch::new(8);
    let mut datagrams = Vec::new();
    loop {
        let count = socket.receive(&mut batch).unwrap();
        let before = datagrams.len();
        batch.for_each(|coalesced| {
            assert_eq!(coalesced.source, source);
            datagrams.extend(
                coalesced
                    .bytes
                    .chunks_mut(coalesced.datagram_length)
                    .map(|d| d.to_vec()),
            );
        });
        assert_eq!(datagrams.len() - before, count);
        if count == 0 {
            return datagrams;
        }
    }
}

/// Bytes of a run of `count` datagrams of `length`, the last of `last` bytes, each byte telling its place.
fn run_bytes(seed: usize, length: usize, count: usize, last: usize) -> Vec<u8> {
    (0..length * (count - 1) + last)
        .map(|i| ((i * 31 + seed * 17) >> 3) as u8)
        .collect()
}

fn expected(runs: &[(Vec<u8>, usize)]) -> Vec<Vec<u8>> {
    runs.iter()
        .flat_map(|(bytes, length)| bytes.chunks(*length).map(<[u8]>::to_vec))
        .collect()
}

fn check(send: OffloadMode, receive: OffloadMode, runs: &[(Vec<u8>, usize)]) {
    let (from, to) = (socket(send), socket(receive));
    let regions: Vec<Run<'_>> = runs
        .iter()
        .map(|(bytes, datagram_length)| Run {
            region: Region::of(bytes),
            datagram_length: *datagram_length,
        })
        .collect();
    let total: usize = runs.iter().map(|(bytes, _)| bytes.len()).sum();
    let sent = from.send_runs(&regions, to.local_addr().ok()).unwrap();
    assert_eq!(sent, total, "{send:?}");
    assert_eq!(
        receive_all(&to, from.local_addr().unwrap()),
        expected(runs),
        "{send:?} {receive:?}"
    );
}

#[test]
fn a_long_run_and_unequal_ones_arrive_whole_in_every_mode() {
    let runs = [
        (run_bytes(1, 1408, 100, 1408), 1408), // more than one message may carry
        (run_bytes(2, 64, 200, 32), 64),       // more than 64 segments, the last one short
        (run_bytes(3, 65_504, 1, 65_504), 65_504),
        (run_bytes(4, 96, 1, 96), 96),
        (run_bytes(5, 1376, 1, 1376), 1376),
    ];
    for send in MODES {
        for receive in MODES {
            check(send, receive, &runs);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_runs_arrive_whole(
        shapes in prop::collection::vec((1usize..64, 1usize..80, 1usize..64), 1..90),
        send in prop::sample::select(&MODES[..]),
        receive in prop::sample::select(&MODES[..]),
    ) {
        let runs: Vec<_> = shapes
            .iter()
            .enumerate()
            .map(|(seed, (length, count, last))| (run_bytes(seed, *length, *count, *last.min(length)), *length))
            .collect();
        // Thousands of tiny datagrams would overrun the receive buffer: keep to what fits.
        let datagrams: usize = runs.iter().map(|(bytes, length)| bytes.len().div_ceil(*length)).sum();
        prop_assume!(datagrams < 3_000);
        check(send, receive, &runs);
    }
}

#[test]
fn a_kernel_that_refuses_segmentation_is_sent_datagrams_one_by_one() {
    let (from, to) = (
        socket(OffloadMode::Segmentation),
        socket(OffloadMode::Segmentation),
    );
    if from.send_mode() != OffloadMode::Segmentation {
        eprintln!("skipped: this kernel has no UDP segmentation to refuse");
        return;
    }
    // Without checksums the kernel takes plain datagrams but answers EINVAL to segmented ones.
    set_no_check(&from);
    let runs = [(run_bytes(1, 1408, 30, 320), 1408), (run_bytes(2, 64, 3, 64), 64)];
    let regions = runs.each_ref().map(|(bytes, datagram_length)| Run {
        region: Region::of(bytes),
        datagram_length: *datagram_length,
    });
    let sent = from.send_runs(&regions, to.local_addr().ok()).unwrap();
    assert_eq!(sent, runs[0].0.len() + runs[1].0.len());
    assert_eq!(from.send_mode(), OffloadMode::Vectored);
    assert_eq!(receive_all(&to, from.local_addr().unwrap()), expected(&runs));
}

fn set_no_check(socket: &UdpSocket) {
    use std::os::fd::AsRawFd;
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open and the value a live local of the length given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NO_CHECK,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    assert_eq!(result, 0);
}

#[test]
fn connected_sockets_send_without_an_address() {
    for mode in MODES {
        let (from, to) = (socket(mode), socket(mode));
        from.connect(to.local_addr().unwrap()).unwrap();
        let bytes = run_bytes(9, 128, 5, 128);
        let run = Run {
            region: Region::of(&bytes),
            datagram_length: 128,
        };
        assert_eq!(from.send_runs(&[run], None).unwrap(), bytes.len());
        assert_eq!(receive_all(&to, from.local_addr().unwrap()).len(), 5);
    }
}

#[test]
fn a_datagram_too_long_for_udp_is_an_error_and_stops_after_what_went_before() {
    for mode in MODES {
        let (from, to) = (socket(mode), socket(mode));
        let (good, bad) = (vec![1; 64], vec![2; 65_508]);
        let run = |bytes, datagram_length| Run {
            region: Region::of(bytes),
            datagram_length,
        };
        let error = from
            .send_runs(&[run(&good, 64), run(&bad, 65_508)], to.local_addr().ok())
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let error = from.send_to(Region::of(&bad), to.local_addr().ok()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
        assert!(from.send_runs(&[run(&good, 0)], to.local_addr().ok()).is_err());
        assert_eq!(from.send_runs(&[], to.local_addr().ok()).unwrap(), 0);
    }
}

#[test]
fn a_full_socket_buffer_accepts_whole_datagrams_only() {
    // A pair of namespaces would be needed to hold packets back on a device; a peer that never reads drops at its
    // own buffer instead, so all the sender can be asked here is that it never claims a part of a datagram.
    for mode in MODES {
        let (from, to) = (socket(mode), socket(mode));
        let bytes = run_bytes(7, 1408, 4_000, 1408);
        let run = Run {
            region: Region::of(&bytes),
            datagram_length: 1408,
        };
        let sent = from.send_runs(&[run], to.local_addr().ok()).unwrap();
        assert!(sent > 0 && sent % 1408 == 0, "{sent}");
    }
}

#[test]
fn a_socket_that_is_asked_to_tells_when_datagrams_arrived() {
    let clock = SystemClock::new();
    for mode in MODES {
        let (from, silent) = (socket(mode), socket(mode));
        let options = SocketOptions {
            offload: mode,
            stamps_arrivals: true,
            ..SocketOptions::default()
        };
        let told = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        assert!(told.stamps_arrivals() && !silent.stamps_arrivals());
        let bytes = run_bytes(3, 128, 4, 100);
        let run = Run {
            region: Region::of(&bytes),
            datagram_length: 128,
        };
        let mut batch = ReceiveBatch::new(8);
        let mut arrive = |to: &UdpSocket| -> Vec<Option<i64>> {
            from.send_runs(&[run], to.local_addr().ok()).unwrap();
            let sent_ns = clock.epoch_ns();
            assert_eq!(to.receive(&mut batch).unwrap(), 4);
            let mut times_ns = Vec::new();
            batch.for_each(|joined| {
                times_ns.push(joined.arrived_ns.map(|arrived_ns| sent_ns - arrived_ns));
                if mode == OffloadMode::Segmentation {
                    assert_eq!(joined.datagram_length, 128, "the kernel joins them still");
                }
            });
            times_ns
        };
        assert_eq!(arrive(&silent).into_iter().flatten().count(), 0);
        // The kernel begins to stamp a moment after the machine's first socket asks for it. Until then a datagram has the
        // time at which it is read, which is after all were sent.
        let begun = Instant::now();
        let mut are_in_time = || {
            let before_ns = begun.elapsed().as_nanos() as i64;
            let ages_ns = arrive(&told);
            let longest_ns = begun.elapsed().as_nanos() as i64 - before_ns;
            ages_ns
                .iter()
                .all(|age_ns| age_ns.is_some_and(|age_ns| (0..=longest_ns).contains(&age_ns)))
        };
        while !are_in_time() {
            assert!(begun.elapsed() < STAMPS_BEGIN_MAX, "{mode:?}");
        }
        assert!((0..20).all(|_| are_in_time()), "{mode:?}");
    }
}
