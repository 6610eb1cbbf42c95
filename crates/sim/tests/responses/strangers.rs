//! Strangers who know the sessions of others.

use std::net::SocketAddr;

use headrace_buffers::counters::{system_counter, type_ids};
use headrace_protocol::frame::{
    FrameKind, ResponseSetup, Setup, StatusMessage, classify, setup, status_message,
};
use headrace_sim::{Datagram, Node};

use crate::common::{MILLISECOND, Reader, SECOND, World, counters_of, system_counter};
use crate::{
    FROM_SERVER, REQUESTS, RESPONSES, Requester, Server, frames, invalid_packets, responses_to, run,
};

const STRANGER: &str = "10.9.9.9:999";

fn bytes_of(length: usize, encode: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut frame = vec![0; length];
    let length = encode(&mut frame);
    frame.truncate(length);
    frame
}

fn setup_of_requests(session_id: i32) -> Setup {
    Setup {
        flags: setup::FLAG_RESPONSE,
        term_offset: 0,
        session_id,
        stream_id: REQUESTS,
        initial_term_id: 1,
        active_term_id: 1,
        term_length: 65_536,
        mtu: 1408,
        ttl: 0,
    }
}

/// What one of them sends.
struct Stranger<'a> {
    world: &'a World,
    server: &'a Node,
}

impl Stranger<'_> {
    fn send(&self, to: SocketAddr, frame: &[u8]) {
        self.world.network().inject(STRANGER.parse().unwrap(), to, frame);
    }

    /// Says that the responses come on a session of its choice, in the name of the server: others are not heard.
    fn say_session(&self, requester: &Requester, socket: SocketAddr, response_session_id: i32) {
        let told = ResponseSetup {
            flags: 0,
            session_id: requester.requests.session_id(),
            stream_id: REQUESTS,
            response_session_id,
        };
        let frame = bytes_of(ResponseSetup::LENGTH, |into| told.encode(into));
        let server = SocketAddr::new(self.server.address(), 40_123);
        self.world.network().inject(server, socket, &frame);
    }

    /// Asks for the responses to another one.
    fn ask(&self, session_id: i32) {
        let asks = StatusMessage::eliciting_setup(session_id, RESPONSES, 666, None);
        let control = SocketAddr::new(self.server.address(), 24_325);
        self.send(control, &bytes_of(64, |into| asks.encode(into)));
    }

    /// Claims to be the reader of the responses.
    fn claim(&self, session_id: i32, setup: &Setup) {
        let claims = StatusMessage {
            flags: 0,
            session_id,
            stream_id: RESPONSES,
            consumption_term_id: setup.active_term_id,
            consumption_term_offset: setup.term_offset,
            receiver_window_length: 16 * 1024,
            receiver_id: 666,
            group_tag: None,
        };
        assert_eq!(claims.flags & status_message::FLAG_SETUP, 0);
        let control = SocketAddr::new(self.server.address(), 24_325);
        self.send(control, &bytes_of(64, |into| claims.encode(into)));
    }
}

/// Where the requests of a node come from.
fn socket_of(sent: &[Datagram], node: &Node) -> SocketAddr {
    let setups = frames(sent, FrameKind::Setup);
    let mut own = setups.filter(|sent| sent.from.ip() == node.address());
    own.next().expect("a SETUP of the requests").from
}

#[test]
fn a_stranger_does_not_turn_away_responses_that_flow() {
    let world = World::new(6);
    let node = world.add_node("server").unwrap();
    let mut server = Server::on(&node);
    let tap = world.network().tap();
    let mut requesters = [Requester::new(&world, "one")];
    run(&world, &mut server, &mut requesters, 10);
    let socket = socket_of(&tap.take(), &requesters[0].node);
    let session_id = server.sessions[0].responses.session_id();
    let stranger = Stranger {
        world: &world,
        server: &node,
    };
    for other_session in 0..20 {
        stranger.say_session(&requesters[0], socket, other_session);
        stranger.ask(session_id);
        world.run_for(SECOND / 10);
    }
    let sent = tap.take();
    assert!(
        sent.iter().all(|sent| sent.to != STRANGER.parse().unwrap()),
        "{sent:?}"
    );
    assert_eq!(frames(&sent, FrameKind::Setup).count(), 0);
    assert_eq!([&requesters[0].node, &node].map(invalid_packets), [20, 20]);
    assert_eq!(requesters[0].responses.subscription.image_count(), 1);
    run(&world, &mut server, &mut requesters, 20);
    // The true session once more is no offence.
    world.run_for(SECOND);
    stranger.say_session(&requesters[0], socket, session_id);
    run(&world, &mut server, &mut requesters, 30);
    assert_eq!(invalid_packets(&requesters[0].node), 20);
}

