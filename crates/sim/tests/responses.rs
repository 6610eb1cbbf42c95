//! Response channels over UDP: each requester reads the answers to its own requests, whatever the network and strangers
//! do.

mod common;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use common::{
    MILLISECOND, Reader, SECOND, World, counters_of, errors_of, faults, is_accepted, system_counter,
};
use headrace_buffers::counters::{system_counter, type_ids};
use headrace_client::{Client, ClientError, FragmentAssembler, Image, Publication, Subscription};
use headrace_protocol::ErrorCode;
use headrace_protocol::frame::{
    FrameKind, ResponseSetup, Setup, StatusMessage, classify, setup, status_message,
};
use headrace_sim::{Datagram, Node};

const REQUESTS: i32 = 1001;
const ANSWERS: i32 = 1002;
const TO_SERVER: &str = "aeron:udp?endpoint=server:40123|term-length=64k|linger=0";
const FROM_SERVER: &str = "aeron:udp?control=server:24325|control-mode=response";
const STRANGER: &str = "10.9.9.9:999";

/// Sends requests that name it, and reads the answers.
struct Requester {
    name: &'static str,
    node: Rc<Node>,
    _client: Arc<Client>,
    answers: Reader,
    requests: Publication,
    sent: usize,
}

impl Requester {
    fn new(world: &World, name: &'static str) -> Self {
        Self::on(&Rc::new(world.add_node(name).unwrap()), name)
    }

    fn on(node: &Rc<Node>, name: &'static str) -> Self {
        let client = node.connect().unwrap();
        let answers = Reader::subscribe(&client, FROM_SERVER, ANSWERS);
        let subscription_id = answers.subscription.registration_id();
        let channel = format!("{TO_SERVER}|response-correlation-id={subscription_id}");
        Self {
            requests: client.add_publication(&channel, REQUESTS).unwrap(),
            name,
            node: Rc::clone(node),
            _client: client,
            answers,
            sent: 0,
        }
    }

    fn request(&self, number: usize) -> Vec<u8> {
        let text = format!("{}-{number}-", self.name);
        let length = text.len() + number * 37 % 3_000;
        text.into_bytes().into_iter().cycle().take(length).collect()
    }

    /// Sends what there is room for, up to request `end`. Reads what is there.
    fn turn(&mut self, end: usize) {
        while self.sent < end && is_accepted(self.requests.offer(&self.request(self.sent))) {
            self.sent += 1;
        }
        self.answers.poll();
    }

    /// Each request was answered, in order, and nothing else came.
    fn check(&self, count: usize) {
        assert_eq!(self.answers.messages.len(), count, "{}", self.name);
        for (number, answer) in self.answers.messages.iter().enumerate() {
            assert!(*answer == self.request(number), "{} number={number}", self.name);
        }
    }
}

/// One requester as its server knows it.
struct Session {
    image: Arc<Image>,
    answers: Publication,
    assembler: FragmentAssembler,
    waiting: Vec<Vec<u8>>,
}

/// Sends each request back.
struct Server {
    client: Arc<Client>,
    requests: Subscription,
    sessions: Vec<Session>,
}

fn answers_to(image: &Image) -> String {
    let id = image.correlation_id();
    format!("{FROM_SERVER}|term-length=64k|linger=0|response-correlation-id={id}")
}

impl Server {
    fn on(node: &Node) -> Self {
        let client = node.connect().unwrap();
        let requests =
            client.add_subscription("aeron:udp?endpoint=server:40123", REQUESTS, Default::default());
        Self {
            requests: requests.unwrap(),
            client,
            sessions: Vec::new(),
        }
    }

    fn turn(&mut self) {
        for image in self.requests.images() {
            let is_known = |session: &Session| session.image.correlation_id() == image.correlation_id();
            if !self.sessions.iter().any(is_known) {
                self.sessions.push(Session {
                    answers: self.client.add_publication(&answers_to(&image), ANSWERS).unwrap(),
                    image,
                    assembler: FragmentAssembler::new(),
                    waiting: Vec::new(),
                });
            }
        }
        for session in &mut self.sessions {
            session.turn();
        }
    }
}

