//! Threads that wait are woken by what they wait for, through a real driver. They would sleep for ten minutes
//! otherwise, longer than any test may take.

mod live;

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headrace_buffers::cnc::{self, CncFile};
use headrace_buffers::doorbell::{self, Bell, Doorbells, DriverIdentity, Interests};
use headrace_client::{
    Awaited, BlockingIdle, ClaimResult, Offer, Publication, Subscription, SubscriptionHandlers,
};
use headrace_driver::ThreadingMode;
use headrace_protocol::frame::{DataHeader, Setup, data};
use headrace_sys::Access;
use headrace_sys::idle::IdleStrategy;
use live::{IPC, Live, STREAM, await_that, pair, start, start_with};

const UDP: &str = "aeron:udp?endpoint=127.0.0.1:0|term-length=64k";
const WITHOUT_END: Duration = Duration::from_secs(600);

fn wait_for(awaited: &dyn Awaited, mut has_happened: impl FnMut() -> bool) {
    let mut idle = BlockingIdle::new(IdleStrategy::default(), WITHOUT_END);
    while !has_happened() {
        idle.idle(0, awaited);
    }
}

/// A subscriber thread takes one message after another, each sent only once the one before was taken.
fn each_message_wakes(subscription: &Subscription, mut send: impl FnMut()) {
    let taken = AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..20 {
                wait_for(subscription, || subscription.poll(|_, _| {}, 1).unwrap() > 0);
                taken.store(true, Ordering::Release);
            }
        });
        for _ in 0..20 {
            await_that("message taken", || taken.swap(false, Ordering::AcqRel));
            send();
        }
    });
}

fn offer(publication: &Publication) {
    await_that("message accepted", || {
        matches!(publication.offer(b"news").unwrap(), Offer::Position(_))
    });
}

fn every_agent_its_thread() -> Live {
    start_with(|config| config.threading_mode = Some(ThreadingMode::Dedicated))
}

#[test]
fn a_message_over_shared_memory_wakes_its_reader() {
    let live = start();
    let (ours, theirs) = (live.client(), live.client());
    let (_first, subscription) = pair(&ours, IPC);
    let publication = theirs.add_publication(IPC, STREAM).unwrap();
    each_message_wakes(&subscription, || offer(&publication));
}

#[test]
fn a_claim_wakes_when_it_is_committed_and_an_exclusive_offer_as_any_other() {
    let live = start();
    let client = live.client();
    let (publication, subscription) = pair(&client, IPC);
    each_message_wakes(&subscription, || match publication.try_claim(8).unwrap() {
        ClaimResult::Claimed(claim) => assert!(claim.commit()),
        ClaimResult::Refused(refused) => panic!("{refused:?}"),
    });
    drop(publication);
    let publication = client.add_exclusive_publication(IPC, STREAM).unwrap();
    // A reader may be told before its publisher has room.
    await_that("second image", || {
        let session_id = publication.session_id();
        publication.is_connected() && subscription.image_by_session_id(session_id).is_some()
    });
    each_message_wakes(&subscription, || {
        assert!(matches!(publication.offer(b"news").unwrap(), Offer::Position(_)));
    });
}

#[test]
fn a_message_over_the_network_wakes_its_reader() {
    for live in [start(), every_agent_its_thread()] {
        let client = live.client();
        let (publication, subscription) = pair(&client, UDP);
        each_message_wakes(&subscription, || offer(&publication));
    }
}

#[test]
fn room_wakes_a_publisher() {
    for (live, channel) in [(start(), IPC), (every_agent_its_thread(), IPC), (start(), UDP)] {
        let client = live.client();
        let (publication, subscription) = pair(&client, channel);
        let message = vec![0; publication.limits().max_payload_length];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Several times what fits.
                for _ in 0..500 {
                    wait_for(&*publication, || {
                        matches!(publication.offer(&message).unwrap(), Offer::Position(_))
                    });
                }
            });
            let mut count = 0;
            wait_for(&subscription, || {
                // All that is there: nothing rings for what a look left, and the wait is without end.
                loop {
                    let taken = subscription.poll(|_, _| {}, 10).unwrap();
                    count += taken;
                    if taken == 0 {
                        break count == 500;
                    }
                }
            });
        });
    }
}

#[test]
fn a_subscriber_wakes_a_publisher_and_closing_wakes_both() {
    let live = start();
    let client = live.client();
    let publication = client.add_publication(IPC, STREAM).unwrap();
    let subscription = std::thread::scope(|scope| {
        scope.spawn(|| wait_for(&*publication, || publication.is_connected()));
        client.add_subscription(IPC, STREAM, Default::default()).unwrap()
    });
    wait_for(&subscription, || subscription.is_connected());
    std::thread::scope(|scope| {
        scope.spawn(|| wait_for(&subscription, || subscription.is_closed()));
        subscription.close();
    });
    std::thread::scope(|scope| {
        scope.spawn(|| wait_for(&*publication, || publication.is_closed()));
        publication.close();
    });
}