#[test]
fn a_stranger_that_comes_first_delays_the_responses_until_the_true_ones_are_told() {
    let world = World::new(7);
    let node = world.add_node("server").unwrap();
    let mut server = Server::on(&node);
    let tap = world.network().tap();
    let mut requesters = [Requester::new(&world, "one")];
    world.run_until(SECOND, "the requests are connected", || {
        requesters[0].requests.is_connected()
    });
    let socket = socket_of(&tap.take(), &requesters[0].node);
    let stranger = Stranger {
        world: &world,
        server: &node,
    };
    // A flood of sessions: one in 100 ms is believed, and asked for, where responses are to come from.
    for session_id in 0..500 {
        stranger.say_session(&requesters[0], socket, session_id);
        world.run_for(MILLISECOND);
    }
    let sent = tap.take();
    let asked = frames(&sent, FrameKind::StatusMessage)
        .filter(|sent| StatusMessage::decode(&sent.bytes).unwrap().stream_id == RESPONSES)
        .count();
    assert!((4..=6).contains(&asked), "{asked} in half a second");
    assert!(invalid_packets(&requesters[0].node) >= 490);
    assert!(sent.iter().all(|sent| sent.to != STRANGER.parse().unwrap()));
    run(&world, &mut server, &mut requesters, 20);
}

#[test]
fn a_stranger_that_asks_for_responses_is_sent_one_setup_and_is_replaced() {
    let world = World::new(8);
    let node = world.add_node("server").unwrap();
    let mut server = Server::on(&node);
    let mut requesters = [Requester::new(&world, "one")];
    // Nothing of the server reaches the requester, so no one reads the responses.
    world.run_until(SECOND, "the requests are read", || {
        server.requests.image_count() == 1
    });
    node.set_cut_to(&requesters[0].node, true);
    server.turn();
    world.run_for(MILLISECOND);
    let session_id = server.sessions[0].responses.session_id();
    let stranger = Stranger {
        world: &world,
        server: &node,
    };
    let tap = world.network().tap();
    let to_stranger = |sent: &[Datagram]| -> Vec<Datagram> {
        let own = sent.iter().filter(|sent| sent.to == STRANGER.parse().unwrap());
        own.cloned().collect()
    };
    stranger.ask(session_id);
    world.run_for(2 * SECOND);
    let sent = to_stranger(&tap.take());
    assert_eq!(sent.len(), 1, "{sent:?}");
    let told = Setup::decode(&sent[0].bytes).unwrap();
    // However often it asks, a SETUP goes out once in 100 ms.
    for _ in 0..1_000 {
        stranger.ask(session_id);
        world.run_for(MILLISECOND);
    }
    world.run_for(SECOND / 5);
    let count = to_stranger(&tap.take()).len();
    assert!((9..=11).contains(&count), "{count} in a second");
    node.set_cut_to(&requesters[0].node, false);
    run(&world, &mut server, &mut requesters, 10);
    // One that has asked no longer counts as a receiver.
    stranger.claim(session_id, &told);
    run(&world, &mut server, &mut requesters, 20);
    assert_eq!(to_stranger(&tap.take()), []);
    assert!(system_counter(&node, system_counter::STATUS_MESSAGES_REJECTED) >= 1);
}

