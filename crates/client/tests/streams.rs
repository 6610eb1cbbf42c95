//! Messages of all kinds through a real driver, over shared memory and over UDP.

mod live;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headrace_client::{Action, ClaimResult, FragmentAssembler, Offer, OfferError, PollLimit};
use live::{IPC, STREAM, await_that, pair, pattern, receive, send, send_with, start};

const UDP: &str = "aeron:udp?endpoint=127.0.0.1:0|term-length=64k";

/// Lengths around every boundary that matters, in a stream with 64 KiB terms.
fn every_kind_of_length(channel: &str) {
    let live = start();
    let client = live.client();
    let (publication, subscription) = pair(&client, channel);
    let (payload, message) = (
        publication.limits().max_payload_length,
        publication.limits().max_message_length,
    );
    let lengths = [
        0,
        1,
        31,
        32,
        33,
        payload - 1,
        payload,
        payload + 1,
        2 * payload,
        2 * payload + 1,
        message - 1,
        message,
    ];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (seed, length) in lengths.iter().enumerate() {
                send(&publication, &pattern(seed, *length));
            }
        });
        for (seed, received) in receive(&subscription, lengths.len()).into_iter().enumerate() {
            assert!(
                received == pattern(seed, lengths[seed]),
                "length={} differs",
                lengths[seed]
            );
        }
    });
    assert!(matches!(
        publication.offer(&vec![0; message + 1]),
        Err(OfferError::Append(_))
    ));
    assert!(live.errors.lock().unwrap().is_empty());
}

#[test]
fn messages_of_every_length_arrive_over_ipc() {
    every_kind_of_length(IPC);
}

#[test]
fn messages_of_every_length_arrive_over_udp() {
    every_kind_of_length(UDP);
}

/// Many messages of pseudo-random lengths, so that terms end everywhere.
fn many_rotations(channel: &str, messages: usize) {
    let live = start();
    let client = live.client();
    let (publication, subscription) = pair(&client, channel);
    let mut lengths = fastrand::Rng::with_seed(20_260);
    let lengths: Vec<usize> = (0..messages).map(|_| lengths.usize(0..3000)).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (seed, length) in lengths.iter().enumerate() {
                send_with(|| publication.offer_parts(&[&pattern(seed, *length)]).unwrap());
            }
        });
        let mut assembler = FragmentAssembler::new();
        let mut next = 0;
        await_that("all messages received", || {
            let each = |message: &[u8], _: &headrace_client::Header<'_>| {
                assert!(
                    message == pattern(next, lengths[next]),
                    "message {next} differs (seed 20260)"
                );
                next += 1;
            };
            let mut each = each;
            subscription
                .poll(
                    |payload, header| {
                        assembler.on_fragment(payload, header, &mut each);
                    },
                    32,
                )
                .unwrap();
            next == messages
        });
    });
    let rotations = publication.position().unwrap() / publication.limits().term_length as i64;
    assert!(rotations > 20, "rotations={rotations}");
    let image = &subscription.images()[0];
    await_that("all consumed", || {
        image.position() == publication.position().unwrap()
    });
}

#[test]
fn a_stream_runs_through_many_terms_over_ipc() {
    many_rotations(IPC, 3000);
}

#[test]
fn a_stream_runs_through_many_terms_over_udp() {
    many_rotations(UDP, 3000);
}

fn sixteen_mebibytes(channel: &str) {
    let live = start();
    let client = live.client();
    let (publication, subscription) = pair(&client, channel);
    assert_eq!(publication.limits().max_message_length, 16 * 1024 * 1024);
    let lengths = [16 * 1024 * 1024, 3, 9 * 1024 * 1024 + 1];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (seed, length) in lengths.into_iter().enumerate() {
                send(&publication, &pattern(seed, length));
            }
        });
        for (seed, message) in receive(&subscription, lengths.len()).into_iter().enumerate() {
            assert!(
                message == pattern(seed, lengths[seed]),
                "length={} differs",
                lengths[seed]
            );
        }
    });
}

#[test]
fn messages_of_sixteen_mebibytes_arrive_over_ipc() {
    sixteen_mebibytes("aeron:ipc?term-length=128m|sparse=true");
}

#[test]
fn messages_of_sixteen_mebibytes_arrive_over_udp() {
    sixteen_mebibytes("aeron:udp?endpoint=127.0.0.1:0|term-length=128m|sparse=true");
}

