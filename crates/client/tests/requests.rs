//! Requests to the driver: answered, refused, late, given up.

mod common;

use headrace_client::{ClientError, ErrorCode, Offer};
use headrace_protocol::command::Command;
use headrace_protocol::event::Event;

use common::{FakeDriver, Reply, connect, driver, service_until_idle};

const CHANNEL: &str = "aeron:udp?endpoint=127.0.0.1:40123";

#[test]
fn a_publication_is_what_the_driver_made_of_it() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    driver(&fake).status_id = 900;
    let publication = client.add_publication(CHANNEL, 10).unwrap();
    assert_eq!((publication.channel(), publication.stream_id()), (CHANNEL, 10));
    assert_eq!(publication.status().counter_id(), 900);
    assert_eq!(
        publication.registration_id(),
        publication.original_registration_id()
    );
    assert!(publication.is_original());
    assert_eq!(
        publication.session_id() as i64,
        1000 + publication.registration_id()
    );
    assert_eq!(
        (
            publication.limits().max_payload_length,
            publication.limits().max_message_length
        ),
        (1376, 8192)
    );
    assert_eq!(publication.limits().max_possible_position, 1 << 47);
    assert_eq!(publication.limits().initial_term_id, 7);
    assert!(!publication.is_connected());
    assert_eq!(publication.offer(b"no subscriber"), Ok(Offer::NotConnected));

    driver(&fake).connect(publication.registration_id(), 96);
    assert!(publication.is_connected());
    assert_eq!(publication.available_window(), Some(96));
    assert_eq!(
        publication.offer_parts(&[b"first", b" message"]),
        Ok(Offer::Position(64))
    );
    assert_eq!(publication.offer(&[]), Ok(Offer::Position(96)));
    assert_eq!(publication.offer(b"no room"), Ok(Offer::BackPressured));
    assert_eq!(
        (publication.position(), publication.position_limit()),
        (Some(96), Some(96))
    );
    assert!(
        publication.offer(&[0; 8193]).is_ok(),
        "back pressure is looked at before the length"
    );
    driver(&fake).connect(publication.registration_id(), 32 * 1024);
    assert!(publication.offer(&[0; 8193]).is_err());
}

#[test]
fn closing_is_told_once_and_everything_after_says_closed() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    let publication = client.add_publication(CHANNEL, 10).unwrap();
    driver(&fake).connect(publication.registration_id(), 4096);
    publication.close();
    publication.close();
    publication.revoke();
    driver(&fake).work();
    assert_eq!(
        driver(&fake).count(|command| matches!(command, Command::RemovePublication { .. })),
        1
    );
    let Command::RemovePublication {
        registration_id,
        revoke,
        ..
    } = driver(&fake).last_command()
    else {
        panic!("unexpected command");
    };
    assert_eq!((registration_id, revoke), (publication.registration_id(), false));
    assert_eq!(publication.offer(b"x"), Ok(Offer::Closed));
    assert!(matches!(
        publication.try_claim(8),
        Ok(headrace_client::ClaimResult::Refused(Offer::Closed))
    ));
    assert_eq!(
        (publication.position(), publication.available_window()),
        (None, None)
    );
    assert!(publication.is_closed() && !publication.is_connected());
    assert_eq!(
        publication.status().state(),
        headrace_client::ChannelStatus::Closed
    );
    assert_eq!(
        publication.destinations().add("aeron:udp?endpoint=127.0.0.1:1"),
        Err(ClientError::Closed { what: "publication" })
    );
}

#[test]
fn dropping_closes_and_revoking_says_so() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    drop(client.add_publication(CHANNEL, 10).unwrap());
    driver(&fake).work();
    assert!(matches!(
        driver(&fake).last_command(),
        Command::RemovePublication { revoke: false, .. }
    ));
    client.add_exclusive_publication(CHANNEL, 11).unwrap().revoke();
    driver(&fake).work();
    assert!(matches!(
        driver(&fake).last_command(),
        Command::RemovePublication { revoke: true, .. }
    ));
    drop(client.add_subscription(CHANNEL, 10, Default::default()).unwrap());
    driver(&fake).work();
    assert!(matches!(
        driver(&fake).last_command(),
        Command::RemoveSubscription { .. }
    ));
    drop(client.add_counter(1001, b"key", "label").unwrap());
    driver(&fake).work();
    assert!(matches!(
        driver(&fake).last_command(),
        Command::RemoveCounter { .. }
    ));
}

