//! How a client ends, and what that means for everything it has.

mod common;

use std::sync::{Arc, Mutex, OnceLock, Weak};

use headrace_buffers::counters::type_ids;
use headrace_client::{
    Client, ClientConfig, ClientError, CounterHandler, Handler, ImageHandler, Offer, PollError, Publication,
    Subscription, SubscriptionHandlers,
};
use headrace_protocol::command::Command;
use headrace_protocol::event::Event;
use headrace_sys::Clock;

use common::{Errors, FakeDriver, MS, Reply, config, connect, driver, service_until_idle};

const CHANNEL: &str = "aeron:ipc";

/// A client with one of everything, and a note of which handlers ran.
struct Busy {
    fake: Arc<Mutex<FakeDriver>>,
    client: Client,
    errors: Errors,
    publication: Publication,
    subscription: Subscription,
    counter: headrace_client::Counter,
    calls: Arc<Mutex<Vec<&'static str>>>,
}

fn busy() -> Busy {
    let fake = FakeDriver::start();
    let calls: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let note = |text: &'static str| {
        let calls = Arc::clone(&calls);
        move || calls.lock().unwrap().push(text)
    };
    let (mut config, errors) = config(&fake);
    config.client_name = "busy".into();
    config.close_handler = Some(Arc::new(note("closed")));
    let client = Client::connect(config).unwrap();
    let gone = note("image gone");
    let handlers = SubscriptionHandlers {
        unavailable_image: Some(Arc::new(move |_| gone())),
        ..Default::default()
    };
    let publication = client.add_publication(CHANNEL, 10).unwrap();
    let subscription = client.add_subscription(CHANNEL, 10, handlers).unwrap();
    let counter = client.add_counter(1001, b"key", "label").unwrap();
    let counter_gone = note("counter gone");
    client
        .add_handler(Handler::UnavailableCounter(Arc::new(move |_, _, _| {
            counter_gone()
        })))
        .unwrap();
    driver(&fake).connect(publication.registration_id(), 1 << 40);
    driver(&fake).link(publication.registration_id(), subscription.registration_id());
    service_until_idle(&client);
    Busy {
        fake,
        client,
        errors,
        publication,
        subscription,
        counter,
        calls,
    }
}

impl Busy {
    /// Lets time pass in steps that keep the conductor serviced.
    fn pass(&self, duration_ms: i64, heartbeats: bool) {
        for _ in 0..duration_ms / 100 {
            let guard = driver(&self.fake);
            guard.clock.advance_ns(100 * MS);
            if heartbeats {
                guard.heartbeat();
            }
            drop(guard);
            service_until_idle(&self.client);
        }
    }

    fn heartbeat_counter(&self) -> i32 {
        let reader = driver(&self.fake).counters.reader();
        reader
            .find(type_ids::CLIENT_HEARTBEAT, self.client.client_id())
            .unwrap()
    }

    /// Everything is closed, handlers ran once, and every call gives the reason.
    fn assert_ended(&self, reason: &ClientError) {
        assert!(self.client.is_closed());
        assert_eq!(self.client.ended_by().as_ref(), Some(reason));
        assert_eq!(
            *self.calls.lock().unwrap(),
            ["image gone", "counter gone", "closed"]
        );
        assert_eq!(self.publication.offer(b"x"), Ok(Offer::Closed));
        assert_eq!(self.subscription.poll(|_, _| {}, 1), Err(PollError::Closed));
        assert!(!self.subscription.is_connected() && self.subscription.is_closed());
        assert!(self.counter.is_closed() && self.counter.get().is_none() && !self.counter.set(1));
        assert_eq!(self.client.invoke().as_ref(), Err(reason));
        assert_eq!(
            self.client.add_publication(CHANNEL, 10).err().as_ref(),
            Some(reason)
        );
        assert_eq!(
            self.client.requests().find_publication(1).err().as_ref(),
            Some(reason)
        );
        assert_eq!(self.client.next_correlation_id().as_ref(), Err(reason));
        assert_eq!(
            self.client.add_handler(Handler::Close(Arc::new(|| {}))).as_ref(),
            Err(reason)
        );
    }
}

