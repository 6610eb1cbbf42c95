//! The conductor's half of images, with the test as their receiver.
//!
//! | from | to | test |
//! |---|---|---|
//! | Active | Draining, Linger, Done | `a_drained_image_is_announced_gone_then_freed_when_the_receiver_lets_go` |
//! | Draining | Linger, revoked | `a_revoked_image_does_not_wait_for_its_readers` |
//! | Active | Draining, no readers | `an_image_whose_last_reader_was_dropped_drains` |

use std::net::SocketAddr;
use std::sync::Arc;

use headrace_buffers::counters::{system_counter, type_ids};
use headrace_buffers::log::{ExclusiveAppender, LogBuffers, LogSpec, rebuild};
use headrace_buffers::{AtomicBuffer, Memory};
use headrace_protocol::ErrorCode;
use headrace_protocol::event::Event;
use headrace_protocol::frame::Setup;

use super::harness::{CLIENT, Harness, SECOND};
use crate::proxy::{ConductorReply, ConductorRequest, EndpointId, ReceiverCommand};
use crate::shared::{ImageShared, ImageState, LossRange, StatusMessageDue};

const UDP: &str = "aeron:udp?endpoint=localhost:24325";
const SETUP: Setup = Setup {
    flags: 0,
    term_offset: 64,
    session_id: 55,
    stream_id: 10,
    initial_term_id: 7,
    active_term_id: 8,
    term_length: 65_536,
    mtu: 1408,
    ttl: 0,
};
const JOIN: i64 = 65_536 + 64;
/// Window of a 64 KiB term.
const WINDOW: i64 = 32_768;
const MS: i64 = super::harness::MS;

fn endpoint_of(driver: &Harness) -> EndpointId {
    let found = driver
        .receiver_commands()
        .into_iter()
        .find_map(|command| match command {
            ReceiverCommand::AddSubscription { endpoint, .. } => Some(endpoint),
            _ => None,
        });
    found.unwrap_or_else(|| panic!("{:?}", driver.events()))
}

fn set_up(driver: &mut Harness, endpoint: EndpointId, setup: Setup) {
    driver.request(ConductorRequest::CreateImage {
        endpoint,
        setup,
        source: "10.1.2.3:4567".parse().unwrap(),
    });
}

/// Subscribes, lets a SETUP come in and takes the image over as the receiver would.
pub(super) fn image(driver: &mut Harness, channel: &str) -> (i64, EndpointId, Arc<ImageShared>) {
    let subscription = driver.add_subscription(channel, 10);
    let endpoint = endpoint_of(driver);
    set_up(driver, endpoint, SETUP);
    let shared = driver
        .receiver_commands()
        .into_iter()
        .find_map(|command| match command {
            ReceiverCommand::AddImage { image, .. } => Some(image),
            _ => None,
        });
    let shared = shared.unwrap_or_else(|| panic!("{:?} {:?}", driver.events(), driver.recorded_errors()));
    shared.advance_to(ImageState::Active, "test");
    (subscription, endpoint, shared)
}

/// Bytes of the publisher's log from the join position on.
struct Publisher {
    log: LogBuffers,
}

impl Publisher {
    /// `count` messages of 128 bytes with their headers.
    fn new(count: usize) -> Self {
        let log = LogBuffers::heap(&LogSpec {
            session_id: 55,
            stream_id: 10,
            initial_term_id: 7,
            start: Some(headrace_buffers::log::StartPosition {
                term_id: 8,
                term_offset: 64,
            }),
            ..LogSpec::default()
        })
        .unwrap();
        let mut appender = ExclusiveAppender::new(&log).unwrap();
        for _ in 0..count {
            appender.offer(&[&[7; 96]], i64::MAX).unwrap();
        }
        Self { log }
    }

    /// Message `index` arrives at the image.
    fn deliver(&self, shared: &ImageShared, index: usize) {
        let offset = 64 + 128 * index;
        let mut datagram = vec![0; 128];
        self.log.term(1).get_bytes(offset, &mut datagram);
        let term: &AtomicBuffer = shared.log.term(1);
        rebuild::insert(term, offset, &datagram);
        let end = 65_536 + offset as i64 + 128;
        shared.high_water_mark.propose_max_release(end);
    }
}