impl Session {
    fn turn(&mut self) {
        while let Some(answer) = self.waiting.first()
            && is_accepted(self.answers.offer(answer))
        {
            self.waiting.remove(0);
        }
        if self.waiting.is_empty() && self.answers.is_connected() && !self.image.is_closed() {
            let (assembler, waiting) = (&mut self.assembler, &mut self.waiting);
            let polled = self.image.poll(
                |payload, header| {
                    assembler.on_fragment(payload, header, |message, _| waiting.push(message.to_vec()));
                },
                16,
            );
            polled.unwrap();
        }
    }
}

/// Runs until each requester has the answers to `count` requests.
fn run(world: &World, server: &mut Server, requesters: &mut [Requester], count: usize) {
    let end_ns = world.now_ns() + 120 * SECOND;
    while requesters.iter().any(|it| it.answers.messages.len() < count) {
        assert!(
            world.now_ns() < end_ns,
            "the answers do not come: {}",
            world.trace(40)
        );
        world.step();
        server.turn();
        for requester in &mut *requesters {
            requester.turn(count);
        }
    }
    for requester in requesters {
        requester.check(count);
    }
}

fn frames(sent: &[Datagram], kind: FrameKind) -> impl Iterator<Item = &Datagram> {
    sent.iter().filter(move |sent| classify(&sent.bytes) == Ok(kind))
}

fn invalid_packets(node: &Node) -> i64 {
    system_counter(node, system_counter::INVALID_PACKETS)
}

fn bytes_of(length: usize, encode: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut frame = vec![0; length];
    let length = encode(&mut frame);
    frame.truncate(length);
    frame
}

#[test]
fn each_requester_reads_the_answers_to_its_own_requests_on_a_bad_network() {
    for seed in 0..4 {
        let world = World::new(seed);
        let node = world.add_node("server").unwrap();
        let mut server = Server::on(&node);
        world.network().set_links(faults());
        let mut requesters = ["one", "two"].map(|name| Requester::new(&world, name));
        run(&world, &mut server, &mut requesters, 200);
        assert!(world.trace(100_000).contains("NAK"), "seed={seed} had no faults");
        assert_eq!(server.sessions.len(), 2, "seed={seed}");
    }
}

#[test]
fn a_requester_that_comes_first_waits_for_its_server() {
    let world = World::new(1);
    let node = world.add_node("server").unwrap();
    node.crash().unwrap();
    let mut requesters = [Requester::new(&world, "one")];
    world.run_for(3 * SECOND);
    assert!(!requesters[0].requests.is_connected() && !requesters[0].answers.subscription.is_connected());
    node.start().unwrap();
    let mut server = Server::on(&node);
    run(&world, &mut server, &mut requesters, 20);
    assert_eq!(errors_of(&requesters[0].node), [""; 0]);
}

#[test]
fn a_server_that_ends_or_dies_is_followed_by_the_next() {
    for dies in [false, true] {
        let world = World::new(2);
        let node = world.add_node("server").unwrap();
        let mut server = Server::on(&node);
        let mut requesters = ["one", "two"].map(|name| Requester::new(&world, name));
        run(&world, &mut server, &mut requesters, 20);
        let first = requesters[0].answers.subscription.images()[0].session_id();
        if dies {
            node.crash().unwrap();
            drop(server);
            node.start().unwrap();
        } else {
            drop(server);
        }
        // What is sent before that is lost.
        world.run_until(10 * SECOND, "the requesters know", || {
            requesters.iter().all(|it| !it.requests.is_connected())
        });
        let mut server = Server::on(&node);
        run(&world, &mut server, &mut requesters, 40);
        let images = requesters[0].answers.subscription.images();
        assert_ne!(images.last().unwrap().session_id(), first, "dies={dies}");
    }
}

#[test]
fn answers_may_follow_answers_to_the_same_requester() {
    let world = World::new(3);
    let node = world.add_node("server").unwrap();
    let mut server = Server::on(&node);
    let mut requesters = [Requester::new(&world, "one")];
    run(&world, &mut server, &mut requesters, 10);
    let session = server.sessions.remove(0);
    let channel = answers_to(&session.image);
    session.answers.close();
    world.run_for(SECOND);
    server.sessions.push(Session {
        answers: server.client.add_publication(&channel, ANSWERS).unwrap(),
        ..session
    });
    run(&world, &mut server, &mut requesters, 20);
    assert_eq!(errors_of(&node), [""; 0]);
}