#[test]
fn handles_of_one_publication_share_its_log() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    let first = client.add_publication(CHANNEL, 10).unwrap();
    let second = client.add_publication(CHANNEL, 10).unwrap();
    assert_ne!(first.registration_id(), second.registration_id());
    assert_eq!(first.registration_id(), second.original_registration_id());
    assert!(!second.is_original());
    driver(&fake).connect(first.registration_id(), 4096);
    assert_eq!(first.offer(&[1; 32]), Ok(Offer::Position(64)));
    assert_eq!(second.offer(&[2; 32]), Ok(Offer::Position(128)));

    // Destinations belong to the log, so either handle names the original.
    second
        .destinations()
        .add("aeron:udp?endpoint=127.0.0.1:1")
        .unwrap();
    let Command::AddDestination { registration_id, .. } = driver(&fake).last_command() else {
        panic!("unexpected command");
    };
    assert_eq!(registration_id, first.registration_id());

    // The second goes on when the first is closed, even after its log file is gone.
    first.close();
    let path = driver(&fake).logs[&first.registration_id()].path.clone();
    std::fs::remove_file(path).unwrap();
    assert_eq!(second.offer(&[3; 32]), Ok(Offer::Position(192)));
}

#[test]
fn a_refusal_carries_code_and_text_and_is_given_once() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    driver(&fake).reply = Reply::Refusal(ErrorCode::InvalidChannel, "unknown parameter: colour".into());
    let error = client.add_publication(CHANNEL, 10).err().unwrap();
    let ClientError::Registration {
        code, ref message, ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(
        (code, message.as_str()),
        (ErrorCode::InvalidChannel, "unknown parameter: colour")
    );

    let id = client
        .requests()
        .add_subscription(CHANNEL, 10, Default::default())
        .unwrap();
    driver(&fake).work();
    service_until_idle(&client);
    assert!(matches!(
        client.requests().find_subscription(id),
        Err(ClientError::Registration { .. })
    ));
    assert!(matches!(client.requests().find_subscription(id), Ok(None)));
}

#[test]
fn an_asynchronous_add_is_nothing_then_the_thing_then_nothing() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    let id = client.requests().add_exclusive_publication(CHANNEL, 10).unwrap();
    service_until_idle(&client);
    assert!(client.requests().is_pending(id));
    assert!(
        client
            .requests()
            .find_exclusive_publication(id)
            .unwrap()
            .is_none()
    );
    driver(&fake).work();
    service_until_idle(&client);
    assert!(!client.requests().is_pending(id));
    let publication = client.requests().find_exclusive_publication(id).unwrap().unwrap();
    assert_eq!(publication.registration_id(), id);
    assert!(
        client
            .requests()
            .find_exclusive_publication(id)
            .unwrap()
            .is_none()
    );
    assert!(client.requests().find_publication(id + 1000).unwrap().is_none());
}

#[test]
fn a_result_is_not_handed_out_as_something_else() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    let id = client.requests().add_publication(CHANNEL, 10).unwrap();
    driver(&fake).work();
    service_until_idle(&client);
    assert!(matches!(
        client.requests().find_counter(id),
        Err(ClientError::InvalidArgument { .. })
    ));
    // It can be taken only once, so it was closed.
    driver(&fake).work();
    assert!(matches!(
        driver(&fake).last_command(),
        Command::RemovePublication { .. }
    ));
}

#[test]
fn a_driver_that_does_not_answer_is_a_timeout_and_the_resource_is_removed() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    driver(&fake).reply = Reply::Silence;
    let named = "aeron:udp?endpoint=slow.example:40456";
    let error = client.add_publication(named, 10).err().unwrap();
    assert!(matches!(error, ClientError::DriverTimeout { .. }), "{error}");
    let asked = "add publication channel=aeron:udp?endpoint=slow.example:40456";
    assert!(error.to_string().contains(asked), "{error}");
    driver(&fake).work();
    assert!(matches!(
        driver(&fake).last_command(),
        Command::RemovePublication { .. }
    ));
    driver(&fake).reply = Reply::Normal;

    // The late reply belongs to no request.
    let error = ErrorCode::GenericError;
    let late = Event::Error {
        correlation_id: 2,
        error_code: error,
        message: "late".into(),
    };
    driver(&fake).send(&late);
    service_until_idle(&client);
    assert!(client.add_publication(CHANNEL, 10).is_ok());
}

#[test]
fn an_asynchronous_add_times_out_too() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    driver(&fake).reply = Reply::Silence;
    let id = client
        .requests()
        .add_subscription(CHANNEL, 10, Default::default())
        .unwrap();
    for _ in 0..110 {
        driver(&fake).work();
        service_until_idle(&client);
    }
    assert!(matches!(
        client.requests().find_subscription(id),
        Err(ClientError::DriverTimeout { .. })
    ));
    driver(&fake).work();
    assert!(matches!(
        driver(&fake).last_command(),
        Command::RemoveSubscription { .. }
    ));
}

