//! Counters: asked for, seen coming and going, closed.

mod common;

use std::sync::{Arc, Mutex};

use headrace_client::{ClientError, CounterHandler, Handler};
use headrace_protocol::command::Command;
use headrace_protocol::event::Event;

use common::{FakeDriver, connect, driver, service_until_idle};

#[test]
fn a_counter_is_what_was_asked_for() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    let counter = client.add_counter(1001, &[1, 2, 3], "orders seen").unwrap();
    let record = client.counters_reader().record(counter.counter_id()).unwrap();
    assert_eq!(
        (record.type_id, record.label.as_str(), &record.key[..4]),
        (1001, "orders seen", &[1, 2, 3, 0][..])
    );
    assert!(counter.set(5));
    assert_eq!((counter.get_and_add(2), counter.get()), (Some(5), Some(7)));
    assert_eq!(client.counters_reader().value(counter.counter_id()), Some(7));

    counter.close();
    counter.close();
    assert!(counter.is_closed() && !counter.set(9));
    assert_eq!((counter.get(), counter.get_and_add(1)), (None, None));
    assert_eq!(
        client.counters_reader().value(counter.counter_id()),
        Some(7),
        "a closed counter is not written"
    );
    driver(&fake).work();
    let removals = |command: &Command<'_>| matches!(command, Command::RemoveCounter { registration_id, .. } if *registration_id == counter.registration_id());
    assert_eq!(driver(&fake).count(removals), 1);
}

/// The process stood still for longer than the driver waits for it.
#[test]
fn a_word_that_the_driver_has_given_to_another_is_left_alone() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    let counter = client.add_counter(1001, &[], "mine").unwrap();
    assert!(counter.set(5));
    let word = driver(&fake).counters.counter(counter.counter_id());
    word.set_release(77);
    driver(&fake)
        .counters
        .set_registration_id(counter.counter_id(), 4_711);
    assert!(!counter.set(9) && !counter.set_reference_id(9));
    assert_eq!(
        (counter.get(), counter.get_and_add(1), word.get()),
        (None, None, 77)
    );
    assert!(!counter.is_closed(), "the client is told in its next turn");
}

#[test]
fn keys_and_labels_have_a_limit() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    assert!(client.add_counter(1001, &[0; 112], &"x".repeat(380)).is_ok());
    let refused = [
        client.add_counter(1001, &[0; 113], "x").err(),
        client.add_counter(1001, &[], &"x".repeat(381)).err(),
        client.add_counter(1001, &[], "größe").err(),
        client.add_static_counter(1001, &[0; 113], "x", 5).err(),
    ];
    for error in refused {
        assert!(
            matches!(error, Some(ClientError::InvalidArgument { .. })),
            "{error:?}"
        );
    }
}

#[test]
fn a_static_counter_outlives_its_handle() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    let counter = client.add_static_counter(1002, b"key", "static", 4242).unwrap();
    assert_eq!(counter.registration_id(), 4242);
    counter.set(3);
    let copy = counter.clone();
    drop(counter);
    assert_eq!((copy.get_and_add(1), copy.get()), (3, 4));
    driver(&fake).work();
    assert!(matches!(
        driver(&fake).last_command(),
        Command::AddStaticCounter {
            registration_id: 4242,
            ..
        }
    ));
}

#[test]
fn counters_of_everybody_are_seen_coming_and_going() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let (came, went) = (Arc::clone(&seen), Arc::clone(&seen));
    client
        .add_handler(Handler::AvailableCounter(Arc::new(
            move |reader, registration_id, counter_id| {
                let label = reader.label(counter_id).unwrap_or_default();
                came.lock().unwrap().push(format!("+{registration_id} {label}"));
            },
        )))
        .unwrap();
    client
        .add_handler(Handler::UnavailableCounter(Arc::new(
            move |_, registration_id, counter_id| {
                went.lock()
                    .unwrap()
                    .push(format!("-{registration_id} {counter_id}"));
            },
        )))
        .unwrap();
    let own = client.add_counter(1001, &[], "mine").unwrap();
    let counter_id = driver(&fake).allocate(1003, &[], "theirs", 900);
    driver(&fake).send(&Event::CounterReady {
        registration_id: 900,
        counter_id,
    });
    driver(&fake).send(&Event::UnavailableCounter {
        registration_id: 900,
        counter_id,
    });
    service_until_idle(&client);
    let client_id = client.client_id();
    assert_eq!(
        *seen.lock().unwrap(),
        [
            format!("+{client_id} client-heartbeat: id={client_id}"),
            format!("+{} mine", own.registration_id()),
            "+900 theirs".to_owned(),
            format!("-900 {counter_id}"),
        ]
    );
}

#[test]
fn a_handler_that_was_removed_is_told_of_no_counter() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    let told: Arc<Mutex<usize>> = Arc::default();
    let count = Arc::clone(&told);
    let handler: CounterHandler = Arc::new(move |_, _, _| *count.lock().unwrap() += 1);
    let coming = client
        .add_handler(Handler::AvailableCounter(handler.clone()))
        .unwrap();
    let going = client.add_handler(Handler::UnavailableCounter(handler)).unwrap();
    service_until_idle(&client);
    let before = *told.lock().unwrap();
    assert!(client.remove_handler(coming));
    assert!(client.remove_handler(going));
    assert!(!client.remove_handler(going));
    let counter_id = driver(&fake).allocate(1003, &[], "theirs", 900);
    let (registration_id, ready) = (
        900,
        Event::CounterReady {
            registration_id: 900,
            counter_id,
        },
    );
    driver(&fake).send(&ready);
    driver(&fake).send(&Event::UnavailableCounter {
        registration_id,
        counter_id,
    });
    service_until_idle(&client);
    assert_eq!(*told.lock().unwrap(), before);
}

#[test]
fn a_counter_the_driver_took_away_is_closed() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    let counter = client.add_counter(1001, &[], "mine").unwrap();
    let (registration_id, counter_id) = (counter.registration_id(), counter.counter_id());
    driver(&fake).send(&Event::UnavailableCounter {
        registration_id,
        counter_id,
    });
    service_until_idle(&client);
    assert!(counter.is_closed() && !counter.set(1));
}