#[test]
fn closing_tells_handlers_and_driver_once() {
    let it = busy();
    it.client.close().unwrap();
    it.client.close().unwrap();
    it.assert_ended(&ClientError::Closed { what: "client" });
    drop((it.publication, it.subscription, it.counter, it.client));
    driver(&it.fake).work();
    // Closing the client says it all; its resources are not removed one by one.
    assert!(matches!(
        driver(&it.fake).last_command(),
        Command::ClientClose {
            correlation_id: -1,
            ..
        }
    ));
    let closes = |command: &Command<'_>| matches!(command, Command::ClientClose { .. });
    assert_eq!(driver(&it.fake).count(closes), 1);
    let removals = |command: &Command<'_>| matches!(command, Command::RemovePublication { .. });
    assert_eq!(driver(&it.fake).count(removals), 0);
    assert!(it.errors.lock().unwrap().is_empty());
}

#[test]
fn things_may_outlive_their_client() {
    let it = busy();
    drop(it.client);
    assert_eq!(it.publication.offer(b"x"), Ok(Offer::Closed));
    assert_eq!(it.subscription.poll(|_, _| {}, 1), Err(PollError::Closed));
    assert_eq!(it.subscription.resolved_endpoint(), None);
    it.publication.close();
    it.subscription.close();
    it.counter.close();
    let error = it
        .subscription
        .destinations()
        .add("aeron:udp?endpoint=a:1")
        .unwrap_err();
    assert_eq!(error, ClientError::Closed { what: "subscription" });
    driver(&it.fake).work();
    assert!(matches!(
        driver(&it.fake).last_command(),
        Command::ClientClose { .. }
    ));
}

#[test]
fn the_heartbeat_counter_is_labelled_and_kept_alive() {
    let it = busy();
    it.pass(1000, true);
    let reader = driver(&it.fake).counters.reader();
    let record = reader.record(it.heartbeat_counter()).unwrap();
    let expected = format!(
        "client-heartbeat: id={} name=busy version={} commit=",
        it.client.client_id(),
        env!("CARGO_PKG_VERSION")
    );
    assert!(record.label.starts_with(&expected), "{}", record.label);
    it.pass(20_000, true);
    let now_ms = driver(&it.fake).clock.epoch_ms();
    let value = reader.value(it.heartbeat_counter()).unwrap();
    assert!(now_ms - value <= 600, "now_ms={now_ms} value={value}");
    assert!(!it.client.is_closed());
    let again = reader.record(it.heartbeat_counter()).unwrap();
    assert_eq!(again.label, record.label, "labelled once");
}

#[test]
fn a_silent_driver_ends_the_client() {
    let it = busy();
    it.pass(9_900, false);
    assert!(!it.client.is_closed());
    it.pass(1_000, false);
    let reason = it.client.ended_by().unwrap();
    assert!(matches!(reason, ClientError::DriverTimeout { .. }), "{reason}");
    assert!(reason.to_string().contains("driver_timeout_ms=10000"), "{reason}");
    it.assert_ended(&reason);
    assert_eq!(*it.errors.lock().unwrap(), [reason]);
    // No driver is there to be told.
    it.client.close().unwrap();
    driver(&it.fake).work();
    assert!(!matches!(
        driver(&it.fake).last_command(),
        Command::ClientClose { .. }
    ));
}

#[test]
fn a_driver_that_stops_in_good_order_ends_the_client_at_the_next_look() {
    let it = busy();
    driver(&it.fake).ring.put_consumer_heartbeat_ms(-1);
    it.pass(700, false);
    let reason = it.client.ended_by().unwrap();
    assert!(reason.to_string().contains("the driver has stopped"), "{reason}");
    it.assert_ended(&reason);
}