fn commands(driver: &Harness) -> Vec<&'static str> {
    driver
        .receiver_commands()
        .iter()
        .map(|command| match command {
            ReceiverCommand::AddEndpoint(_) => "open",
            ReceiverCommand::RemoveEndpoint(_) => "close",
            ReceiverCommand::AddSubscription { .. } => "add",
            ReceiverCommand::RemoveSubscription { .. } => "remove",
            ReceiverCommand::AddImage { .. } => "add image",
            ReceiverCommand::RemoveImage { .. } => "remove image",
            ReceiverCommand::ClearSession { .. } => "clear",
            ReceiverCommand::RejectImage { .. } => "reject",
        })
        .collect()
}

#[test]
fn a_setup_becomes_an_image_that_readers_are_told_of() {
    let mut driver = Harness::new();
    let (subscription, _, shared) = image(&mut driver, UDP);
    assert_eq!(
        driver.names(),
        ["CounterReady", "SubscriptionReady", "AvailableImage"]
    );
    match driver.events().last() {
        Some(Event::AvailableImage {
            image_correlation_id,
            session_id,
            source_identity,
            log_file_name,
            ..
        }) => {
            assert_eq!((*image_correlation_id, *session_id), (shared.correlation_id, 55));
            assert_eq!(source_identity, "10.1.2.3:4567");
            assert!(log_file_name.ends_with(&format!("images/{}.logbuffer", shared.correlation_id)));
        }
        other => panic!("{other:?}"),
    }
    let seen = driver.images().remove(0);
    let position = driver.counters.record(seen.position_counter_id).unwrap();
    assert_eq!(
        (position.value, position.reference_id),
        (JOIN, shared.correlation_id)
    );
    assert_eq!(
        position.label,
        format!("sub-pos: {subscription} 55 10 {UDP} @{JOIN}")
    );
    for (type_id, name, value) in [
        (type_ids::RECEIVER_HIGH_WATER_MARK, "rcv-hwm", JOIN),
        (type_ids::RECEIVER_POSITION, "rcv-pos", JOIN),
        (type_ids::RECEIVER_NAKS_SENT, "rcv-naks-sent", 0),
    ] {
        let id = driver.counters.find(type_id, shared.correlation_id).unwrap();
        let record = driver.counters.record(id).unwrap();
        assert_eq!(
            record.label,
            format!("{name}: {} 55 10 {UDP}", shared.correlation_id)
        );
        assert_eq!((record.value, record.owner_id), (value, CLIENT));
    }
    assert_eq!(
        (shared.join_position, shared.initial_window_length),
        (JOIN, WINDOW as i32)
    );
    assert_eq!(shared.log.metadata().active_term_count_acquire(), 0);
}

#[test]
fn what_arrives_moves_the_rebuild_position_and_what_is_read_the_window() {
    let mut driver = Harness::new();
    let (_, _, shared) = image(&mut driver, UDP);
    let position = driver.counter(driver.images()[0].position_counter_id);
    let publisher = Publisher::new(100);
    for index in 0..100 {
        publisher.deliver(&shared, index);
    }
    driver.run_cycles();
    let end = JOIN + 12_800;
    assert_eq!(shared.rebuild_position.get(), end);
    assert_eq!(shared.status_message_after(0), None);
    position.set_release(JOIN + WINDOW / 4);
    driver.run_cycles();
    assert_eq!(
        shared.status_message_after(0),
        None,
        "a quarter of the window is not more than a quarter"
    );
    position.set_release(end);
    driver.run_cycles();
    let (_, due) = shared.status_message_after(0).unwrap();
    assert_eq!(
        due,
        StatusMessageDue {
            position: end,
            window_length: WINDOW as i32
        }
    );
}

#[test]
fn a_gap_is_reported_after_its_delay_again_and_kept_in_the_loss_report() {
    let mut driver = Harness::new();
    let (_, _, shared) = image(&mut driver, "aeron:udp?endpoint=localhost:24325|nak-delay=10ms");
    let publisher = Publisher::new(4);
    publisher.deliver(&shared, 0);
    publisher.deliver(&shared, 3);
    driver.run_cycles();
    assert_eq!(
        (shared.rebuild_position.get(), shared.loss_after(0)),
        (JOIN + 128, None)
    );
    driver.clock.advance_ns(10 * MS);
    driver.run_cycles();
    let gap = LossRange {
        term_id: 8,
        term_offset: 64 + 128,
        length: 256,
    };
    let (change, loss) = shared.loss_after(0).unwrap();
    assert_eq!(loss, gap);
    let losses = driver.losses();
    assert_eq!(
        (losses.len(), losses[0].total_bytes, losses[0].observation_count),
        (1, 256, 1)
    );
    driver.clock.advance_ns(1_000 * MS);
    driver.run_cycles();
    assert_eq!(
        shared.loss_after(change).map(|(_, loss)| loss),
        Some(gap),
        "asked for again"
    );
    assert_eq!(driver.losses()[0].total_bytes, 256, "but not lost again");
    publisher.deliver(&shared, 1);
    publisher.deliver(&shared, 2);
    driver.run_cycles();
    assert_eq!(shared.rebuild_position.get(), JOIN + 512);
}

