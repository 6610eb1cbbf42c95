//! How streams, clients and drivers end, with a real driver, and what the others see of it.

mod live;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use headrace_client::{
    Client, ClientError, ErrorCode, Handler, Header, Offer, PollError, PublicationError, SubscriptionHandlers,
};
use headrace_sys::clock::ManualClock;
use headrace_sys::{Clock, SystemClock};
use live::{IPC, MS, STREAM, await_that, pair, receive, send, start, start_with};

const UDP: &str = "aeron:udp?endpoint=127.0.0.1:0|term-length=64k";

fn undelivered(_: &[u8], _: &Header<'_>) {
    panic!("delivered");
}

#[test]
fn a_closed_publication_is_read_to_its_end() {
    for channel in [IPC, UDP] {
        let live = start();
        let client = live.client();
        let (publication, subscription) = pair(&client, channel);
        for text in [b"a", b"b", b"c"] {
            send(&publication, text);
        }
        let image = subscription.images().remove(0);
        publication.close();
        assert_eq!(receive(&subscription, 3), [b"a", b"b", b"c"]);
        await_that("image gone", || image.is_closed());
        assert!(image.is_end_of_stream(), "{channel}: {image:?}");
        assert_eq!((image.position(), image.end_of_stream_position()), (192, 192));
        assert!(!image.is_publication_revoked());
        assert!(!subscription.is_connected());
    }
}

#[test]
fn a_revoked_publication_is_not() {
    for channel in [IPC, UDP] {
        let live = start();
        let client = live.client();
        let (publication, subscription) = pair(&client, channel);
        send(&publication, b"unread");
        let image = subscription.images().remove(0);
        publication.revoke();
        assert_eq!(publication.offer(b"x"), Ok(Offer::Closed));
        await_that("image gone", || image.is_closed());
        assert!(image.is_publication_revoked(), "{channel}");
        assert_eq!(subscription.poll(undelivered, 10), Ok(0));
    }
}

#[test]
fn a_rejected_image_goes_and_its_publisher_learns_why() {
    for channel in [IPC, UDP] {
        let live = start_with(|config| config.image_liveness_timeout_ns = 1_500 * MS);
        let subscriber = live.client();
        let seen: Arc<Mutex<Vec<PublicationError>>> = Arc::default();
        let told = Arc::clone(&seen);
        let mut config = live.config();
        config.publication_error_handler =
            Some(Arc::new(move |error| told.lock().unwrap().push(error.clone())));
        let publisher = Client::connect(config).unwrap();
        let subscription = subscriber
            .add_subscription(channel, STREAM, Default::default())
            .unwrap();
        let resolved = match subscription.status().counter_id() {
            -1 => channel.to_owned(),
            _ => {
                await_that("endpoint bound", || subscription.resolved_channel().is_some());
                subscription.resolved_channel().unwrap()
            }
        };
        let publication = publisher.add_publication(&resolved, STREAM).unwrap();
        await_that("connected", || {
            publication.is_connected() && subscription.is_connected()
        });
        let image = subscription.images().remove(0);
        image.reject("cannot read this").unwrap();
        await_that("publisher told", || !seen.lock().unwrap().is_empty());
        let error = seen.lock().unwrap()[0].clone();
        assert_eq!(error.registration_id, publication.registration_id());
        assert_eq!(
            (error.code, error.message.as_str()),
            (ErrorCode::ImageRejected, "cannot read this")
        );
        assert_eq!(
            (error.session_id, error.stream_id),
            (publication.session_id(), STREAM)
        );
        await_that("image gone", || image.is_closed());
        await_that("publication without subscribers", || !publication.is_connected());
    }
}