#[test]
fn a_pending_add_can_be_given_up() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    let id = client.requests().add_publication(CHANNEL, 10).unwrap();
    assert_eq!(client.requests().cancel(id), Ok(true));
    assert_eq!(client.requests().cancel(id), Ok(false));
    driver(&fake).work();
    service_until_idle(&client);
    assert!(client.requests().find_publication(id).unwrap().is_none());
    let removed = |command: &Command<'_>| matches!(command, Command::RemovePublication { .. });
    assert_eq!(driver(&fake).count(removed), 1);

    // One that has arrived is closed.
    let id = client.requests().add_publication(CHANNEL, 10).unwrap();
    driver(&fake).work();
    service_until_idle(&client);
    assert_eq!(client.requests().cancel(id), Ok(true));
    driver(&fake).work();
    assert_eq!(driver(&fake).count(removed), 2);
}

#[test]
fn a_log_that_cannot_be_mapped_is_named_and_given_back() {
    let fake = FakeDriver::start();
    let (client, errors) = connect(&fake);
    let id = client.requests().add_publication(CHANNEL, 10).unwrap();
    driver(&fake).work();
    let path = driver(&fake).logs[&id].path.clone();
    std::fs::remove_file(&path).unwrap();
    service_until_idle(&client);
    let error = client.requests().find_publication(id).err().unwrap();
    assert!(error.to_string().contains(&path), "{error}");
    driver(&fake).work();
    assert!(matches!(
        driver(&fake).last_command(),
        Command::RemovePublication { .. }
    ));
    assert!(
        errors.lock().unwrap().is_empty(),
        "the caller was told, and no handler needs to be"
    );
}

#[test]
fn a_full_ring_is_an_error_and_leaves_no_request_behind() {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    let long = format!("aeron:udp?endpoint=127.0.0.1:40123|alias={}", "x".repeat(100_000));
    let error = loop {
        match client.requests().add_publication(&long, 10) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(
        matches!(
            error,
            ClientError::CommandBufferFull {
                command: "add publication"
            }
        ),
        "{error}"
    );
    let too_long = "x".repeat(1 << 20);
    let error = client.requests().add_publication(&too_long, 10).err().unwrap();
    assert!(error.to_string().contains("too long"), "{error}");
}

#[test]
fn session_ids_come_from_drivers_that_can_say() {
    use headrace_buffers::counters::{system_counter, type_ids};
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    client.next_available_session_id(10).unwrap();
    driver(&fake).work();
    assert_eq!(driver(&fake).commands.len(), 0, "an old driver is not asked");
    for id in 0..=i64::from(system_counter::CONTROL_PROTOCOL_VERSION) {
        let counter_id = driver(&fake).allocate(type_ids::SYSTEM_COUNTER, &[], "system", id);
        driver(&fake).counters.set_value(counter_id, 1 << 16);
    }
    assert_eq!(client.next_available_session_id(10), Ok(4711));
}

#[test]
fn the_bound_port_is_found_through_the_counters() {
    use headrace_buffers::counters::type_ids;
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    let status_id = driver(&fake).allocate(type_ids::RECEIVE_CHANNEL_STATUS, &[], "rcv-channel", 1);
    driver(&fake).status_id = status_id;
    let channel = "aeron:udp?endpoint=127.0.0.1:0";
    let subscription = client.add_subscription(channel, 10, Default::default()).unwrap();
    assert_eq!(
        subscription.status().state(),
        headrace_client::ChannelStatus::Initializing
    );
    assert_eq!(
        (subscription.resolved_endpoint(), subscription.resolved_channel()),
        (None, None)
    );

    let mut key = Vec::from(status_id.to_le_bytes());
    key.extend_from_slice(&15i32.to_le_bytes());
    key.extend_from_slice(b"127.0.0.1:54321");
    let address_id = driver(&fake).allocate(type_ids::LOCAL_SOCKET_ADDRESS, &key, "rcv-local-sockaddr", 1);
    driver(&fake).counters.set_value(address_id, 1);
    assert_eq!(
        subscription.resolved_endpoint(),
        None,
        "the channel is not active yet"
    );
    driver(&fake).counters.set_value(status_id, 1);
    assert_eq!(
        subscription.status().state(),
        headrace_client::ChannelStatus::Active
    );
    assert_eq!(
        subscription.resolved_endpoint().as_deref(),
        Some("127.0.0.1:54321")
    );
    assert_eq!(
        subscription.resolved_channel().as_deref(),
        Some("aeron:udp?endpoint=127.0.0.1:54321")
    );
    driver(&fake).counters.set_value(status_id, -1);
    assert_eq!(
        subscription.status().state(),
        headrace_client::ChannelStatus::Errored
    );
}
