//! Response channels over UDP: each requester reads the responses to its own requests, whatever the network and
//! strangers do.

#[path = "../common/mod.rs"]
mod common;
mod lives;
mod strangers;

use std::rc::Rc;
use std::sync::Arc;

use common::{
    MILLISECOND, Reader, SECOND, World, counters_of, errors_of, faults, is_accepted, system_counter,
};
use headrace_buffers::counters::{system_counter, type_ids};
use headrace_client::{Client, ClientError, FragmentAssembler, Image, Publication, Subscription};
use headrace_protocol::ErrorCode;
use headrace_protocol::frame::{FrameKind, ResponseSetup, Setup, StatusMessage, classify, setup};
use headrace_sim::{Datagram, Node};

const REQUESTS: i32 = 1001;
const RESPONSES: i32 = 1002;
const TO_SERVER: &str = "aeron:udp?endpoint=server:40123|term-length=64k|linger=0";
const FROM_SERVER: &str = "aeron:udp?control=server:24325|control-mode=response";

/// Sends requests that name it, and reads the responses.
struct Requester {
    name: &'static str,
    node: Rc<Node>,
    _client: Arc<Client>,
    responses: Reader,
    requests: Publication,
    sent: usize,
}

impl Requester {
    fn new(world: &World, name: &'static str) -> Self {
        Self::on(&Rc::new(world.add_node(name).unwrap()), name)
    }

    fn on(node: &Rc<Node>, name: &'static str) -> Self {
        Self::asking(node, name, TO_SERVER)
    }

    /// Sends its requests on `channel`.
    fn asking(node: &Rc<Node>, name: &'static str, channel: &str) -> Self {
        let client = node.connect().unwrap();
        let responses = Reader::subscribe(&client, FROM_SERVER, RESPONSES);
        let subscription_id = responses.subscription.registration_id();
        let channel = format!("{channel}|response-correlation-id={subscription_id}");
        Self {
            requests: client.add_publication(&channel, REQUESTS).unwrap(),
            name,
            node: Rc::clone(node),
            _client: client,
            responses,
            sent: 0,
        }
    }

    fn request(&self, number: usize) -> Vec<u8> {
        let text = format!("{}-{number}-", self.name);
        let length = text.len() + number * 37 % 3_000;
        text.into_bytes().into_iter().cycle().take(length).collect()
    }

    /// Sends as many requests as the stream takes, up to request `end`. Reads what has come.
    fn turn(&mut self, end: usize) {
        while self.sent < end && is_accepted(self.requests.offer(&self.request(self.sent))) {
            self.sent += 1;
        }
        self.responses.poll();
    }

    /// Each request was answered, in order, and nothing else came.
    fn check(&self, count: usize) {
        assert_eq!(self.responses.messages.len(), count, "{}", self.name);
        for (number, answer) in self.responses.messages.iter().enumerate() {
            assert!(*answer == self.request(number), "{} number={number}", self.name);
        }
    }
}

/// One requester as its server knows it.
struct Session {
    image: Arc<Image>,
    responses: Publication,
    assembler: FragmentAssembler,
    waiting: Vec<Vec<u8>>,
}

/// Sends each request back.
struct Server {
    client: Arc<Client>,
    requests: Subscription,
    sessions: Vec<Session>,
}

fn responses_to(image: &Image) -> String {
    let id = image.correlation_id();
    format!("{FROM_SERVER}|term-length=64k|linger=0|response-correlation-id={id}")
}

impl Server {
    fn on(node: &Node) -> Self {
        Self::reading(node, "aeron:udp?endpoint=server:40123")
    }

