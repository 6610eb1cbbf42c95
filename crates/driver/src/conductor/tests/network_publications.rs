//! The conductor's half of a network publication, with the test as its sender.
//!
//! | from | to | test |
//! |---|---|---|
//! | Active | Draining, Linger, Done, confirmed | `a_closed_publication_waits_for_its_receiver_to_confirm` |
//! | Linger | Done, by time | `a_publication_nobody_confirms_lingers_and_goes` |
//! | Active | Linger | `a_revoked_publication_does_not_wait_for_unsent_bytes` |

use std::sync::Arc;

use headrace_buffers::counters::{system_counter, type_ids};
use headrace_buffers::log::{Append, ConcurrentAppender};
use headrace_protocol::ErrorCode;
use headrace_protocol::event::Event;
use headrace_protocol::frame::ErrorFrame;

use super::harness::{CLIENT, Harness, SECOND};
use crate::proxy::{ConductorReply, ConductorRequest, EndpointId, SenderCommand};
use crate::shared::{ConnectionState, PublicationShared};

pub(super) const UDP: &str = "aeron:udp?endpoint=localhost:24325|term-length=64k";

fn publish(driver: &mut Harness) -> (i64, EndpointId, Arc<PublicationShared>) {
    publish_on(driver, UDP)
}

/// Adds a publication and takes it over as the sender would.
pub(super) fn publish_on(driver: &mut Harness, channel: &str) -> (i64, EndpointId, Arc<PublicationShared>) {
    let registration_id = driver.add_publication(channel, 10);
    let taken = driver
        .sender_commands()
        .into_iter()
        .find_map(|command| match command {
            SenderCommand::AddPublication {
                endpoint,
                publication,
                max_resend: 1,
                ..
            } => Some((registration_id, endpoint, publication)),
            _ => None,
        });
    taken.unwrap_or_else(|| panic!("{:?}", driver.events()))
}

/// Appends messages of 128 bytes with their headers; a term's end takes one more try.
pub(super) fn fill(log: &headrace_buffers::log::LogBuffers, count: usize) {
    let appender = ConcurrentAppender::new(log);
    let mut appended = 0;
    while appended < count {
        match appender.offer(&[&[7; 96]], i64::MAX).unwrap() {
            Append::Position(_) => appended += 1,
            Append::AdminAction => {}
            other => panic!("{other:?}"),
        }
    }
}

/// The sender commands that end things, in order.
pub(super) fn endings(driver: &Harness) -> Vec<String> {
    driver
        .sender_commands()
        .iter()
        .map(|command| match command {
            SenderCommand::RemovePublication { registration_id, .. } => format!("remove {registration_id}"),
            SenderCommand::RemoveEndpoint(_) => "close".to_owned(),
            SenderCommand::Reconnect { remote, .. } => format!("reconnect {remote}"),
            SenderCommand::AddEndpoint(_) => "open".to_owned(),
            SenderCommand::AddPublication { .. } => "add".to_owned(),
        })
        .collect()
}

#[test]
fn an_added_publication_gets_a_channel_and_counters_that_tools_know() {
    let mut driver = Harness::new();
    let registration_id = driver.add_publication(UDP, 10);
    assert_eq!(driver.names(), ["CounterReady", "PublicationReady"]);
    let ready = driver.ready(registration_id);
    let socket = driver.sockets.opened().remove(0);
    assert_eq!(socket.local, "0.0.0.0:0".parse().unwrap());
    assert_eq!(socket.remote, Some("127.0.0.1:24325".parse().unwrap()));
    assert_eq!(
        (socket.send_buffer_length, socket.receive_buffer_length),
        (None, Some(131_072))
    );

    let status = driver.counters.record(ready.status_counter_id).unwrap();
    assert_eq!(status.type_id, type_ids::SEND_CHANNEL_STATUS);
    assert_eq!(status.label, format!("snd-channel: {UDP} 0.0.0.0:50000"));
    assert_eq!((status.value, status.registration_id), (1, registration_id));
    let address_id = driver
        .counters
        .find(type_ids::LOCAL_SOCKET_ADDRESS, registration_id)
        .unwrap();
    let address = driver.counters.record(address_id).unwrap();
    assert_eq!(
        address.label,
        format!("snd-local-sockaddr: {} 0.0.0.0:50000", status.id)
    );
    assert_eq!(address.key[..4], status.id.to_le_bytes());
    assert_eq!(address.key[4..8], 13i32.to_le_bytes());
    assert_eq!(address.key[8..21], *b"0.0.0.0:50000");
    assert_eq!(address.value, 1);

    let stream = format!("{registration_id} {} 10 {UDP}", ready.session_id);
    let labels = driver.live_counters();
    for name in [
        "pub-pos (concurrent)",
        "pub-lmt",
        "snd-pos",
        "snd-lmt",
        "snd-bpe",
        "snd-naks-received",
    ] {
        assert!(
            labels.contains(&format!("{name}: {stream}")),
            "{name} in {labels:?}"
        );
    }
    assert_eq!(endings(&driver), ["open", "add"]);
    let log = driver.log(registration_id);
    assert_eq!(
        (log.mtu(), log.stream_id(), log.session_id()),
        (1408, 10, ready.session_id)
    );
}