#[test]
fn a_publisher_that_rings_no_doorbell_is_looked_for() {
    let live = start();
    let ours = live.client();
    let subscription = ours.add_subscription(IPC, STREAM, Default::default()).unwrap();
    // As clients of other implementations, and of a driver of another one.
    std::fs::remove_file(live.driver.directory().join(doorbell::FILE_NAME)).unwrap();
    let foreign = live.client();
    let publication = foreign.add_publication(IPC, STREAM).unwrap();
    await_that("images", || subscription.is_connected());
    each_message_wakes(&subscription, || offer(&publication));
    let foreign_subscription = foreign
        .add_subscription(IPC, STREAM + 1, Default::default())
        .unwrap();
    let publication = ours.add_publication(IPC, STREAM + 1).unwrap();
    await_that("images", || foreign_subscription.is_connected());
    each_message_wakes(&foreign_subscription, || offer(&publication));
}

/// A publisher that is the test: it leaves out what it likes.
struct Publisher {
    socket: UdpSocket,
    to: SocketAddr,
}

impl Publisher {
    fn send_setup(&self) {
        let setup = Setup {
            flags: 0,
            term_offset: 0,
            session_id: 1,
            stream_id: STREAM,
            initial_term_id: 0,
            active_term_id: 0,
            term_length: 64 * 1024,
            mtu: 1408,
            ttl: 0,
        };
        let mut frame = [0; Setup::LENGTH];
        setup.encode(&mut frame);
        self.socket.send_to(&frame, self.to).unwrap();
    }

    fn send_message(&self, term_offset: i32) {
        let header = DataHeader {
            frame_length: 64,
            flags: data::FLAGS_UNFRAGMENTED,
            is_padding: false,
            term_offset,
            session_id: 1,
            stream_id: STREAM,
            term_id: 0,
            reserved_value: 0,
        };
        let mut frame = [7; 64];
        header.encode(&mut frame);
        self.socket.send_to(&frame, self.to).unwrap();
    }
}

/// It decides when to ask for what is missing, and would look a millisecond later at best.
#[test]
fn what_comes_after_a_gap_wakes_the_conductor() {
    let live = start_with(|config| {
        config.threading_mode = Some(ThreadingMode::Dedicated);
        // The end of the image would ring, too.
        config.image_liveness_timeout_ns = i64::try_from(WITHOUT_END.as_nanos()).unwrap();
    });
    let client = live.client();
    let subscription = client.add_subscription(UDP, STREAM, Default::default()).unwrap();
    await_that("endpoint bound", || subscription.resolved_endpoint().is_some());
    let publisher = Publisher {
        socket: UdpSocket::bind("127.0.0.1:0").unwrap(),
        to: subscription.resolved_endpoint().unwrap().parse().unwrap(),
    };
    await_that("image", || {
        // The first may come before the receiver knows of the subscription.
        publisher.send_setup();
        subscription.is_connected()
    });
    publisher.send_message(0);
    await_that("first message", || subscription.poll(|_, _| {}, 1).unwrap() > 0);

    let directory = live.driver.directory();
    let cnc = CncFile::map(&directory.join(cnc::FILE_NAME), Access::ReadOnly).unwrap();
    let identity = DriverIdentity {
        pid: cnc.pid(),
        start_timestamp_ms: cnc.start_timestamp_ms(),
    };
    let doorbells = Doorbells::open(directory, identity);
    let mut parker = doorbells.parker().unwrap();
    let mut interests = Interests::new(WITHOUT_END);
    interests.bell(Bell::Conductor);
    // Who rings takes back that this waits, beside the conductor itself.
    assert!(parker.arm(&interests) && !parker.arm(&interests));
    publisher.send_message(128);
    await_that("a ring for the conductor", || parker.arm(&interests));
}

#[test]
fn only_a_reader_over_shared_memory_measures_the_pace_of_its_stream() {
    let live = start();
    let client = live.client();
    for (channel, measures) in [(IPC, true), ("aeron:ipc?term-length=64k", true), (UDP, false)] {
        let subscription = client
            .add_subscription(channel, STREAM, SubscriptionHandlers::default())
            .unwrap();
        let mut idle = IdleStrategy::default();
        subscription.idle_after_poll(&mut idle, 3, 10);
        assert_eq!(idle != IdleStrategy::default(), measures, "{channel}");
    }
}