    /// Reads requests from `channel`.
    fn reading(node: &Node, channel: &str) -> Self {
        let client = node.connect().unwrap();
        let requests = client.add_subscription(channel, REQUESTS, Default::default());
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
                    responses: self
                        .client
                        .add_publication(&responses_to(&image), RESPONSES)
                        .unwrap(),
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
            && is_accepted(self.responses.offer(answer))
        {
            self.waiting.remove(0);
        }
        if self.waiting.is_empty() && self.responses.is_connected() && !self.image.is_closed() {
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

/// Runs until each requester has the responses to `count` requests.
fn run(world: &World, server: &mut Server, requesters: &mut [Requester], count: usize) {
    let end_ns = world.now_ns() + 120 * SECOND;
    while requesters.iter().any(|it| it.responses.messages.len() < count) {
        assert!(
            world.now_ns() < end_ns,
            "the responses do not come: {}",
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

#[test]
fn each_requester_reads_the_responses_to_its_own_requests_on_a_bad_network() {
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

/// Nothing that either end says waits for the other's next heartbeat.
#[test]
fn a_requester_has_the_stream_of_its_responses_before_it_asks_and_before_any_timer() {
    for seed in 0..8 {
        let world = World::new(seed);
        let mut server = Server::on(&world.add_node("server").unwrap());
        let requester = Requester::new(&world, "one");
        world.run_until(SECOND, "the requests are read", || {
            server.turn();
            server.sessions.len() == 1
        });
        world.run_until(50 * MILLISECOND, "the responses are read", || {
            server.turn();
            requester.responses.subscription.is_connected() && server.sessions[0].responses.is_connected()
        });
    }
}

#[test]
fn a_requester_that_comes_first_waits_for_its_server() {
    let world = World::new(1);
    let node = world.add_node("server").unwrap();
    node.crash().unwrap();
    let mut requesters = [Requester::new(&world, "one")];
    world.run_for(3 * SECOND);
    assert!(!requesters[0].requests.is_connected() && !requesters[0].responses.subscription.is_connected());
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
        let first = requesters[0].responses.subscription.images()[0].session_id();
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
        let images = requesters[0].responses.subscription.images();
        assert_ne!(images.last().unwrap().session_id(), first, "dies={dies}");
    }
}

#[test]
fn responses_may_follow_responses_to_the_same_requester() {
    let world = World::new(3);
    let node = world.add_node("server").unwrap();
    let mut server = Server::on(&node);
    let mut requesters = [Requester::new(&world, "one")];
    run(&world, &mut server, &mut requesters, 10);
    let session = server.sessions.remove(0);
    let channel = responses_to(&session.image);
    session.responses.close();
    world.run_for(SECOND);
    server.sessions.push(Session {
        responses: server.client.add_publication(&channel, RESPONSES).unwrap(),
        ..session
    });
    let begun_ns = world.now_ns();
    run(&world, &mut server, &mut requesters, 20);
    assert!(world.now_ns() - begun_ns < SECOND, "the first stream has ended");
    assert_eq!(errors_of(&node), [""; 0]);
}

#[test]
fn a_second_publication_of_responses_waits_for_the_end_of_the_first() {
    let world = World::new(4);
    let node = world.add_node("server").unwrap();
    let mut server = Server::on(&node);
    let mut requesters = [Requester::new(&world, "one")];
    run(&world, &mut server, &mut requesters, 10);
    let channel = responses_to(&server.sessions[0].image);
    let shared = server.client.add_publication(&channel, RESPONSES).unwrap();
    assert_eq!(shared.session_id(), server.sessions[0].responses.session_id());
    let second = server
        .client
        .add_exclusive_publication(&channel, RESPONSES)
        .unwrap();
    world.run_for(2 * SECOND);
    assert!(!second.is_connected());
    run(&world, &mut server, &mut requesters, 20);
    let errors = errors_of(&node);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].contains("a second publication responds to the same request"),
        "{errors:?}"
    );
    drop(shared);
    server.sessions.remove(0).responses.close();
    world.run_until(2 * SECOND, "the second is connected", || second.is_connected());
    assert_eq!(errors_of(&requesters[0].node), [""; 0]);
}

#[test]
fn a_setup_says_that_responses_are_wanted_and_the_session_is_told_until_they_are_read() {
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
        let wants_responses = found.flags & setup::FLAG_RESPONSE != 0;
        assert_eq!(wants_responses, found.stream_id == REQUESTS, "{found:?}");
    }
    assert!(setups.iter().any(|found| found.stream_id == RESPONSES));
    let told: Vec<ResponseSetup> = frames(&sent, FrameKind::ResponseSetup)
        .map(|sent| ResponseSetup::decode(&sent.bytes).unwrap())
        .collect();
    let expected = ResponseSetup {
        flags: 0,
        session_id: requesters[0].requests.session_id(),
        stream_id: REQUESTS,
        response_session_id: server.sessions[0].responses.session_id(),
    };
    assert_eq!(told, [expected]);
    // It is told no more once they are read, and again when the reader is lost.
    world.run_for(SECOND);
    assert_eq!(frames(&tap.take(), FrameKind::ResponseSetup).count(), 0);
    requesters[0].responses.subscription.close();
    world.run_for(SECOND);
    assert!((3..=6).contains(&frames(&tap.take(), FrameKind::ResponseSetup).count()));
    assert_eq!([&requesters[0].node, &node].map(invalid_packets), [0, 0]);
}

#[test]
fn a_requester_that_names_no_control_is_told_why_no_responses_come() {
    let world = World::new(9);
    let node = world.add_node("server").unwrap();
    let mut server = Server::on(&node);
    let requester = world.add_node("one").unwrap();
    let client = requester.connect().unwrap();
    let responses = Reader::subscribe(&client, "aeron:udp?control-mode=response", RESPONSES);
    let id = responses.subscription.registration_id();
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
fn all_that_was_opened_for_responses_is_given_back() {
    let world = World::new(10);
    let node = world.add_node("server").unwrap();
    let fresh = node.holdings();
    let mut server = Server::on(&node);
    let mut requesters = [Requester::new(&world, "one")];
    run(&world, &mut server, &mut requesters, 10);
    let [
        Requester {
            node: far,
            responses,
            requests,
            _client: client,
            ..
        },
    ] = requesters;
    requests.close();
    responses.subscription.close();
    client.close().unwrap();
    drop(server);
    world.run_until(60 * SECOND, "nothing is left", || {
        node.holdings() == fresh && far.holdings() == fresh
    });
}

#[test]
fn requesters_of_one_driver_share_a_socket_and_read_each_its_own_responses() {
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
    let add = |channel: &str| refusal(server.client.add_publication(channel, RESPONSES));
    let id = image.correlation_id();
    assert!(add(&responses_to(&image)).contains(&format!(
        "image.correlationId={id} did not request a response channel"
    )));
    assert!(
        add(&format!("{FROM_SERVER}|response-correlation-id=77"))
            .contains("image.correlationId=77 not found")
    );
    assert!(add(FROM_SERVER).contains("no response-correlation-id set"));
    // Neither a subscription that reads no responses, nor one over IPC.
    for channel in ["aeron:udp?endpoint=far:40123", "aeron:ipc?control-mode=response"] {
        let other = Reader::subscribe(&client, channel, RESPONSES);
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
fn a_socket_carries_responses_or_other_streams() {
    let world = World::new(13);
    let node = world.add_node("server").unwrap();
    let client = node.connect().unwrap();
    let holds_open = format!("{FROM_SERVER}|response-correlation-id=prototype|tags=5");
    let _prototype = client.add_publication(&holds_open, RESPONSES).unwrap();
    let dynamic = "aeron:udp?control=server:24325|control-mode=dynamic";
    let message = refusal(client.add_publication(dynamic, REQUESTS));
    assert!(
        message.contains("control-mode=response must be on both or on neither"),
        "{message}"
    );
    let by_tag = "aeron:udp?control=server:24325|control-mode=dynamic|tags=5";
    assert!(refusal(client.add_publication(by_tag, REQUESTS)).contains("mismatched control-mode"));
    let reads = |channel: &str| client.add_subscription(channel, RESPONSES, Default::default());
    let _responses = reads(FROM_SERVER).unwrap();
    let message = refusal(reads("aeron:udp?control=server:24325"));
    assert!(
        message.contains("option conflicts with existing subscription: isResponse=false"),
        "{message}"
    );
}

#[test]
fn a_spy_reads_the_responses_that_leave_its_driver() {
    let world = World::new(15);
    let node = world.add_node("server").unwrap();
    let mut server = Server::on(&node);
    let client = node.connect().unwrap();
    let mut spy = Reader::subscribe(&client, &format!("aeron-spy:{FROM_SERVER}"), RESPONSES);
    let mut requesters = [Requester::new(&world, "one")];
    run(&world, &mut server, &mut requesters, 5);
    assert_eq!(spy.poll(), requesters[0].responses.messages);
}

#[test]
fn a_subscription_that_knows_no_session_asks_for_none_and_takes_no_stream() {
    let world = World::new(16);
    let node = world.add_node("server").unwrap();
    let far = world.add_node("far").unwrap();
    let client = far.connect().unwrap();
    let tap = world.network().tap();
    let responses = Reader::subscribe(&client, &format!("{FROM_SERVER}|endpoint=far:40124"), RESPONSES);
    let publisher = node.connect().unwrap();
    let channel = "aeron:udp?endpoint=far:40124|term-length=64k";
    let _other = publisher.add_publication(channel, RESPONSES).unwrap();
    world.run_for(3 * SECOND);
    let sent = tap.take();
    let asked: Vec<(i32, i32)> = frames(&sent, FrameKind::StatusMessage)
        .map(|sent| StatusMessage::decode(&sent.bytes).unwrap())
        .map(|message| (message.session_id, message.stream_id))
        .collect();
    assert_eq!(asked, []);
    assert!(frames(&sent, FrameKind::Setup).count() > 10);
    assert_eq!(responses.subscription.image_count(), 0);
}

#[test]
fn requests_that_come_on_two_paths_are_answered_on_one() {
    let world = World::new(17);
    let node = world.add_node("server").unwrap();
    let mut server = Server::reading(&node, "aeron:udp?control-mode=manual");
    let far = Rc::new(world.add_node("far").unwrap());
    let both = "aeron:udp?control-mode=manual|term-length=64k|linger=0";
    let mut requesters = [Requester::asking(&far, "one", both)];
    let tap = world.network().tap();
    for port in [40_123, 40_124] {
        let path = format!("aeron:udp?endpoint=server:{port}");
        server.requests.destinations().add(&path).unwrap();
        requesters[0].requests.destinations().add(&path).unwrap();
    }
    world.run_for(SECOND / 2);
    run(&world, &mut server, &mut requesters, 50);
    assert!(frames(&tap.take(), FrameKind::ResponseSetup).count() >= 2);
    assert_eq!([&*far, &node].map(invalid_packets), [0, 0]);
    assert_eq!(requesters[0].responses.subscription.image_count(), 1);
}