#[test]
fn a_drained_image_is_announced_gone_then_freed_when_the_receiver_lets_go() {
    let mut driver = Harness::new();
    let (subscription, endpoint, shared) = image(&mut driver, UDP);
    let position = driver.counter(driver.images()[0].position_counter_id);
    let publisher = Publisher::new(1);
    publisher.deliver(&shared, 0);
    driver.run_cycles();
    driver.forget();
    shared.advance_to(ImageState::Draining, "test");
    driver.pass_alive(5 * SECOND);
    assert_eq!(
        shared.state(),
        ImageState::Draining,
        "the reader has not read yet"
    );
    position.set_release(JOIN + 128);
    driver.pass_alive(SECOND);
    assert_eq!(driver.unavailable(), [(shared.correlation_id, subscription)]);
    assert_eq!(commands(&driver), ["remove image", "clear"]);
    assert_eq!(shared.state(), ImageState::Linger);
    driver.reply(ConductorReply::ImageReleased {
        correlation_id: shared.correlation_id,
    });
    driver.pass_alive(9 * SECOND);
    assert_eq!(driver.image_files(), 1, "lingers for readers that have not heard");
    driver.pass_alive(3 * SECOND);
    assert_eq!((shared.state(), driver.image_files()), (ImageState::Done, 0));
    assert_eq!(
        driver.changes("image"),
        [
            " -> Init: SETUP received",
            "Init -> Active: test",
            "Active -> Draining: test",
            "Draining -> Linger: every reader has read all",
            "Linger -> Done: the liveness time-out is over",
        ]
    );
    assert_eq!(
        driver
            .counters
            .find(type_ids::RECEIVER_POSITION, shared.correlation_id),
        None
    );
    assert_eq!(
        driver.counters.find(type_ids::SUBSCRIBER_POSITION, subscription),
        None
    );
    // The channel is still subscribed to: the same session may come back.
    set_up(&mut driver, endpoint, SETUP);
    assert_eq!(driver.images().len(), 1);
}