/// The address may be another's. The server's program answers each that comes, as a server does.
#[test]
fn one_that_announces_requests_in_anothers_name_has_three_times_as_much_sent_there_as_it_sends() {
    let world = World::new(9);
    let node = world.add_node("server").unwrap();
    let mut server = Server::on(&node);
    let stranger = Stranger {
        world: &world,
        server: &node,
    };
    let tap = world.network().tap();
    // Bytes that a frame brings to the address.
    let brings = |server: &mut Server, port: u16, frame: &[u8]| {
        stranger.send(SocketAddr::new(node.address(), port), frame);
        for _ in 0..150 {
            world.run_for(20 * MILLISECOND);
            server.turn();
        }
        let sent = tap.take();
        let there = sent.iter().filter(|sent| sent.to == STRANGER.parse().unwrap());
        there.map(|sent| sent.bytes.len()).sum::<usize>()
    };
    let mut requests = vec![0; Setup::LENGTH];
    setup_of_requests(5).encode(&mut requests);
    let told = brings(&mut server, 40_123, &requests);
    let least = StatusMessage::LENGTH + ResponseSetup::LENGTH;
    assert!((least..=3 * requests.len()).contains(&told), "{told}");
    let asks =
        StatusMessage::eliciting_setup(server.sessions[0].responses.session_id(), RESPONSES, 666, None);
    let asks = bytes_of(64, |into| asks.encode(into));
    assert_eq!(brings(&mut server, 24_325, &asks), Setup::LENGTH);
}

/// A spy lets the stream go on when its reader has left.
#[test]
fn responses_that_flow_do_not_go_to_the_stranger_that_asks_when_their_reader_leaves() {
    for every in [1, 7, 20] {
        let world = World::new(3);
        let node = world.add_node("server").unwrap();
        let server = Server::on(&node);
        let requester = Requester::new(&world, "one");
        world.run_until(SECOND, "the requests", || server.requests.image_count() == 1);
        let channel = format!("{}|ssc=true", responses_to(&server.requests.images()[0]));
        let channel = channel.replace("term-length=64k", "term-length=1m");
        let responses = server.client.add_publication(&channel, RESPONSES).unwrap();
        let mut spy = Reader::subscribe(&server.client, &format!("aeron-spy:{FROM_SERVER}"), RESPONSES);
        let Requester {
            responses: mut reader,
            ..
        } = requester;
        world.run_until(3 * SECOND, "the responses", || {
            reader.subscription.is_connected() && responses.is_connected()
        });
        for _ in 0..2_000 {
            let _ = responses.offer(&[3; 1000]);
            reader.poll();
            spy.poll();
            world.step();
        }
        reader.subscription.close();
        let stranger = Stranger {
            world: &world,
            server: &node,
        };
        let tap = world.network().tap();
        let mut asks = 0;
        for count in 0..4_000 {
            let _ = responses.offer(&[3; 1000]);
            spy.poll();
            if count % every == 0 {
                stranger.ask(responses.session_id());
                asks += 1;
            }
            world.step();
        }
        let sent = tap.take();
        let there: Vec<_> = sent
            .iter()
            .filter(|sent| sent.to == STRANGER.parse().unwrap())
            .collect();
        assert!(there.len() <= asks, "{} for {asks}", there.len());
        assert!(
            there
                .iter()
                .all(|sent| classify(&sent.bytes) == Ok(FrameKind::Setup)),
            "{every}"
        );
    }
}

#[test]
fn a_prototype_holds_the_socket_open_and_is_never_connected() {
    let world = World::new(14);
    let node = world.add_node("server").unwrap();
    let client = node.connect().unwrap();
    let holds_open = format!("{FROM_SERVER}|term-length=1m|response-correlation-id=prototype");
    let prototype = client.add_publication(&holds_open, RESPONSES).unwrap();
    assert_eq!(prototype.limits().term_length, 64 * 1024);
    let channels = || counters_of(&node, type_ids::SEND_CHANNEL_STATUS);
    let [before] = <[_; 1]>::try_from(channels()).unwrap();
    for seconds in 0..2 {
        let mut server = Server::on(&node);
        let mut requesters = [Requester::new(&world, ["one", "two"][seconds])];
        run(&world, &mut server, &mut requesters, 5);
        drop(server);
        drop(requesters);
        world.run_for(20 * SECOND);
        let [after] = <[_; 1]>::try_from(channels()).unwrap();
        assert_eq!((after.id, &after.label), (before.id, &before.label));
    }
    let stranger = Stranger {
        world: &world,
        server: &node,
    };
    stranger.ask(prototype.session_id());
    world.run_for(SECOND);
    assert!(!prototype.is_connected());
    assert_eq!(invalid_packets(&node), 1);
}