#[test]
fn streams_to_one_place_share_a_channel_and_concurrent_adds_a_log() {
    let mut driver = Harness::new();
    let first = driver.add_publication(UDP, 10);
    let shared = driver.add_publication(UDP, 10);
    let other = driver.add_publication(UDP, 11);
    let exclusive = driver.add_exclusive(UDP, 10);
    assert_eq!(endings(&driver), ["open", "add", "add", "add"]);
    assert_eq!(driver.ready(shared).original_registration_id, first);
    assert_eq!(
        driver.ready(other).status_counter_id,
        driver.ready(first).status_counter_id
    );
    assert_ne!(driver.ready(exclusive).session_id, driver.ready(first).session_id);
    assert_eq!(driver.log_files(), 3);
}

#[test]
fn the_limit_keeps_a_window_ahead_of_the_sender_and_a_term_behind_it() {
    let mut driver = Harness::new();
    let (registration_id, _, shared) = publish(&mut driver);
    let log = driver.log(registration_id);
    let limit = driver.counter(driver.ready(registration_id).limit_counter_id);
    driver.run_cycles();
    assert_eq!(limit.get(), 0, "no receiver");
    shared.set_connection(ConnectionState::Connected, "test");
    driver.pass_alive(SECOND);
    assert_eq!(
        (limit.get(), log.metadata().is_connected_acquire()),
        (32_768, true)
    );
    // Two terms and a half, sent as they are written: bytes more than a term before it are zeroed.
    for _ in 0..20 {
        fill(&log, 64);
        let produced = log.producer_position();
        shared.sender_position.set_release(produced);
        driver.run_cycles();
        assert_eq!(limit.get(), produced + 32_768);
    }
    assert_eq!(headrace_buffers::Memory::get_i64(log.term(0), 0), 0);
    // The receiver goes: the limit falls back to what was sent.
    fill(&log, 10);
    shared.set_connection(ConnectionState::Disconnected, "test");
    driver.run_cycles();
    assert_eq!(limit.get(), shared.sender_position.get());
    assert!(!log.metadata().is_connected_acquire());
}

#[test]
fn a_closed_publication_waits_for_its_receiver_to_confirm() {
    let mut driver = Harness::new();
    let (registration_id, endpoint, shared) = publish(&mut driver);
    let log = driver.log(registration_id);
    shared.set_connection(ConnectionState::Connected, "test");
    fill(&log, 10);
    driver.run_cycles();
    driver.forget();
    driver.remove_publication(registration_id, false);
    assert_eq!(log.metadata().end_of_stream_position_acquire(), 1280);
    driver.pass_alive(10 * SECOND);
    assert!(!shared.is_end_of_stream(), "unsent bytes and a live receiver");
    shared.sender_position.set_release(1280);
    driver.pass_alive(SECOND);
    assert!(shared.is_end_of_stream());
    assert_eq!(endings(&driver), [""; 0]);
    shared.set_end_of_stream_confirmed();
    driver.pass_alive(SECOND);
    assert_eq!(
        endings(&driver),
        [format!("remove {registration_id}"), "close".to_owned()]
    );
    assert_eq!(driver.log_files(), 1, "the sender still has it");
    drop(shared);
    driver.reply(ConductorReply::PublicationReleased { registration_id });
    driver.reply(ConductorReply::SendEndpointReleased(endpoint));
    assert_eq!(driver.log_files(), 0);
    assert_eq!(driver.live_counters(), [format!("client-heartbeat: id={CLIENT}")]);
}

#[test]
fn a_publication_nobody_confirms_lingers_and_goes() {
    let mut driver = Harness::new();
    let (registration_id, _, shared) = publish(&mut driver);
    fill(&driver.log(registration_id), 10);
    driver.forget();
    driver.remove_publication(registration_id, false);
    driver.pass_alive(6 * SECOND);
    assert!(shared.is_end_of_stream(), "no receiver to send to");
    assert_eq!(endings(&driver), [""; 0]);
    driver.pass_alive(SECOND);
    assert_eq!(
        endings(&driver),
        [format!("remove {registration_id}"), "close".to_owned()]
    );
}