#[test]
fn a_linger_without_readers_is_short() {
    let mut driver = Harness::new();
    let (subscription, _, shared) = image(&mut driver, UDP);
    shared.advance_to(ImageState::Draining, "test");
    driver.pass_alive(2 * SECOND);
    assert_eq!(shared.state(), ImageState::Linger);
    driver.remove_subscription(subscription);
    driver.reply(ConductorReply::ImageReleased {
        correlation_id: shared.correlation_id,
    });
    driver.pass_alive(2 * SECOND);
    assert_eq!(driver.image_files(), 0);
    let left: Vec<_> = driver
        .live_counters()
        .into_iter()
        .filter(|label| !label.starts_with("rcv-") && !label.starts_with("client"))
        .collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_revoked_image_does_not_wait_for_its_readers() {
    let mut driver = Harness::new();
    let (subscription, _, shared) = image(&mut driver, UDP);
    Publisher::new(1).deliver(&shared, 0);
    driver.run_cycles();
    driver.forget();
    shared.log.metadata().put_is_publication_revoked_release();
    driver.pass_alive(2 * SECOND);
    assert_eq!(shared.state(), ImageState::Linger);
    assert!(shared.sends_end_of_stream_status());
    assert_eq!(driver.unavailable(), [(shared.correlation_id, subscription)]);
}

#[test]
fn without_rejoin_the_session_stays_out() {
    let mut driver = Harness::new();
    let (_, _, shared) = image(&mut driver, "aeron:udp?endpoint=localhost:24325|rejoin=false");
    driver.forget();
    shared.advance_to(ImageState::Draining, "test");
    driver.pass_alive(2 * SECOND);
    assert_eq!(commands(&driver), ["remove image"]);
}

#[test]
fn an_image_whose_last_reader_was_dropped_drains() {
    let mut driver = Harness::new();
    let channel = "aeron:udp?endpoint=localhost:24325|tether=false|rejoin=false";
    let (subscription, _, shared) = image(&mut driver, channel);
    let position = driver.counter(driver.images()[0].position_counter_id);
    // Alone, a reader is itself the furthest reader: it takes a second one to be dropped.
    driver.add_subscription(
        "aeron:udp?endpoint=localhost:24325|session-id=55|tether=false|rejoin=false",
        10,
    );
    let other = driver.counter(driver.images()[1].position_counter_id);
    let publisher = Publisher::new(300);
    for index in 0..300 {
        publisher.deliver(&shared, index);
    }
    driver.run_cycles();
    other.set_release(JOIN + 300 * 128);
    driver.forget();
    driver.pass_alive(6 * SECOND);
    assert_eq!(driver.unavailable(), [(shared.correlation_id, subscription)]);
    assert_eq!(position.get(), JOIN);
    driver.pass_alive(6 * SECOND);
    assert_eq!(
        driver.counters.find(type_ids::SUBSCRIBER_POSITION, subscription),
        None
    );
    assert_eq!(shared.state(), ImageState::Active, "the other one still reads");
}

#[test]
fn a_later_reader_joins_where_the_stream_is_or_the_slowest_reader() {
    let mut driver = Harness::new();
    let (_, _, shared) = image(&mut driver, UDP);
    let first = driver.images().remove(0);
    let publisher = Publisher::new(10);
    for index in 0..10 {
        publisher.deliver(&shared, index);
    }
    driver.counter(first.position_counter_id).set_release(JOIN + 256);
    driver.run_cycles();
    driver.add_subscription(UDP, 10);
    let second = driver.images().remove(1);
    assert_eq!(second.image_correlation_id, first.image_correlation_id);
    assert_eq!(second.log_file_name, first.log_file_name);
    assert_eq!(driver.counter(second.position_counter_id).get(), JOIN + 256);
    driver.add_subscription("aeron:udp?endpoint=localhost:24325|session-id=56", 10);
    driver.add_subscription(UDP, 11);
    assert_eq!(driver.images().len(), 2);
}

#[test]
fn the_channel_closes_when_its_last_reader_and_image_are_gone() {
    let mut driver = Harness::new();
    let (subscription, _, shared) = image(&mut driver, UDP);
    driver.forget();
    driver.remove_subscription(subscription);
    assert_eq!(commands(&driver), ["remove"], "the image still says goodbye");
    shared.advance_to(ImageState::Draining, "test");
    driver.pass_alive(2 * SECOND);
    assert_eq!(commands(&driver), ["remove image", "clear", "close"]);
}

#[test]
fn a_setup_nobody_wants_any_more_is_forgotten() {
    let mut driver = Harness::new();
    driver.add_subscription("aeron:udp?endpoint=localhost:24325|session-id=1", 10);
    let endpoint = endpoint_of(&driver);
    set_up(&mut driver, endpoint, SETUP);
    assert_eq!(commands(&driver), ["clear"]);
    assert_eq!((driver.image_files(), driver.recorded_errors().len()), (0, 0));
}

#[test]
fn a_setup_that_cannot_be_is_recorded() {
    for (setup, text) in [
        (Setup { mtu: 40_000, ..SETUP }, "mtu"),
        (
            Setup { mtu: 65_504, ..SETUP },
            "mtuLength=65504 > initialWindowLength=32768",
        ),
        (
            Setup {
                term_length: 1000,
                ..SETUP
            },
            "term_length",
        ),
    ] {
        let mut driver = Harness::new();
        driver.add_subscription(UDP, 10);
        let endpoint = endpoint_of(&driver);
        set_up(&mut driver, endpoint, setup);
        assert_eq!(commands(&driver), ["clear"]);
        assert_eq!(driver.image_files(), 0);
        let errors = driver.recorded_errors();
        assert!(
            errors[0].contains(text) && errors[0].contains("10.1.2.3:4567"),
            "{errors:?}"
        );
    }
}

#[test]
fn a_log_that_cannot_be_made_is_recorded_and_the_session_cleared() {
    let mut driver = Harness::new();
    driver.add_subscription(UDP, 10);
    let endpoint = endpoint_of(&driver);
    let images = driver.directory.path().join("driver").join("images");
    std::fs::remove_dir(&images).unwrap();
    set_up(&mut driver, endpoint, SETUP);
    assert_eq!(commands(&driver), ["clear"]);
    assert!(driver.recorded_errors()[0].contains("images"));
}

#[test]
fn a_rejected_image_is_left_to_the_receiver() {
    let mut driver = Harness::new();
    let (_, _, shared) = image(&mut driver, UDP);
    driver.forget();
    driver.reject(shared.correlation_id, "no thanks");
    assert_eq!(driver.names(), ["OperationSuccess"]);
    assert_eq!(driver.system(system_counter::IMAGES_REJECTED), 1);
    match &driver.receiver_commands()[..] {
        [
            ReceiverCommand::RejectImage {
                correlation_id,
                reason,
                ..
            },
        ] => {
            assert_eq!(
                (*correlation_id, reason.as_str()),
                (shared.correlation_id, "no thanks")
            );
        }
        other => panic!("{} commands", other.len()),
    }
}

fn set_up_sessions(
    driver: &mut Harness,
    endpoint: EndpointId,
    sessions: std::ops::Range<i32>,
) -> Vec<&'static str> {
    for session_id in sessions {
        set_up(driver, endpoint, Setup { session_id, ..SETUP });
    }
    commands(driver)
}