#[test]
fn threads_share_a_publication_and_each_keeps_its_order() {
    const THREADS: usize = 4;
    const EACH: u32 = 5000;
    let live = start();
    let client = live.client();
    let (publication, subscription) = pair(&client, IPC);
    let publication = Arc::new(publication);
    let another = client.add_publication(IPC, STREAM).unwrap();
    assert_eq!(another.original_registration_id(), publication.registration_id());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let publication = Arc::clone(&publication);
            let another = &another;
            scope.spawn(move || {
                for sequence in 0..EACH {
                    // Both handles, every way of sending, and claims that come to nothing in between.
                    let mut message = vec![thread as u8; 5 + (sequence as usize * 13) % 200];
                    message[1..5].copy_from_slice(&sequence.to_le_bytes());
                    if sequence % 7 == 0
                        && let Ok(ClaimResult::Claimed(claim)) = publication.try_claim(64)
                    {
                        claim.abort();
                    }
                    match sequence % 3 {
                        0 => send(&publication, &message),
                        1 => send(another, &message),
                        _ => send_with(|| match publication.try_claim(message.len()).unwrap() {
                            ClaimResult::Claimed(mut claim) => {
                                claim.put(0, &message);
                                let position = claim.position();
                                assert!(claim.commit());
                                Offer::Position(position)
                            }
                            ClaimResult::Refused(refusal) => refusal,
                        }),
                    };
                }
            });
        }
        let mut next = [0u32; THREADS];
        await_that("all messages received", || {
            subscription
                .poll(
                    |payload, _| {
                        let thread = payload[0] as usize;
                        let sequence = u32::from_le_bytes(payload[1..5].try_into().unwrap());
                        assert_eq!(sequence, next[thread], "thread={thread}");
                        assert!(payload[5..].iter().all(|byte| usize::from(*byte) == thread));
                        next[thread] += 1;
                    },
                    32,
                )
                .unwrap();
            next.iter().all(|count| *count == EACH)
        });
    });
}

#[test]
fn exclusive_publications_do_not_share_a_log() {
    let live = start();
    let client = live.client();
    let subscription = client.add_subscription(IPC, STREAM, Default::default()).unwrap();
    let first = client.add_exclusive_publication(IPC, STREAM).unwrap();
    let second = client.add_exclusive_publication(IPC, STREAM).unwrap();
    assert_ne!(first.session_id(), second.session_id());
    await_that("two images", || subscription.image_count() == 2);
    for publication in [&first, &second] {
        send_with(|| publication.offer(b"own").unwrap());
    }
    assert_eq!(receive(&subscription, 2), [b"own", b"own"]);
    let mut positions: Vec<_> = subscription
        .images()
        .iter()
        .map(|image| image.position())
        .collect();
    positions.dedup();
    assert_eq!(positions, [64]);
}

#[test]
fn an_exclusive_publication_takes_padding_and_ready_made_frames() {
    let live = start();
    let client = live.client();
    let subscription = client.add_subscription(IPC, STREAM, Default::default()).unwrap();
    let publication = client.add_exclusive_publication(IPC, STREAM).unwrap();
    let relay = client
        .add_exclusive_publication(&format!("{IPC}|init-term-id=5|term-id=5|term-offset=128"), 2)
        .unwrap();
    let relayed = client.add_subscription(IPC, 2, Default::default()).unwrap();
    await_that("connected", || publication.is_connected() && relay.is_connected());
    assert_eq!(send_with(|| publication.append_padding(96).unwrap()), 128);
    let mut position = 0;
    for text in ["ready", "made"] {
        position = send_with(|| publication.offer(text.as_bytes()).unwrap());
    }
    assert_eq!(position, 256);

    // The block fits the other stream once its headers say so.
    let mut block = Vec::new();
    await_that("a block of two frames", || {
        subscription
            .block_poll(|found| block = found.bytes.to_vec(), 4096)
            .unwrap();
        block.len() == 128
    });
    for (index, frame) in block.chunks_mut(64).enumerate() {
        frame[8..12].copy_from_slice(&(128 + 64 * index as i32).to_le_bytes());
        frame[12..16].copy_from_slice(&relay.session_id().to_le_bytes());
        frame[16..20].copy_from_slice(&2i32.to_le_bytes());
        frame[20..24].copy_from_slice(&5i32.to_le_bytes());
    }
    assert_eq!(send_with(|| relay.offer_block(&block).unwrap()), 256);
    assert_eq!(receive(&relayed, 2), [&b"ready"[..], b"made"]);
    let error = relay.offer_block(&block).unwrap_err();
    assert!(error.to_string().contains("term_offset"), "{error}");
}