#[test]
fn a_second_publication_of_answers_is_never_connected() {
    let world = World::new(4);
    let node = world.add_node("server").unwrap();
    let mut server = Server::on(&node);
    let mut requesters = [Requester::new(&world, "one")];
    run(&world, &mut server, &mut requesters, 10);
    let channel = answers_to(&server.sessions[0].image);
    let shared = server.client.add_publication(&channel, ANSWERS).unwrap();
    assert_eq!(shared.session_id(), server.sessions[0].answers.session_id());
    let second = server
        .client
        .add_exclusive_publication(&channel, ANSWERS)
        .unwrap();
    world.run_for(2 * SECOND);
    assert!(!second.is_connected());
    run(&world, &mut server, &mut requesters, 20);
    let errors = errors_of(&node);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].contains("a second publication answers the same request"),
        "{errors:?}"
    );
}

#[test]
fn a_setup_says_that_answers_are_wanted_and_the_session_is_told_until_they_are_read() {
    let world = World::new(5);
    let node = world.add_node("server").unwrap();
    let mut server = Server::on(&node);
    let tap = world.network().tap();
    let mut requesters = [Requester::new(&world, "one")];
    run(&world, &mut server, &mut requesters, 1);
    let sent = tap.take();
    let setups: Vec<Setup> = frames(&sent, FrameKind::Setup)
        .map(|sent| Setup::decode(&sent.bytes).unwrap())
        .collect();
    for found in &setups {
        let wants_answers = found.flags & setup::FLAG_RESPONSE != 0;
        assert_eq!(wants_answers, found.stream_id == REQUESTS, "{found:?}");
    }
    assert!(setups.iter().any(|found| found.stream_id == ANSWERS));
    let told: Vec<ResponseSetup> = frames(&sent, FrameKind::ResponseSetup)
        .map(|sent| ResponseSetup::decode(&sent.bytes).unwrap())
        .collect();
    let expected = ResponseSetup {
        flags: 0,
        session_id: requesters[0].requests.session_id(),
        stream_id: REQUESTS,
        response_session_id: server.sessions[0].answers.session_id(),
    };
    assert_eq!(told, [expected]);
    // It is told no more once they are read, and again when the reader is lost.
    world.run_for(SECOND);
    assert_eq!(frames(&tap.take(), FrameKind::ResponseSetup).count(), 0);
    requesters[0].answers.subscription.close();
    world.run_for(SECOND);
    assert!((3..=6).contains(&frames(&tap.take(), FrameKind::ResponseSetup).count()));
    assert_eq!([&requesters[0].node, &node].map(invalid_packets), [0, 0]);
}

/// What a stranger sends who knows the sessions of others.
struct Stranger<'a> {
    world: &'a World,
    server: &'a Node,
}