#[test]
fn a_refused_channel_names_the_parameter() {
    let live = start();
    let client = live.client();
    for (channel, word) in [
        (
            "aeron:udp?endpoint=127.0.0.1:40123|term-length=100k",
            "term length",
        ),
        ("aeron:udp?endpoint=nowhere.invalid:40123", "nowhere.invalid"),
        ("carrier-pigeon:coop=3", "carrier-pigeon"),
    ] {
        let error = client.add_publication(channel, STREAM).err().unwrap();
        assert!(matches!(error, ClientError::Registration { .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
        // Subscriptions take their term length from the publisher, so that parameter does not concern them.
        let subscribed = client.add_subscription(channel, STREAM, Default::default());
        assert_eq!(subscribed.is_err(), word != "term length", "{channel}");
    }
    // The client goes on.
    let (publication, subscription) = pair(&client, IPC);
    send(&publication, b"fine");
    receive(&subscription, 1);
}

#[test]
fn things_are_closed_in_any_order() {
    // Each number names one of the four things, in the order they are closed.
    for order in [
        [0, 1, 2, 3],
        [3, 2, 1, 0],
        [1, 0, 3, 2],
        [2, 3, 1, 0],
        [3, 0, 2, 1],
        [2, 0, 1, 3],
    ] {
        let live = start();
        let client = live.client();
        let (publication, subscription) = pair(&client, IPC);
        send(&publication, b"x");
        for which in order {
            match which {
                0 => publication.close(),
                1 => subscription.close(),
                2 => client.close().unwrap(),
                _ => live.driver.close().unwrap(),
            }
        }
        assert_eq!(publication.offer(b"x"), Ok(Offer::Closed), "{order:?}");
        assert_eq!(
            subscription.poll(|_, _| {}, 1),
            Err(PollError::Closed),
            "{order:?}"
        );
        assert!(client.add_publication(IPC, STREAM).is_err(), "{order:?}");
        publication.close();
        subscription.close();
        client.close().unwrap();
        live.driver.close().unwrap();
    }
}

#[test]
fn a_driver_that_stops_ends_its_clients() {
    let live = start();
    let client = live.client();
    let gone = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&gone);
    client
        .add_handler(Handler::Close(Arc::new(move || {
            count.fetch_add(1, Ordering::SeqCst);
        })))
        .unwrap();
    let (publication, subscription) = pair(&client, IPC);
    let image = subscription.images().remove(0);
    live.driver.close().unwrap();
    await_that("client ended", || client.is_closed());
    let reason = client.ended_by().unwrap();
    assert!(matches!(reason, ClientError::DriverEnded { .. }), "{reason}");
    assert!(
        reason.to_string().starts_with("the driver has stopped"),
        "{reason}"
    );
    await_that("close handler ran", || gone.load(Ordering::SeqCst) == 1);
    assert!(publication.is_closed() && image.is_closed() && subscription.is_closed());
    assert_eq!(client.add_publication(IPC, STREAM).err(), Some(reason.clone()));
    assert_eq!(*live.errors.lock().unwrap(), [reason]);
}

#[test]
fn a_client_that_is_not_serviced_loses_everything_and_learns_it() {
    let live = start_with(|config| config.client_liveness_timeout_ns = 3_000 * MS);
    let gone: Arc<Mutex<Vec<i64>>> = Arc::default();
    let told = Arc::clone(&gone);
    let observer = live.client();
    let handlers = SubscriptionHandlers {
        unavailable_image: Some(Arc::new(move |image| {
            told.lock().unwrap().push(image.correlation_id())
        })),
        ..Default::default()
    };
    let subscription = observer.add_subscription(IPC, STREAM, handlers).unwrap();
    let mut config = live.config();
    config.use_invoker = true;
    let sleeper = Client::connect(config).unwrap();
    let publication = sleeper.add_publication(IPC, STREAM).unwrap();
    await_that("image", || subscription.is_connected());
    // The test does not invoke the sleeper: the driver gives it up and ends its publication.
    await_that("image of the dead publisher gone", || {
        !subscription.is_connected()
    });
    await_that("handler ran", || {
        *gone.lock().unwrap() == [publication.registration_id()]
    });
    let reason = sleeper.invoke().unwrap_err();
    assert!(
        matches!(
            reason,
            ClientError::ServiceInterval { .. } | ClientError::ClientTimeout { .. }
        ),
        "{reason}"
    );
    assert_eq!(publication.offer(b"x"), Ok(Offer::Closed));
    assert!(!observer.is_closed());
}

/// The machine's clock, moved on by hand.
struct ShiftedClock {
    system: SystemClock,
    shift: ManualClock,
}

impl Clock for ShiftedClock {
    fn nano_time(&self) -> i64 {
        self.system.nano_time() + self.shift.nano_time()
    }

    fn epoch_ns(&self) -> i64 {
        self.system.epoch_ns() + self.shift.epoch_ns()
    }
}

#[test]
fn a_client_whose_clock_says_the_driver_is_long_silent_ends() {
    let live = start();
    let clock = Arc::new(ShiftedClock {
        system: SystemClock::new(),
        shift: ManualClock::new(0, 0),
    });
    let mut config = live.config();
    config.clock = clock.clone();
    config.use_invoker = true;
    config.driver_timeout_ms = 3_000;
    let client = Client::connect(config).unwrap();
    let publication = client.add_publication(IPC, STREAM).unwrap();
    clock.shift.advance_ns(6_000_000_000);
    let reason = client.invoke().unwrap_err();
    assert!(reason.to_string().contains("driver_timeout_ms=3000"), "{reason}");
    assert!(publication.is_closed());
}

#[test]
fn a_second_driver_of_a_directory_serves_new_clients() {
    let live = start();
    let first = live.client();
    let (publication, _subscription) = pair(&first, IPC);
    live.driver.close().unwrap();
    await_that("client ended", || first.is_closed());
    let config = live.driver.config().clone();
    let again = headrace_driver::MediaDriver::launch(config).unwrap();
    let second = live.client();
    let (fresh, subscription) = pair(&second, IPC);
    send(&fresh, b"again");
    assert_eq!(receive(&subscription, 1), [b"again"]);
    assert_eq!(publication.offer(b"x"), Ok(Offer::Closed));
    second.close().unwrap();
    again.close().unwrap();
}

#[test]
fn counters_of_one_client_are_seen_and_missed_by_another() {
    let live = start();
    let (one, two) = (live.client(), live.client());
    let gone: Arc<Mutex<Vec<i64>>> = Arc::default();
    let told = Arc::clone(&gone);
    two.add_handler(Handler::UnavailableCounter(Arc::new(move |_, id, _| {
        told.lock().unwrap().push(id)
    })))
    .unwrap();
    let counter = one.add_counter(1001, b"key", "seen by all").unwrap();
    counter.set(42);
    let reader = two.counters_reader();
    let id = reader.find(1001, counter.registration_id()).unwrap();
    assert_eq!(
        (reader.value(id), reader.label(id).as_deref()),
        (Some(42), Some("seen by all"))
    );
    let registration_id = counter.registration_id();
    counter.close();
    await_that("counter gone", || gone.lock().unwrap().contains(&registration_id));

    let fixed = one.add_static_counter(1002, b"key", "fixed", 77).unwrap();
    assert_eq!(
        two.add_static_counter(1002, b"key", "fixed", 77)
            .unwrap()
            .counter_id(),
        fixed.counter_id()
    );
    one.close().unwrap();
    assert_eq!(two.counters_reader().find(1002, 77), Some(fixed.counter_id()));
}

#[test]
fn session_ids_handed_out_are_free() {
    let live = start();
    let client = live.client();
    let session_id = client.next_available_session_id(STREAM).unwrap();
    let channel = format!("{IPC}|session-id={session_id}");
    let publication = client.add_exclusive_publication(&channel, STREAM).unwrap();
    assert_eq!(publication.session_id(), session_id);
    assert_ne!(client.next_available_session_id(STREAM), Ok(session_id));
}

#[test]
fn an_invoked_driver_and_client_need_no_thread() {
    let live = start_with(|config| config.threading_mode = Some(headrace_driver::ThreadingMode::Invoker));
    let invoker = live.driver.invoker().unwrap();
    let mut config = live.config();
    config.use_invoker = true;
    let driver = invoker.clone();
    config.driver_invoker = Some(Arc::new(move || {
        driver.invoke();
    }));
    let client = Client::connect(config).unwrap();
    let subscription = client.add_subscription(IPC, STREAM, Default::default()).unwrap();
    let publication = client.add_publication(IPC, STREAM).unwrap();
    let mut received = 0;
    await_that("messages", || {
        invoker.invoke();
        client.invoke().unwrap();
        publication.offer(b"ping").unwrap();
        received += subscription
            .poll(|payload, _| assert_eq!(payload, b"ping"), 10)
            .unwrap();
        received >= 10
    });
    client.close().unwrap();
}

#[test]
fn publications_that_come_and_go_are_each_read_to_their_end() {
    const PUBLICATIONS: usize = 40;
    const MESSAGES: usize = 25;
    let live = start();
    let client = live.client();
    let subscription = client.add_subscription(IPC, STREAM, Default::default()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..PUBLICATIONS {
                let publication = client.add_exclusive_publication(IPC, STREAM).unwrap();
                for sequence in 0..MESSAGES {
                    live::send_with(|| publication.offer(&[number as u8, sequence as u8]).unwrap());
                }
                // Dropped, and thereby closed, with messages still unread.
            }
        });
        let mut next = [0; PUBLICATIONS];
        await_that("all messages of all publications", || {
            subscription
                .poll(
                    |payload, _| {
                        let number = usize::from(payload[0]);
                        assert_eq!(usize::from(payload[1]), next[number], "publication {number}");
                        next[number] += 1;
                    },
                    7,
                )
                .unwrap();
            next == [MESSAGES; PUBLICATIONS]
        });
    });
    await_that("all images gone", || subscription.image_count() == 0);
    assert!(live.errors.lock().unwrap().is_empty());
}