#[test]
fn images_are_polled_up_to_a_bound_and_under_control() {
    let live = start();
    let client = live.client();
    let (publication, subscription) = pair(&client, IPC);
    for text in [b"a", b"b", b"c"] {
        send(&publication, text);
    }
    let image = subscription.images().remove(0);
    assert_eq!(image.poll(|_, _| {}, PollLimit::fragments(10).before(64)), Ok(1));
    assert_eq!(image.poll(|_, _| {}, PollLimit::fragments(10).before(64)), Ok(0));
    assert_eq!(image.poll(|_, _| Action::Break, 10), Ok(1));
    assert_eq!(
        image.poll(|_, _| Action::Abort, PollLimit::fragments(10).before(1000)),
        Ok(0)
    );
    assert_eq!(receive(&subscription, 1), [b"c"]);
}

#[test]
fn a_slow_subscriber_holds_the_publisher_back() {
    let live = start();
    let client = live.client();
    let (publication, subscription) = pair(&client, IPC);
    let message = vec![1; 1000];
    let mut accepted = 0usize;
    await_that("back pressure", || match publication.offer(&message).unwrap() {
        Offer::Position(_) => {
            accepted += 1;
            false
        }
        Offer::BackPressured => true,
        other => panic!("{other:?}"),
    });
    // The window is half a term; one message may overshoot it.
    assert!((30..=34).contains(&accepted), "accepted={accepted}");
    assert!(publication.available_window().unwrap() <= 0);
    receive(&subscription, accepted);
    send(&publication, &message);
}

#[test]
fn subscribers_on_two_clients_see_the_same_stream() {
    let live = start();
    let (one, two) = (live.client(), live.client());
    let (publication, first) = pair(&one, IPC);
    let second = two.add_subscription(IPC, STREAM, Default::default()).unwrap();
    await_that("second image", || second.is_connected());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for seed in 0..500 {
                send(&publication, &pattern(seed, 500));
            }
            done.store(true, Ordering::Release);
        });
        let reader = scope.spawn(|| receive(&second, 500));
        let here = receive(&first, 500);
        assert!(here == reader.join().unwrap());
        assert!(
            here.iter()
                .enumerate()
                .all(|(seed, message)| *message == pattern(seed, 500))
        );
    });
    assert!(done.load(Ordering::Acquire));
}

#[test]
fn a_late_subscriber_joins_where_the_stream_is() {
    const LENGTH: usize = 992; // 1024 with its header
    let live = start();
    let client = live.client();
    let (publication, first) = pair(&client, IPC);
    for seed in 0..20 {
        send(&publication, &pattern(seed, LENGTH));
    }
    receive(&first, 20);
    // The driver has seen the first half consumed at least once the limit has moved that far.
    let window = 32 * 1024;
    await_that("limit moved", || {
        publication.position_limit().unwrap() >= 10 * 1024 + window
    });
    let second = client.add_subscription(IPC, STREAM, Default::default()).unwrap();
    await_that("second image", || second.is_connected());
    let joined = second.images()[0].join_position() as usize / 1024;
    assert!((10..=20).contains(&joined), "joined={joined}");
    send(&publication, &pattern(20, LENGTH));
    for (index, message) in receive(&second, 21 - joined).iter().enumerate() {
        assert!(*message == pattern(joined + index, LENGTH), "index={index}");
    }
    assert!(receive(&first, 1) == [pattern(20, LENGTH)]);
}

#[test]
fn reserved_values_travel_with_their_frames() {
    let live = start();
    let client = live.client();
    let (publication, subscription) = pair(&client, "aeron:udp?endpoint=127.0.0.1:0");
    send_with(|| {
        publication
            .offer_reserved(&[b"x"], |_: &_, _, length| length as i64 + 5)
            .unwrap()
    });
    let mut reserved = 0;
    await_that("message", || {
        subscription
            .poll(|_, header| reserved = header.reserved_value(), 1)
            .unwrap()
            == 1
    });
    assert_eq!(reserved, 33 + 5);
}

#[test]
fn a_wildcard_port_is_known_once_bound() {
    let live = start();
    let client = live.client();
    let subscription = client
        .add_subscription("aeron:udp?endpoint=127.0.0.1:0", STREAM, Default::default())
        .unwrap();
    await_that("endpoint bound", || subscription.resolved_endpoint().is_some());
    let endpoint = subscription.resolved_endpoint().unwrap();
    let address: std::net::SocketAddr = endpoint.parse().unwrap();
    assert!(address.port() != 0 && address.ip().is_loopback());
    assert_eq!(
        subscription.resolved_channel().unwrap(),
        format!("aeron:udp?endpoint={endpoint}")
    );
    assert_eq!(subscription.status().local_socket_addresses(), [endpoint]);
}
