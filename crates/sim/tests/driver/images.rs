//! An image from its first SETUP to its deleted log, with a publisher whose frames the test makes.
//!
//! | from | to | test |
//! |---|---|---|
//! | Active | Draining, Linger, Done | `a_silent_publishers_image_drains_is_announced_gone_then_freed` |
//! | Draining | Linger, revoked | `a_revoked_image_does_not_wait_for_its_readers` |
//! | Active | Active, a reader less | `an_untethered_reader_is_dropped_for_good_without_rejoin` |

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use headrace_buffers::counters::{system_counter, type_ids};
use headrace_protocol::event::Event;
use headrace_protocol::frame::{Setup, data};

use crate::byte_client::{CLIENT, Driver, MS};
use crate::common::SECOND;
use crate::peers::FarPublisher;
use crate::publications::only_the_client_is_left;

const NEAR: &str = "aeron:udp?endpoint=near:24325";
pub(crate) const SETUP: Setup = Setup {
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

fn near(driver: &Driver) -> SocketAddr {
    SocketAddr::new(driver.node.address(), 24325)
}

/// A publisher that says nothing by itself.
pub(crate) fn quiet_publisher(driver: &mut Driver) -> Rc<RefCell<FarPublisher>> {
    let publisher = FarPublisher::new(&driver.world, near(driver), SETUP);
    let publisher = driver.add_peer(publisher);
    publisher.borrow_mut().is_silent = true;
    publisher
}

/// Subscribes, and lets a SETUP come in.
fn image(driver: &mut Driver, channel: &str) -> (i64, i64, Rc<RefCell<FarPublisher>>) {
    let subscription = driver.add_subscription(channel, 10);
    let publisher = quiet_publisher(driver);
    publisher.borrow_mut().is_silent = false;
    driver.pass_alive(200 * MS);
    let image = driver.images().pop();
    let image = image.unwrap_or_else(|| panic!("{:?} {:?}", driver.events(), driver.recorded_errors()));
    assert_eq!(image.subscription_id, subscription);
    (subscription, image.image_correlation_id, publisher)
}

fn receiver_position(driver: &Driver, image: i64) -> i64 {
    let id = driver.counters.find(type_ids::RECEIVER_POSITION, image).unwrap();
    driver.system(id)
}

/// Where the state of the image is now.
fn state(driver: &Driver) -> String {
    let changes = driver.changes("image");
    let last = changes.last().unwrap();
    last[last.find("-> ").unwrap() + 3..last.find(':').unwrap()].to_owned()
}

#[test]
fn a_setup_becomes_an_image_that_readers_are_told_of() {
    let mut driver = Driver::new();
    let (subscription, image, publisher) = image(&mut driver, NEAR);
    assert_eq!(
        driver.names(),
        ["CounterReady", "SubscriptionReady", "AvailableImage"]
    );
    match driver.events().last() {
        Some(Event::AvailableImage {
            session_id,
            source_identity,
            log_file_name,
            ..
        }) => {
            assert_eq!(*session_id, 55);
            assert_eq!(*source_identity, publisher.borrow().local().to_string());
            assert!(log_file_name.ends_with(&format!("images/{image}.logbuffer")));
        }
        other => panic!("{other:?}"),
    }
    let seen = driver.images().remove(0);
    let position = driver.counters.record(seen.position_counter_id).unwrap();
    assert_eq!((position.value, position.reference_id), (JOIN, image));
    assert_eq!(
        position.label,
        format!("sub-pos: {subscription} 55 10 {NEAR} @{JOIN}")
    );
    for (type_id, name, value) in [
        (type_ids::RECEIVER_HIGH_WATER_MARK, "rcv-hwm", JOIN),
        (type_ids::RECEIVER_POSITION, "rcv-pos", JOIN),
        (type_ids::RECEIVER_NAKS_SENT, "rcv-naks-sent", 0),
    ] {
        let id = driver.counters.find(type_id, image).unwrap();
        let record = driver.counters.record(id).unwrap();
        assert_eq!(record.label, format!("{name}: {image} 55 10 {NEAR}"));
        assert_eq!((record.value, record.owner_id), (value, CLIENT));
    }
    let publisher = publisher.borrow();
    assert_eq!(publisher.status_position(), Some(JOIN));
    assert_eq!(
        i64::from(publisher.statuses.last().unwrap().receiver_window_length),
        WINDOW
    );
}

#[test]
fn what_arrives_moves_the_rebuild_position_and_what_is_read_the_window() {
    let mut driver = Driver::new();
    let (_, image, publisher) = image(&mut driver, NEAR);
    let position = driver.counter(driver.images()[0].position_counter_id);
    for index in 0..100 {
        publisher.borrow_mut().send(index);
    }
    driver.pass_alive(SECOND);
    let end = JOIN + 12_800;
    assert_eq!(receiver_position(&driver, image), end);
    assert_eq!(publisher.borrow().status_position(), Some(JOIN));
    position.set_release(JOIN + WINDOW / 4);
    driver.pass_alive(SECOND);
    assert_eq!(
        publisher.borrow().status_position(),
        Some(JOIN),
        "a quarter of the window is not more than a quarter"
    );
    position.set_release(end);
    driver.pass_alive(10 * MS);
    assert_eq!(publisher.borrow().status_position(), Some(end));
    let window = publisher.borrow().statuses.last().unwrap().receiver_window_length;
    assert_eq!(i64::from(window), WINDOW);
}

#[test]
fn receivers_claim_the_group_of_their_channel_or_else_of_the_setting() {
    let (_, _, publisher) = image(&mut Driver::new(), &format!("{NEAR}|gtag=-7"));
    assert_eq!(publisher.borrow().statuses[0].group_tag, Some(-7));
    let mut driver = Driver::with(|config| config.set("aeron.receiver.group.tag", "9").unwrap());
    let (_, _, publisher) = image(&mut driver, NEAR);
    assert_eq!(publisher.borrow().statuses[0].group_tag, Some(9));
}

#[test]
fn an_endpoint_keeps_its_group_when_a_subscription_names_another_and_says_so() {
    for (first, claimed, has) in [("|gtag=9", Some(9), "with gtag=9"), ("", None, "without gtag")] {
        let mut driver = Driver::new();
        let (_, _, publisher) = image(&mut driver, &format!("{NEAR}{first}"));
        driver.add_subscription(&format!("{NEAR}{first}"), 11);
        driver.add_subscription(NEAR, 12);
        assert_eq!(driver.recorded_errors(), Vec::<String>::new());
        driver.add_subscription(&format!("{NEAR}|gtag=8"), 10);
        assert_eq!(driver.refusals(), []);
        let words =
            format!("WARN - channel parameter gtag=8 has no effect here: the endpoint was opened {has}; ");
        let errors = driver.recorded_errors();
        assert!(errors.len() == 1 && errors[0].contains(&words), "{errors:?}");
        driver.pass_alive(SECOND);
        let last = publisher.borrow().statuses.last().unwrap().group_tag;
        assert_eq!(last, claimed);
    }
}

#[test]
fn the_setting_or_else_the_channel_decides_the_congestion_control_of_images() {
    for (setting, params, window_length) in [
        ("cubic", "", 10 * 1408),
        ("static", "|cc=cubic", WINDOW as i32),
        ("default", "|cc=cubic", 10 * 1408),
        ("default", "", WINDOW as i32),
    ] {
        let mut driver =
            Driver::with(|config| config.set("aeron.CongestionControl.supplier", setting).unwrap());
        let (_, _, publisher) = image(&mut driver, &format!("{NEAR}{params}"));
        let first = publisher.borrow().statuses[0];
        assert_eq!(first.receiver_window_length, window_length, "{setting} {params}");
        let is_cubic = window_length != WINDOW as i32;
        let labels = driver.live_counters();
        for name in ["rcv-cc-cubic-rtt: ", "rcv-cc-cubic-wnd: "] {
            let has_counter = labels.iter().any(|label| label.starts_with(name));
            assert_eq!(has_counter, is_cubic, "{name} {setting} {params}");
        }
    }
}

#[test]
fn a_gap_is_reported_after_its_delay_again_and_kept_in_the_loss_report() {
    let mut driver = Driver::new();
    let (_, image, publisher) = image(&mut driver, &format!("{NEAR}|nak-delay=10ms"));
    publisher.borrow_mut().send(0);
    publisher.borrow_mut().send(3);
    driver.pass_alive(5 * MS);
    assert_eq!(receiver_position(&driver, image), JOIN + 128);
    assert!(publisher.borrow().naks.is_empty());
    driver.pass_alive(10 * MS);
    {
        let naks = &publisher.borrow().naks;
        let gaps: Vec<_> = naks
            .iter()
            .map(|nak| (nak.term_id, nak.term_offset, nak.length))
            .collect();
        assert_eq!(gaps, [(8, 64 + 128, 256)]);
    }
    let losses = driver.losses();
    assert_eq!(
        (losses.len(), losses[0].total_bytes, losses[0].observation_count),
        (1, 256, 1)
    );
    driver.pass_alive(1_100 * MS);
    assert_eq!(publisher.borrow().naks.len(), 2, "asked for again");
    assert_eq!(publisher.borrow().naks[0], publisher.borrow().naks[1]);
    assert_eq!(driver.losses()[0].total_bytes, 256, "but not lost again");
    publisher.borrow_mut().send(1);
    publisher.borrow_mut().send(2);
    driver.pass_alive(10 * MS);
    assert_eq!(receiver_position(&driver, image), JOIN + 512);
}

#[test]
fn a_silent_publishers_image_drains_is_announced_gone_then_freed() {
    let mut driver = Driver::new();
    let (subscription, image, publisher) = image(&mut driver, NEAR);
    let position = driver.counter(driver.images()[0].position_counter_id);
    publisher.borrow_mut().send(0);
    driver.pass_alive(10 * MS);
    publisher.borrow_mut().is_silent = true;
    driver.forget();
    driver.pass_alive(16 * SECOND);
    assert_eq!(state(&driver), "Draining", "the reader has not read yet");
    position.set_release(JOIN + 128);
    driver.pass_alive(2 * SECOND);
    assert_eq!(driver.unavailable(), [(image, subscription)]);
    assert_eq!(state(&driver), "Linger");
    driver.pass_alive(7 * SECOND);
    assert_eq!(driver.image_files(), 1, "lingers for readers that have not heard");
    driver.pass_alive(5 * SECOND);
    assert_eq!((state(&driver).as_str(), driver.image_files()), ("Done", 0));
    assert_eq!(
        driver.changes("image"),
        [
            " -> Init: SETUP received",
            "Init -> Active: taken over by the receiver",
            "Active -> Draining: nothing received for the image liveness time-out",
            "Draining -> Linger: every reader has read all",
            "Linger -> Done: the liveness time-out is over",
        ]
    );
    assert_eq!(driver.counters.find(type_ids::RECEIVER_POSITION, image), None);
    assert_eq!(
        driver.counters.find(type_ids::SUBSCRIBER_POSITION, subscription),
        None
    );
    // The channel is still subscribed to: the same session may come back.
    driver.forget();
    publisher.borrow_mut().is_silent = false;
    driver.pass_alive(SECOND);
    assert_eq!(driver.images().len(), 1);
}

#[test]
fn an_image_whose_sender_is_too_far_ahead_says_so_when_it_goes() {
    let mut driver = Driver::new();
    let (_, _, publisher) = image(&mut driver, NEAR);
    publisher.borrow_mut().is_silent = true;
    for _ in 0..12 {
        // More than half a term after what is read.
        publisher.borrow_mut().send(300);
        driver.pass_alive(SECOND);
    }
    assert_eq!(state(&driver), "Linger");
    assert_eq!(
        driver.changes("image")[2],
        "Active -> Draining: too far behind the sender: all that came in the image liveness time-out was more than half a term \
         ahead of what is read"
    );
}

#[test]
fn an_image_that_asks_in_vain_for_what_is_far_behind_goes() {
    let mut driver = Driver::new();
    let (_, _, publisher) = image(&mut driver, NEAR);
    publisher.borrow_mut().send(300);
    // As an idle publisher in Java, it goes on with heartbeats and SETUPs, and repairs nothing.
    publisher.borrow_mut().setup.term_offset += 301 * 128;
    driver.pass_alive(14 * SECOND);
    assert!(!publisher.borrow().naks.is_empty());
    let changes = driver.changes("image");
    assert!(changes.len() > 2, "{changes:?}");
    assert!(changes[2].starts_with("Active -> Draining: too far behind the sender"));
    assert_eq!(
        publisher.borrow().status_position(),
        Some(JOIN + 301 * 128),
        "it joined anew"
    );
}

#[test]
fn a_reader_that_pauses_far_behind_an_idle_sender_keeps_its_image() {
    let mut driver = Driver::new();
    let (_, _, publisher) = image(&mut driver, NEAR);
    let position = driver.counter(driver.images()[0].position_counter_id);
    for index in 0..256 {
        publisher.borrow_mut().send(index);
    }
    publisher.borrow_mut().send(300);
    driver.pass_alive(14 * SECOND);
    assert_eq!(state(&driver), "Active", "there is no room for what is missing");
    position.set_release(JOIN + 256 * 128);
    driver.pass_alive(SECOND);
    assert!(!publisher.borrow().naks.is_empty());
    for index in 256..300 {
        publisher.borrow_mut().send(index);
    }
    driver.pass_alive(14 * SECOND);
    assert_eq!(state(&driver), "Active");
}

#[test]
fn a_reader_that_pauses_with_room_for_part_of_a_message_keeps_its_image() {
    let mut driver = Driver::new();
    let (_, _, publisher) = image(&mut driver, NEAR);
    let position = driver.counter(driver.images()[0].position_counter_id);
    for index in 0..256 {
        publisher.borrow_mut().send(index);
    }
    driver.pass_alive(SECOND);
    position.set_release(JOIN + 128 * 128);
    driver.pass_alive(SECOND);
    for index in 256..383 {
        publisher.borrow_mut().send(index);
    }
    publisher.borrow_mut().send(450);
    let mut repairs = 0;
    // There is room for 128 bytes more. The sender repairs them with a frame of 256.
    for _ in 0..140 {
        driver.pass_alive(100 * MS);
        if !std::mem::take(&mut publisher.borrow_mut().naks).is_empty() {
            publisher.borrow_mut().send_frame(383, 256);
            repairs += 1;
        }
    }
    assert!(repairs > 1);
    assert_eq!(state(&driver), "Active");
}

#[test]
fn a_linger_without_readers_is_short() {
    let mut driver = Driver::new();
    let (subscription, _, publisher) = image(&mut driver, NEAR);
    publisher.borrow_mut().is_silent = true;
    driver.pass_alive(13 * SECOND);
    assert_eq!(state(&driver), "Linger");
    driver.remove_subscription(subscription);
    driver.pass_alive(4 * SECOND);
    assert!(only_the_client_is_left(&driver), "{:?}", driver.live_counters());
}

#[test]
fn a_revoked_image_does_not_wait_for_its_readers() {
    let mut driver = Driver::new();
    let (subscription, image, publisher) = image(&mut driver, NEAR);
    publisher.borrow_mut().send(0);
    driver.pass_alive(10 * MS);
    driver.forget();
    publisher.borrow_mut().flags |= data::FLAG_END_OF_STREAM | data::FLAG_REVOKED;
    driver.pass_alive(SECOND / 2);
    publisher.borrow_mut().is_silent = true;
    driver.pass_alive(3 * SECOND);
    assert_eq!(state(&driver), "Linger");
    assert!(publisher.borrow().statuses.last().unwrap().is_end_of_stream());
    assert_eq!(driver.unavailable(), [(image, subscription)]);
}

#[test]
fn without_rejoin_the_session_stays_out() {
    for (channel, images) in [(NEAR.to_owned(), 1), (format!("{NEAR}|rejoin=false"), 0)] {
        let mut driver = Driver::new();
        let (_, _, publisher) = image(&mut driver, &channel);
        driver.forget();
        publisher.borrow_mut().is_silent = true;
        driver.pass_alive(13 * SECOND);
        publisher.borrow_mut().is_silent = false;
        driver.pass_alive(20 * SECOND);
        assert_eq!(driver.images().len(), images, "{channel}");
    }
}

#[test]
fn an_untethered_reader_is_dropped_for_good_without_rejoin() {
    let mut driver = Driver::new();
    let channel = format!("{NEAR}|tether=false|rejoin=false");
    let (subscription, image, publisher) = image(&mut driver, &channel);
    let position = driver.counter(driver.images()[0].position_counter_id);
    // Alone, a reader is itself the furthest reader: it takes a second one to be dropped.
    driver.add_subscription(&format!("{channel}|session-id=55"), 10);
    let other = driver.counter(driver.images()[1].position_counter_id);
    for index in 0..250 {
        publisher.borrow_mut().send(index);
    }
    driver.pass_alive(10 * MS);
    other.set_release(JOIN + 250 * 128);
    driver.forget();
    driver.pass_alive(7 * SECOND);
    assert_eq!(driver.unavailable(), [(image, subscription)]);
    assert_eq!(position.get(), JOIN);
    driver.pass_alive(7 * SECOND);
    assert_eq!(
        driver.counters.find(type_ids::SUBSCRIBER_POSITION, subscription),
        None
    );
    assert_eq!(state(&driver), "Active", "the other one still reads");
}

#[test]
fn an_untethered_reader_comes_back_though_no_other_is_left() {
    let mut driver = Driver::new();
    let channel = format!("{NEAR}|tether=false");
    let (_, image, publisher) = image(&mut driver, &channel);
    let other = driver.add_subscription(&format!("{NEAR}|session-id=55"), 10);
    let fast = driver.counter(driver.images()[1].position_counter_id);
    for index in 0..250 {
        publisher.borrow_mut().send(index);
    }
    driver.pass_alive(10 * MS);
    fast.set_release(JOIN + 250 * 128);
    driver.pass_alive(7 * SECOND);
    driver.remove_subscription(other);
    driver.forget();
    for _ in 0..20 {
        publisher.borrow().send_heartbeat();
        driver.pass_alive(SECOND);
    }
    let back = driver.images();
    assert_eq!((back.len(), back[0].image_correlation_id), (1, image));
    let position = driver.counter(back[0].position_counter_id).get();
    assert_eq!(position, JOIN + 250 * 128, "where the stream is");
}

#[test]
fn a_later_reader_joins_where_the_stream_is_or_the_slowest_reader() {
    let mut driver = Driver::new();
    let (_, _, publisher) = image(&mut driver, NEAR);
    let first = driver.images().remove(0);
    for index in 0..10 {
        publisher.borrow_mut().send(index);
    }
    driver.pass_alive(10 * MS);
    driver.counter(first.position_counter_id).set_release(JOIN + 256);
    driver.finish_commands();
    driver.add_subscription(NEAR, 10);
    let second = driver.images().remove(1);
    assert_eq!(second.image_correlation_id, first.image_correlation_id);
    assert_eq!(second.log_file_name, first.log_file_name);
    assert_eq!(driver.counter(second.position_counter_id).get(), JOIN + 256);
    driver.add_subscription(&format!("{NEAR}|session-id=56"), 10);
    driver.add_subscription(NEAR, 11);
    assert_eq!(driver.images().len(), 2);
}

#[test]
fn the_channel_closes_when_its_last_reader_and_image_are_gone() {
    let mut driver = Driver::new();
    let (subscription, _, publisher) = image(&mut driver, NEAR);
    let sockets = driver.world.socket_count();
    publisher.borrow_mut().statuses.clear();
    driver.remove_subscription(subscription);
    assert_eq!(
        driver.world.socket_count(),
        sockets,
        "the image still says goodbye"
    );
    driver.pass_alive(4 * SECOND);
    assert!(publisher.borrow().statuses.last().unwrap().is_end_of_stream());
    assert_eq!(driver.world.socket_count(), sockets - 1);
}

/// In whichever step of the world the subscription goes.
#[test]
fn a_setup_whose_subscription_goes_meanwhile_is_forgotten() {
    for steps in 0..20 {
        let mut driver = Driver::new();
        let subscription = driver.add_subscription(NEAR, 10);
        let publisher = quiet_publisher(&mut driver);
        publisher.borrow().send_setup(&SETUP);
        for _ in 0..steps {
            driver.step();
        }
        driver.remove_subscription(subscription);
        driver.pass_alive(4 * SECOND);
        assert!(
            only_the_client_is_left(&driver),
            "{steps} {:?}",
            driver.live_counters()
        );
        assert_eq!(driver.recorded_errors(), [""; 0]);
    }
}

#[test]
fn a_setup_that_cannot_be_is_recorded() {
    for (setup, text) in [
        (
            Setup { mtu: 65_504, ..SETUP },
            "mtuLength=65504 > initialWindowLength=32768",
        ),
        (
            Setup { mtu: 65_504, ..SETUP },
            ": give the subscription rcv-wnd=65504 or more, or the publication a smaller mtu, channel=aeron:udp",
        ),
        (Setup { mtu: 40_000, ..SETUP }, "mtu"),
    ] {
        let mut driver = Driver::new();
        driver.add_subscription(NEAR, 10);
        let publisher = quiet_publisher(&mut driver);
        publisher.borrow().send_setup(&setup);
        driver.pass(10 * MS);
        assert_eq!((driver.image_files(), driver.images().len()), (0, 0));
        let errors = driver.recorded_errors();
        let source = publisher.borrow().local().to_string();
        assert!(
            errors[0].contains(text) && errors[0].contains(&source),
            "{errors:?}"
        );
        // The session is not shut out: a publisher whose settings were mended gets its image.
        publisher.borrow_mut().is_silent = false;
        driver.pass_alive(3 * SECOND);
        assert_eq!(driver.images().len(), 1);
    }
}

#[test]
fn a_log_that_cannot_be_made_is_recorded_and_the_session_cleared() {
    let mut driver = Driver::new();
    driver.add_subscription(NEAR, 10);
    let images = driver.node.directory().join("images");
    std::fs::remove_dir(&images).unwrap();
    let publisher = quiet_publisher(&mut driver);
    publisher.borrow().send_setup(&SETUP);
    driver.pass(10 * MS);
    assert!(driver.recorded_errors()[0].contains("images"));
    std::fs::create_dir(&images).unwrap();
    publisher.borrow_mut().is_silent = false;
    driver.pass_alive(3 * SECOND);
    assert_eq!(driver.images().len(), 1);
}

#[test]
fn a_rejected_image_tells_its_publisher_why() {
    let mut driver = Driver::new();
    let (_, image, publisher) = image(&mut driver, NEAR);
    driver.forget();
    driver.reject(image, "no thanks");
    assert_eq!(driver.names(), ["OperationSuccess"]);
    assert_eq!(driver.system(system_counter::IMAGES_REJECTED), 1);
    driver.pass_alive(SECOND);
    let publisher = publisher.borrow();
    assert_eq!(publisher.errors[0].text, "no thanks");
}

fn set_up_sessions(driver: &mut Driver, publisher: &RefCell<FarPublisher>, sessions: std::ops::Range<i32>) {
    for session_id in sessions {
        publisher.borrow().send_setup(&Setup { session_id, ..SETUP });
        driver.finish_commands();
    }
}

#[test]
fn strangers_cannot_make_more_images_than_the_limit_until_some_are_gone() {
    let mut driver = Driver::with(|config| config.image_limit = 3);
    driver.add_subscription(NEAR, 10);
    let publisher = quiet_publisher(&mut driver);
    set_up_sessions(&mut driver, &publisher, 0..5);
    assert_eq!((driver.image_files(), driver.images().len()), (3, 3));
    let errors = driver.recorded_errors();
    assert!(
        errors.len() == 1 && errors[0].contains("aeron.headrace.image.limit=3"),
        "{errors:?}"
    );
    assert_eq!(driver.system(system_counter::ERRORS), 2);
    // Their publishers say no more: the images go, and make room.
    driver.pass_alive(25 * SECOND);
    assert_eq!(driver.image_files(), 0);
    set_up_sessions(&mut driver, &publisher, 10..12);
    assert_eq!(driver.image_files(), 2);
}

#[test]
fn strangers_cannot_make_the_driver_create_more_than_the_limit_of_logs() {
    // A log of 64 KiB terms takes three of them and its metadata.
    let mut driver = Driver::with(|config| config.image_memory_limit = 2 * 256 * 1024);
    driver.add_subscription(NEAR, 10);
    let publisher = quiet_publisher(&mut driver);
    set_up_sessions(&mut driver, &publisher, 0..3);
    assert_eq!(driver.image_files(), 2);
    let huge = Setup {
        session_id: 100,
        term_length: 1 << 30,
        ..SETUP
    };
    publisher.borrow().send_setup(&huge);
    driver.pass(10 * MS);
    assert_eq!(driver.image_files(), 2);
    assert!(driver.recorded_errors()[0].contains("aeron.headrace.image.memory.limit=524288"));
}

#[test]
fn setups_without_images_from_many_sources_fill_a_bounded_part_of_the_error_log() {
    let mut driver = Driver::new();
    driver.add_subscription(NEAR, 10);
    let publisher = quiet_publisher(&mut driver);
    let setup = Setup { mtu: 65_504, ..SETUP };
    for port in 1000..1100 {
        let setup = Setup {
            session_id: i32::from(port),
            ..setup
        };
        publisher.borrow().send_setup_from(port, &setup);
        driver.pass(MS);
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
fn more_sessions_than_a_stream_may_have_are_reported() {
    let mut driver = Driver::with(|config| config.stream_session_limit = 1);
    driver.add_subscription(NEAR, 10);
    let publisher = quiet_publisher(&mut driver);
    set_up_sessions(&mut driver, &publisher, 0..2);
    assert_eq!(driver.images().len(), 1);
    let errors = driver.recorded_errors();
    assert!(
        errors.len() == 1 && errors[0].starts_with("WARN - exceeded session limit"),
        "{errors:?}"
    );
    assert_eq!(driver.system(system_counter::ERRORS), 1);
}