#[test]
fn strangers_cannot_make_more_images_than_the_limit_until_some_are_gone() {
    let mut driver = Harness::with(|config| config.image_limit = 3);
    driver.add_subscription(UDP, 10);
    let endpoint = endpoint_of(&driver);
    assert_eq!(
        set_up_sessions(&mut driver, endpoint, 0..5),
        ["add image", "add image", "add image", "clear", "clear"]
    );
    assert_eq!(driver.image_files(), 3);
    let errors = driver.recorded_errors();
    assert!(
        errors.len() == 1 && errors[0].contains("aeron.headrace.image.limit=3"),
        "{errors:?}"
    );
    assert_eq!(driver.system(system_counter::ERRORS), 2);
}

#[test]
fn strangers_cannot_make_the_driver_create_more_than_the_limit_of_logs() {
    // A log of 64 KiB terms takes three of them and its metadata.
    let mut driver = Harness::with(|config| config.image_memory_limit = 2 * 256 * 1024);
    driver.add_subscription(UDP, 10);
    let endpoint = endpoint_of(&driver);
    assert_eq!(
        set_up_sessions(&mut driver, endpoint, 0..3),
        ["add image", "add image", "clear"]
    );
    let huge = Setup {
        session_id: 100,
        term_length: 1 << 30,
        ..SETUP
    };
    set_up(&mut driver, endpoint, huge);
    assert_eq!(commands(&driver), ["clear"]);
    assert_eq!(driver.image_files(), 2);
    assert!(driver.recorded_errors()[0].contains("aeron.headrace.image.memory.limit=524288"));
}

#[test]
fn setups_without_images_from_many_sources_fill_a_bounded_part_of_the_error_log() {
    let mut driver = Harness::new();
    driver.add_subscription(UDP, 10);
    let endpoint = endpoint_of(&driver);
    for port in 1000..1100 {
        driver.request(ConductorRequest::CreateImage {
            endpoint,
            setup: Setup { mtu: 65_504, ..SETUP },
            source: SocketAddr::from(([10, 1, 2, 3], port)),
        });
    }
    let errors = driver.recorded_errors();
    assert_eq!(errors.len(), 33);
    assert!(
        errors[32].starts_with("WARN - more images not created"),
        "{}",
        errors[32]
    );
}

#[test]
fn addresses_that_cannot_be_answered_fill_a_bounded_part_of_the_error_log() {
    let mut driver = Harness::new();
    for port in 1000..1100 {
        driver.request(ConductorRequest::Report {
            code: ErrorCode::GenericError.value(),
            text: format!("WARN - failed to send datagram to 10.1.2.3:{port}: no route"),
        });
    }
    let errors = driver.recorded_errors();
    assert_eq!(errors.len(), 33);
    assert!(
        errors[32].starts_with("WARN - more failures on sockets"),
        "{}",
        errors[32]
    );
}

#[test]
fn an_image_that_is_freed_makes_room_for_another() {
    let mut driver = Harness::with(|config| config.image_limit = 1);
    let (subscription, endpoint, shared) = image(&mut driver, UDP);
    driver.remove_subscription(subscription);
    shared.advance_to(ImageState::Draining, "test");
    driver.pass_alive(2 * SECOND);
    driver.reply(ConductorReply::ImageReleased {
        correlation_id: shared.correlation_id,
    });
    driver.pass_alive(12 * SECOND);
    assert_eq!(driver.image_files(), 0);
    driver.reply(ConductorReply::ReceiveEndpointReleased(endpoint));
    driver.forget();
    image(&mut driver, "aeron:udp?endpoint=localhost:24327");
}

#[test]
fn a_report_goes_to_the_error_log() {
    let mut driver = Harness::new();
    driver.request(ConductorRequest::Report {
        code: ErrorCode::GenericError.value(),
        text: "WARN - exceeded session limit".to_owned(),
    });
    assert_eq!(driver.recorded_errors(), ["WARN - exceeded session limit"]);
    assert_eq!(driver.system(system_counter::ERRORS), 1);
}