#[test]
fn being_declared_dead_ends_the_client_but_only_this_one() {
    let it = busy();
    let client_id = it.client.client_id();
    driver(&it.fake).send(&Event::ClientTimeout {
        client_id: client_id + 1,
    });
    service_until_idle(&it.client);
    assert!(!it.client.is_closed());
    driver(&it.fake).send(&Event::ClientTimeout { client_id });
    service_until_idle(&it.client);
    let reason = it.client.ended_by().unwrap();
    assert!(matches!(reason, ClientError::ClientTimeout { .. }), "{reason}");
    it.assert_ended(&reason);
}

#[test]
fn losing_the_heartbeat_counter_ends_the_client() {
    let it = busy();
    it.pass(1000, true);
    let counter_id = it.heartbeat_counter();
    let now_ms = driver(&it.fake).clock.epoch_ms();
    driver(&it.fake).counters.free(counter_id, now_ms);
    it.pass(700, true);
    let reason = it.client.ended_by().unwrap();
    assert!(
        reason
            .to_string()
            .contains("unexpected close of heartbeat counter"),
        "{reason}"
    );
    it.assert_ended(&reason);
}

#[test]
fn a_conductor_that_was_not_run_ends_the_client() {
    let it = busy();
    driver(&it.fake).clock.advance_ns(10_001 * MS);
    driver(&it.fake).heartbeat();
    service_until_idle(&it.client);
    let reason = it.client.ended_by().unwrap();
    assert!(matches!(reason, ClientError::ServiceInterval { .. }), "{reason}");
    it.assert_ended(&reason);
}

#[test]
fn a_client_that_is_kept_alive_outlives_a_pause_of_its_conductor() {
    let it = busy();
    for _ in 0..3 {
        driver(&it.fake).clock.advance_ns(6_000 * MS);
        driver(&it.fake).heartbeat();
        it.client.keep_alive();
    }
    let counter_id = it.heartbeat_counter();
    let guard = driver(&it.fake);
    assert_eq!(
        guard.counters.reader().value(counter_id),
        Some(guard.clock.epoch_ms())
    );
    drop(guard);
    service_until_idle(&it.client);
    assert!(!it.client.is_closed() && it.calls.lock().unwrap().is_empty());
}

#[test]
fn a_client_that_has_missed_its_time_is_not_kept_alive() {
    let it = busy();
    driver(&it.fake).clock.advance_ns(10_001 * MS);
    driver(&it.fake).heartbeat();
    it.client.keep_alive();
    service_until_idle(&it.client);
    let reason = it.client.ended_by().unwrap();
    assert!(matches!(reason, ClientError::ServiceInterval { .. }), "{reason}");
    it.client.keep_alive();
    it.assert_ended(&reason);
}

#[test]
fn losing_events_ends_the_client() {
    let it = busy();
    let message = "x".repeat(100_000);
    for _ in 0..12 {
        let error_code = headrace_client::ErrorCode::GenericError;
        let message = message.as_str().into();
        driver(&it.fake).send(&Event::Error {
            correlation_id: -7,
            error_code,
            message,
        });
    }
    service_until_idle(&it.client);
    it.assert_ended(&ClientError::Lapped);
}

#[test]
fn damaged_and_unknown_events_do_not_end_the_client() {
    let it = busy();
    driver(&it.fake).transmitter.transmit(0x0F7F, &[0; 8]).unwrap();
    service_until_idle(&it.client);
    assert!(it.errors.lock().unwrap().is_empty(), "newer drivers may say more");
    driver(&it.fake).transmitter.transmit(0x0F02, &[0; 8]).unwrap();
    service_until_idle(&it.client);
    assert!(matches!(
        it.errors.lock().unwrap()[..],
        [ClientError::InvalidEvent { .. }]
    ));
    assert!(!it.client.is_closed());
}