#[test]
fn a_revoked_publication_does_not_wait_for_unsent_bytes() {
    let mut driver = Harness::new();
    let (registration_id, _, shared) = publish(&mut driver);
    let log = driver.log(registration_id);
    shared.set_connection(ConnectionState::Connected, "test");
    fill(&log, 10);
    driver.forget();
    driver.remove_publication(registration_id, true);
    driver.pass_alive(SECOND);
    assert!(log.metadata().is_publication_revoked_acquire() && shared.is_end_of_stream());
    assert!(!log.metadata().is_connected_acquire());
    assert_eq!(log.metadata().end_of_stream_position_acquire(), 1280);
    assert_eq!(driver.system(system_counter::PUBLICATIONS_REVOKED), 1);
    driver.pass_alive(6 * SECOND);
    assert_eq!(
        endings(&driver),
        [format!("remove {registration_id}"), "close".to_owned()]
    );
}

#[test]
fn a_hole_before_the_sender_is_filled_after_the_timeout() {
    let mut driver = Harness::new();
    let (registration_id, _, shared) = publish(&mut driver);
    let log = driver.log(registration_id);
    shared.set_connection(ConnectionState::Connected, "test");
    let appender = ConcurrentAppender::new(&log);
    std::mem::forget(appender.try_claim(96, i64::MAX).unwrap());
    driver.pass_alive(15 * SECOND);
    assert_eq!(driver.system(system_counter::UNBLOCKED_PUBLICATIONS), 0);
    driver.pass_alive(2 * SECOND);
    assert_eq!(driver.system(system_counter::UNBLOCKED_PUBLICATIONS), 1);
}

#[test]
fn a_dead_clients_publication_is_closed_like_any_other() {
    let mut driver = Harness::new();
    let (registration_id, _, shared) = publish(&mut driver);
    driver.forget();
    driver.pass(11 * SECOND);
    driver.pass(2 * SECOND);
    assert!(shared.is_end_of_stream());
    driver.pass(6 * SECOND);
    assert_eq!(
        endings(&driver),
        [format!("remove {registration_id}"), "close".to_owned()]
    );
}

#[test]
fn a_receivers_refusal_reaches_publishers_and_the_error_log() {
    let mut driver = Harness::new();
    let (registration_id, _, shared) = publish(&mut driver);
    driver.forget();
    driver.request(ConductorRequest::PublicationError {
        registration_id,
        frame: ErrorFrame {
            session_id: shared.session_id,
            stream_id: 10,
            receiver_id: 77,
            group_tag: None,
            error_code: ErrorCode::ImageRejected.value(),
            text: "too loud".to_owned(),
        },
        source: "127.0.0.1:9".parse().unwrap(),
    });
    match &driver.events()[..] {
        [Event::PublicationError(error)] => {
            assert_eq!(
                (error.registration_id, error.receiver_id, error.group_tag),
                (registration_id, 77, -1)
            );
            assert_eq!(error.message, "too loud");
            assert_eq!(error.source_address, Some("127.0.0.1:9".parse().unwrap()));
        }
        other => panic!("{other:?}"),
    }
    assert!(driver.recorded_errors()[0].starts_with("WARN"));
}

#[test]
fn a_flood_of_error_frames_leaves_the_error_log_room_for_others() {
    let mut driver = Harness::new();
    let (registration_id, _, shared) = publish(&mut driver);
    for receiver_id in 0..1000 {
        driver.request(ConductorRequest::PublicationError {
            registration_id,
            frame: ErrorFrame {
                session_id: shared.session_id,
                stream_id: 10,
                receiver_id,
                group_tag: None,
                error_code: receiver_id as i32,
                text: format!("{receiver_id:01000}"),
            },
            source: "127.0.0.1:9".parse().unwrap(),
        });
    }
    let errors = driver.recorded_errors();
    assert_eq!(errors.len(), 33);
    assert!(
        errors[32].starts_with("WARN - more error frames"),
        "{}",
        errors[32]
    );
    assert_eq!(driver.system(system_counter::ERRORS), 1000, "all are counted");
}

#[test]
fn a_name_that_moved_is_followed() {
    let mut driver = Harness::new();
    driver.hosts.put("moving.test", "127.0.0.1");
    let (_, endpoint, _) = publish_on(
        &mut driver,
        "aeron:udp?endpoint=moving.test:24325|term-length=64k",
    );
    driver.forget();
    driver.request(ConductorRequest::ReResolve { endpoint });
    assert_eq!(endings(&driver), [""; 0], "it resolves to the same address");
    driver.hosts.put("moving.test", "127.0.0.2");
    driver.request(ConductorRequest::ReResolve { endpoint });
    assert_eq!(endings(&driver), ["reconnect 127.0.0.2:24325"]);
    driver.hosts.lose("moving.test");
    driver.request(ConductorRequest::ReResolve { endpoint });
    assert!(driver.recorded_errors()[0].contains("could not re-resolve: endpoint=moving.test:24325"));
    let status = driver.counter(driver.counters.find(type_ids::SEND_CHANNEL_STATUS, 1).unwrap());
    assert_eq!(status.get(), 1);
    driver.reply(ConductorReply::ReconnectFailed {
        endpoint,
        reason: "no route".to_owned(),
    });
    assert_eq!(status.get(), -1);
}