#[test]
fn threads_may_make_requests_at_once() {
    const THREADS: i32 = 6;
    let live = start();
    let client = live.client();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let client = &client;
            scope.spawn(move || {
                for round in 0..10 {
                    let stream = 100 * (thread + 1) + round;
                    let subscription = client.add_subscription(IPC, stream, Default::default()).unwrap();
                    let publication = client.add_publication(IPC, stream).unwrap();
                    await_that("connected", || {
                        publication.is_connected() && subscription.is_connected()
                    });
                    send(&publication, &stream.to_le_bytes());
                    assert_eq!(receive(&subscription, 1), [stream.to_le_bytes()]);
                    let counter = client.add_counter(1001, &stream.to_le_bytes(), "round").unwrap();
                    assert_eq!(
                        client.counters_reader().registration_id(counter.counter_id()),
                        Some(counter.registration_id())
                    );
                }
            });
        }
    });
    assert!(live.errors.lock().unwrap().is_empty());
}

#[test]
fn a_driver_that_allows_it_can_be_asked_to_stop() {
    let live = start_with(|config| {
        config.termination_validator = headrace_driver::config::TerminationValidator::Allow;
    });
    let ask = || {
        let directory = live.driver.directory();
        headrace_client::request_driver_termination(directory, b"", 10_000, &SystemClock::new())
    };
    assert!(!live.driver.is_terminated());
    assert_eq!(ask(), Ok(true));
    await_that("driver to be closed", || live.driver.is_terminated());
    live.driver.close().unwrap();
    assert_eq!(ask(), Ok(false));
}