#[test]
fn an_endpoint_error_of_an_older_driver_is_reported_if_it_is_ours() {
    let it = busy();
    driver(&it.fake).status_id = 900;
    let _subscription = it
        .client
        .add_subscription("aeron:udp?endpoint=a:1", 11, Default::default())
        .unwrap();
    for correlation_id in [901, 900] {
        let error_code = headrace_client::ErrorCode::ChannelEndpointError;
        let message = "socket failed".into();
        driver(&it.fake).send(&Event::Error {
            correlation_id,
            error_code,
            message,
        });
    }
    service_until_idle(&it.client);
    let errors = it.errors.lock().unwrap();
    assert!(
        matches!(
            errors[..],
            [ClientError::Registration {
                correlation_id: 900,
                ..
            }]
        ),
        "{errors:?}"
    );
}

#[test]
fn a_waiting_call_ends_with_the_client() {
    let it = busy();
    driver(&it.fake).reply = Reply::Silence;
    let client_id = it.client.client_id();
    driver(&it.fake).send(&Event::ClientTimeout { client_id });
    let error = it
        .client
        .add_subscription(CHANNEL, 11, Default::default())
        .err()
        .unwrap();
    assert!(matches!(error, ClientError::ClientTimeout { .. }), "{error}");
}

#[test]
fn a_result_that_was_never_taken_is_closed_with_the_client() {
    let it = busy();
    let id = it.client.requests().add_publication(CHANNEL, 12).unwrap();
    driver(&it.fake).work();
    service_until_idle(&it.client);
    it.client.close().unwrap();
    assert!(it.client.requests().find_publication(id).is_err());
}

/// What a handler needs of a client that is made after it.
type Slot<T> = Arc<OnceLock<Weak<T>>>;

#[test]
fn handlers_may_not_call_the_client_but_may_close_things() {
    let it = busy();
    let (client, publication) = (Arc::new(it.client), Arc::new(it.publication));
    let slot: Slot<(Arc<Client>, Arc<Publication>)> = Arc::default();
    let pair = Arc::new((Arc::clone(&client), Arc::clone(&publication)));
    slot.set(Arc::downgrade(&pair)).unwrap();
    let refusals: Arc<Mutex<Vec<ClientError>>> = Arc::default();
    let told = Arc::clone(&refusals);
    client
        .add_handler(Handler::AvailableCounter(Arc::new(move |_, _, _| {
            let pair = slot.get().unwrap().upgrade().unwrap();
            let (client, publication) = &*pair;
            let mut told = told.lock().unwrap();
            told.extend(client.add_publication(CHANNEL, 10).err());
            told.extend(
                client
                    .requests()
                    .add_subscription(CHANNEL, 10, Default::default())
                    .err(),
            );
            told.extend(client.add_counter(1001, &[], "").err());
            told.extend(client.requests().find_publication(1).err());
            told.extend(client.next_available_session_id(1).err());
            told.extend(client.requests().cancel(1).err());
            told.extend(client.add_handler(Handler::Close(Arc::new(|| {}))).err());
            told.extend(
                publication
                    .destinations()
                    .async_add("aeron:udp?endpoint=a:1")
                    .err(),
            );
            told.extend(client.invoke().err());
            told.extend(client.close().err());
            publication.close();
        })))
        .unwrap();
    let event = Event::CounterReady {
        registration_id: -7,
        counter_id: 3,
    };
    driver(&it.fake).send(&event);
    service_until_idle(&client);
    let refusals = refusals.lock().unwrap();
    assert_eq!(refusals.len(), 10, "{refusals:?}");
    for refusal in refusals.iter() {
        assert!(matches!(refusal, ClientError::Reentrant { .. }), "{refusal}");
        assert!(refusal.to_string().contains("handler"), "{refusal}");
    }
    assert!(publication.is_closed() && !client.is_closed());
    driver(&it.fake).work();
    assert!(matches!(
        driver(&it.fake).last_command(),
        Command::RemovePublication { .. }
    ));
}