impl Stranger<'_> {
    fn send(&self, to: SocketAddr, frame: &[u8]) {
        self.world.network().inject(STRANGER.parse().unwrap(), to, frame);
    }

    /// Says that the answers come on a session of its choice, in the name of the server: others are not heard.
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

    /// Asks for the answers to another one.
    fn ask(&self, session_id: i32) {
        let asks = StatusMessage::eliciting_setup(session_id, ANSWERS, 666, None);
        let control = SocketAddr::new(self.server.address(), 24_325);
        self.send(control, &bytes_of(64, |into| asks.encode(into)));
    }

    /// Claims to be the reader of the answers.
    fn claim(&self, session_id: i32, setup: &Setup) {
        let claims = StatusMessage {
            flags: 0,
            session_id,
            stream_id: ANSWERS,
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
fn a_stranger_does_not_turn_away_answers_that_flow() {
    let world = World::new(6);
    let node = world.add_node("server").unwrap();
    let mut server = Server::on(&node);
    let tap = world.network().tap();
    let mut requesters = [Requester::new(&world, "one")];
    run(&world, &mut server, &mut requesters, 10);
    let socket = socket_of(&tap.take(), &requesters[0].node);
    let session_id = server.sessions[0].answers.session_id();
    let stranger = Stranger {
        world: &world,
        server: &node,
    };
    for _ in 0..20 {
        stranger.say_session(&requesters[0], socket, 7);
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
    assert_eq!(requesters[0].answers.subscription.image_count(), 1);
    run(&world, &mut server, &mut requesters, 20);
    // The true session once more is no offence.
    world.run_for(SECOND);
    stranger.say_session(&requesters[0], socket, session_id);
    run(&world, &mut server, &mut requesters, 30);
    assert_eq!(invalid_packets(&requesters[0].node), 20);
}

#[test]
fn a_stranger_that_comes_first_delays_the_answers_until_the_true_ones_are_told() {
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
    // A flood of sessions: one in 100 ms is believed, and asked for, where answers are to come from.
    for session_id in 0..500 {
        stranger.say_session(&requesters[0], socket, session_id);
        world.run_for(MILLISECOND);
    }
    let sent = tap.take();
    let asked = frames(&sent, FrameKind::StatusMessage)
        .filter(|sent| StatusMessage::decode(&sent.bytes).unwrap().stream_id == ANSWERS)
        .count();
    assert!((4..=6).contains(&asked), "{asked} in half a second");
    assert!(invalid_packets(&requesters[0].node) >= 490);
    assert!(sent.iter().all(|sent| sent.to != STRANGER.parse().unwrap()));
    run(&world, &mut server, &mut requesters, 20);
}

#[test]
fn a_stranger_that_asks_for_answers_is_sent_one_setup_and_is_replaced() {
    let world = World::new(8);
    let node = world.add_node("server").unwrap();
    let mut server = Server::on(&node);
    let mut requesters = [Requester::new(&world, "one")];
    // Nothing of the server reaches the requester, so no one reads the answers.
    world.run_until(SECOND, "the requests are read", || {
        server.requests.image_count() == 1
    });
    node.set_cut_to(&requesters[0].node, true);
    server.turn();
    world.run_for(MILLISECOND);
    let session_id = server.sessions[0].answers.session_id();
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

#[test]
fn a_requester_that_names_no_control_is_told_why_no_answers_come() {
    let world = World::new(9);
    let node = world.add_node("server").unwrap();
    let mut server = Server::on(&node);
    let requester = world.add_node("one").unwrap();
    let client = requester.connect().unwrap();
    let answers = Reader::subscribe(&client, "aeron:udp?control-mode=response", ANSWERS);
    let id = answers.subscription.registration_id();
    let channel = format!("{TO_SERVER}|response-correlation-id={id}");
    let _requests = client.add_publication(&channel, REQUESTS).unwrap();
    for _ in 0..50 {
        world.run_for(20 * MILLISECOND);
        server.turn();
    }
    let errors = errors_of(&requester);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].starts_with("WARN") && errors[0].contains("has no control"),
        "{errors:?}"
    );
}

#[test]
fn all_that_was_opened_for_answers_is_given_back() {
    let world = World::new(10);
    let node = world.add_node("server").unwrap();
    let fresh = node.holdings();
    let mut server = Server::on(&node);
    let mut requesters = [Requester::new(&world, "one")];
    run(&world, &mut server, &mut requesters, 10);
    let [
        Requester {
            node: far,
            answers,
            requests,
            _client: client,
            ..
        },
    ] = requesters;
    requests.close();
    answers.subscription.close();
    client.close().unwrap();
    drop(server);
    world.run_until(60 * SECOND, "nothing is left", || {
        node.holdings() == fresh && far.holdings() == fresh
    });
}

#[test]
fn requesters_of_one_driver_share_a_socket_and_read_each_its_own_answers() {
    let world = World::new(11);
    let node = Rc::new(world.add_node("server").unwrap());
    let mut server = Server::on(&node);
    let far = Rc::new(world.add_node("far").unwrap());
    let before = far.holdings();
    // The last two are on the driver of the server.
    let mut requesters = [(&far, "one"), (&far, "two"), (&node, "three"), (&node, "four")]
        .map(|(node, name)| Requester::on(node, name));
    run(&world, &mut server, &mut requesters, 50);
    let channels = counters_of(&far, type_ids::RECEIVE_CHANNEL_STATUS);
    assert_eq!(channels.len(), 1);
    assert_ne!(far.holdings(), before);
    drop(requesters);
    world.run_until(60 * SECOND, "nothing is left", || far.holdings() == before);
}

fn refusal<T>(result: Result<T, ClientError>) -> String {
    match result {
        Err(ClientError::Registration { code, message, .. }) => {
            assert_eq!(code, ErrorCode::GenericError, "{message}");
            message
        }
        _ => panic!("it is not refused"),
    }
}

#[test]
fn what_cannot_be_answered_is_refused_with_the_reason() {
    let world = World::new(12);
    let node = world.add_node("server").unwrap();
    let server = Server::on(&node);
    let far = world.add_node("far").unwrap();
    let client = far.connect().unwrap();
    let _plain = client.add_publication(TO_SERVER, REQUESTS).unwrap();
    world.run_until(SECOND, "the requests are read", || {
        server.requests.image_count() == 1
    });
    let image = server.requests.images().remove(0);
    let add = |channel: &str| refusal(server.client.add_publication(channel, ANSWERS));
    let id = image.correlation_id();
    assert!(add(&answers_to(&image)).contains(&format!(
        "image.correlationId={id} did not request a response channel"
    )));
    assert!(
        add(&format!("{FROM_SERVER}|response-correlation-id=77"))
            .contains("image.correlationId=77 not found")
    );
    assert!(add(FROM_SERVER).contains("no response-correlation-id set"));
    // Neither a subscription that reads no answers, nor one over IPC.
    for channel in ["aeron:udp?endpoint=far:40123", "aeron:ipc?control-mode=response"] {
        let other = Reader::subscribe(&client, channel, ANSWERS);
        let id = other.subscription.registration_id();
        let channel = format!("{TO_SERVER}|response-correlation-id={id}");
        let message = refusal(client.add_publication(&channel, REQUESTS));
        assert!(
            message.contains(&format!(
                "unable to find response subscription for response-correlation-id={id}"
            )),
            "{message}"
        );
    }
}

#[test]
fn a_socket_carries_answers_or_other_streams() {
    let world = World::new(13);
    let node = world.add_node("server").unwrap();
    let client = node.connect().unwrap();
    let holds_open = format!("{FROM_SERVER}|response-correlation-id=prototype|tags=5");
    let _prototype = client.add_publication(&holds_open, ANSWERS).unwrap();
    let dynamic = "aeron:udp?control=server:24325|control-mode=dynamic";
    let message = refusal(client.add_publication(dynamic, REQUESTS));
    assert!(
        message.contains("control-mode=response must be on both or on neither"),
        "{message}"
    );
    let by_tag = "aeron:udp?control=server:24325|control-mode=dynamic|tags=5";
    assert!(refusal(client.add_publication(by_tag, REQUESTS)).contains("mismatched control-mode"));
    let reads = |channel: &str| client.add_subscription(channel, ANSWERS, Default::default());
    let _answers = reads(FROM_SERVER).unwrap();
    let message = refusal(reads("aeron:udp?control=server:24325"));
    assert!(
        message.contains("option conflicts with existing subscription: isResponse=false"),
        "{message}"
    );
}

#[test]
fn a_prototype_holds_the_socket_open_and_is_never_connected() {
    let world = World::new(14);
    let node = world.add_node("server").unwrap();
    let client = node.connect().unwrap();
    let holds_open = format!("{FROM_SERVER}|term-length=1m|response-correlation-id=prototype");
    let prototype = client.add_publication(&holds_open, ANSWERS).unwrap();
    assert_eq!(prototype.term_length(), 64 * 1024);
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

#[test]
fn a_spy_reads_the_answers_that_leave_its_driver() {
    let world = World::new(15);
    let node = world.add_node("server").unwrap();
    let mut server = Server::on(&node);
    let client = node.connect().unwrap();
    let mut spy = Reader::subscribe(&client, &format!("aeron-spy:{FROM_SERVER}"), ANSWERS);
    let mut requesters = [Requester::new(&world, "one")];
    run(&world, &mut server, &mut requesters, 5);
    assert_eq!(spy.poll(), requesters[0].answers.messages);
}

#[test]
fn a_subscription_that_knows_no_session_asks_once_and_takes_no_stream() {
    let world = World::new(16);
    let node = world.add_node("server").unwrap();
    let far = world.add_node("far").unwrap();
    let client = far.connect().unwrap();
    let tap = world.network().tap();
    let answers = Reader::subscribe(&client, &format!("{FROM_SERVER}|endpoint=far:40124"), ANSWERS);
    let publisher = node.connect().unwrap();
    let channel = "aeron:udp?endpoint=far:40124|term-length=64k";
    let _other = publisher.add_publication(channel, ANSWERS).unwrap();
    world.run_for(3 * SECOND);
    let sent = tap.take();
    let asked: Vec<(i32, i32)> = frames(&sent, FrameKind::StatusMessage)
        .map(|sent| StatusMessage::decode(&sent.bytes).unwrap())
        .map(|message| (message.session_id, message.stream_id))
        .collect();
    assert_eq!(asked, [(0, 0)]);
    assert!(frames(&sent, FrameKind::Setup).count() > 10);
    assert_eq!(answers.subscription.image_count(), 0);
}