#[test]
fn a_subscription_closed_in_a_handler_runs_its_own_handlers_afterwards() {
    let it = busy();
    let subscription = Arc::new(it.subscription);
    let slot: Slot<Subscription> = Arc::default();
    slot.set(Arc::downgrade(&subscription)).unwrap();
    let calls = Arc::clone(&it.calls);
    it.client
        .add_handler(Handler::AvailableCounter(Arc::new(move |_, _, _| {
            slot.get().unwrap().upgrade().unwrap().close();
            calls.lock().unwrap().push("handler done");
        })))
        .unwrap();
    driver(&it.fake).send(&Event::CounterReady {
        registration_id: -7,
        counter_id: 3,
    });
    service_until_idle(&it.client);
    assert_eq!(*it.calls.lock().unwrap(), ["handler done", "image gone"]);
}

#[test]
fn a_handler_that_panics_is_reported_and_the_others_run() {
    let it = busy();
    let calls = Arc::clone(&it.calls);
    it.client
        .add_handler(Handler::AvailableCounter(Arc::new(|_, _, _| {
            panic!("first handler")
        })))
        .unwrap();
    it.client
        .add_handler(Handler::AvailableCounter(Arc::new(
            move |_, registration_id, counter_id| {
                assert_eq!((registration_id, counter_id), (-7, 3));
                calls.lock().unwrap().push("second handler");
            },
        )))
        .unwrap();
    driver(&it.fake).send(&Event::CounterReady {
        registration_id: -7,
        counter_id: 3,
    });
    service_until_idle(&it.client);
    assert_eq!(*it.calls.lock().unwrap(), ["second handler"]);
    let reason = "first handler".to_owned();
    assert_eq!(
        *it.errors.lock().unwrap(),
        [ClientError::HandlerPanicked { reason }]
    );
    assert!(!it.client.is_closed());
}

#[test]
fn a_removed_handler_is_not_called() {
    let it = busy();
    let id = it
        .client
        .add_handler(Handler::AvailableCounter(Arc::new(|_, _, _| panic!("called"))))
        .unwrap();
    assert!(it.client.remove_handler(id));
    assert!(!it.client.remove_handler(id));
    let id = it
        .client
        .add_handler(Handler::Close(Arc::new(|| panic!("called"))))
        .unwrap();
    assert!(it.client.remove_handler(id));
    driver(&it.fake).send(&Event::CounterReady {
        registration_id: -7,
        counter_id: 3,
    });
    service_until_idle(&it.client);
    it.client.close().unwrap();
    assert!(it.errors.lock().unwrap().is_empty());
}

#[test]
fn a_publication_error_reaches_each_handle_of_the_log() {
    let fake = FakeDriver::start();
    let (mut config, _) = config(&fake);
    let seen: Arc<Mutex<Vec<_>>> = Arc::default();
    let told = Arc::clone(&seen);
    config.publication_error_handler = Some(Arc::new(move |error| told.lock().unwrap().push(error.clone())));
    let client = Client::connect(config).unwrap();
    let first = client.add_publication(CHANNEL, 10).unwrap();
    let second = client.add_publication(CHANNEL, 10).unwrap();
    let other = client.add_publication(CHANNEL, 11).unwrap();
    let error = headrace_protocol::event::PublicationError {
        registration_id: first.registration_id(),
        destination_registration_id: -1,
        session_id: first.session_id(),
        stream_id: 10,
        receiver_id: 99,
        group_tag: -1,
        source_address: Some("127.0.0.1:4000".parse().unwrap()),
        error_code: headrace_client::ErrorCode::ImageRejected,
        message: "not understood".into(),
    };
    driver(&fake).send(&Event::PublicationError(error));
    service_until_idle(&client);
    let seen = seen.lock().unwrap();
    let mut handles: Vec<_> = seen.iter().map(|error| error.registration_id).collect();
    handles.sort_unstable();
    assert_eq!(handles, [first.registration_id(), second.registration_id()]);
    assert!(!handles.contains(&other.registration_id()));
    assert_eq!(seen[0].message, "not understood");
    assert_eq!(
        (seen[0].group_tag, seen[0].destination_registration_id),
        (None, None)
    );
}

#[test]
fn a_conductor_of_its_own_runs_without_being_asked() {
    let fake = FakeDriver::start();
    let (mut config, _) = config(&fake);
    config.use_invoker = false;
    config.idle_sleep_ns = MS;
    let (sender, receiver) = std::sync::mpsc::channel();
    config.available_counter_handler = Some(Arc::new(move |_, id, _| sender.send(id).unwrap()));
    let (told, closed) = std::sync::mpsc::channel();
    config.close_handler = Some(Arc::new(move || told.send(std::thread::current().id()).unwrap()));
    let client = Client::connect(config).unwrap();
    assert!(matches!(
        client.invoke(),
        Err(ClientError::InvalidArgument { .. })
    ));
    driver(&fake).send(&Event::CounterReady {
        registration_id: 77,
        counter_id: 3,
    });
    assert_eq!(receiver.recv().unwrap(), 77);
    // The thread ends with the client, whichever thread ends the client.
    let client_id = client.client_id();
    driver(&fake).send(&Event::ClientTimeout { client_id });
    assert_ne!(closed.recv().unwrap(), std::thread::current().id());
    client.close().unwrap();
}

/// Handlers of every kind, each holding the token.
fn holding(token: &Arc<()>, config: &mut ClientConfig) -> SubscriptionHandlers {
    fn held<T>(token: &Arc<()>, _: &T) {
        assert!(Arc::strong_count(token) > 1);
    }
    let image = || -> ImageHandler {
        let token = Arc::clone(token);
        Arc::new(move |image| held(&token, image))
    };
    let counter = || -> CounterHandler {
        let token = Arc::clone(token);
        Arc::new(move |_, _, id| held(&token, &id))
    };
    let (of_errors, of_publications, of_close) = (Arc::clone(token), Arc::clone(token), Arc::clone(token));
    config.error_handler = Arc::new(move |error| held(&of_errors, error));
    config.publication_error_handler = Some(Arc::new(move |error| held(&of_publications, error)));
    config.close_handler = Some(Arc::new(move || held(&of_close, &())));
    config.available_image_handler = Some(image());
    config.unavailable_image_handler = Some(image());
    config.available_counter_handler = Some(counter());
    config.unavailable_counter_handler = Some(counter());
    SubscriptionHandlers {
        available_image: Some(image()),
        unavailable_image: Some(image()),
    }
}

#[test]
fn a_client_that_has_ended_holds_no_handler_for_whatever_reason_it_ended() {
    type End = fn(&Arc<Mutex<FakeDriver>>, &Client);
    let ends: [(&str, End); 3] = [
        ("closed", |_, client| client.close().unwrap()),
        ("crashed", |_, client| client.crash().unwrap()),
        ("not serviced in time", |fake, client| {
            driver(fake).clock.advance_ns(1_000_000 * MS);
            client.invoke().unwrap_err();
        }),
    ];
    for (name, end) in ends {
        let fake = FakeDriver::start();
        let token = Arc::new(());
        let (mut config, _) = config(&fake);
        let handlers = holding(&token, &mut config);
        let client = Client::connect(config).unwrap();
        let _subscription = client.add_subscription(CHANNEL, 10, handlers).unwrap();
        let _untaken = client
            .requests()
            .add_subscription(CHANNEL, 11, SubscriptionHandlers::default())
            .unwrap();
        assert!(Arc::strong_count(&token) > 1);
        end(&fake, &client);
        assert_eq!(Arc::strong_count(&token), 1, "{name}");
    }
}

#[test]
fn a_closed_subscription_holds_no_handler() {
    let fake = FakeDriver::start();
    let token = Arc::new(());
    let (client, _) = connect(&fake);
    let subscription = client
        .add_subscription(CHANNEL, 10, holding(&token, &mut ClientConfig::default()))
        .unwrap();
    subscription.close();
    service_until_idle(&client);
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn a_handler_that_goes_may_close_what_it_holds() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    let held = client.add_publication(CHANNEL, 10).unwrap();
    let id = client
        .add_handler(Handler::Close(Arc::new(move || assert!(held.is_closed()))))
        .unwrap();
    assert!(client.remove_handler(id));
    assert!(!client.remove_handler(id));
}
