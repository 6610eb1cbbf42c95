//! A program that answers: it sends each request back, after the stamp of the answer.

use std::collections::VecDeque;
use std::sync::Arc;

use headrace_client::{Client, ClientError, FragmentAssembler, Image, Subscription};

use crate::people::{Handle, Stamp};
use crate::stage::Route;

/// How long a server waits before it asks for a publication again that was refused.
const RETRY_NS: i64 = 100_000_000;
/// Requests read at once.
const READ_AT_ONCE: usize = 16;

/// Answers all requesters of one service.
pub(crate) struct Server {
    pub(crate) node: usize,
    pub(crate) service: usize,
    id: u64,
    pub(crate) client: Arc<Client>,
    route: Route,
    /// A requester that has not read answers for so long does not come back to them.
    patience_ns: i64,
    requests: Subscription,
    sessions: Vec<Session>,
    session_count: u64,
}

impl Server {
    pub(crate) fn new(
        node: usize,
        client: Arc<Client>,
        service: usize,
        route: Route,
        patience_ns: i64,
        id: u64,
    ) -> Result<Self, ClientError> {
        let (stream, channel) = &route.requests;
        Ok(Self {
            node,
            service,
            id,
            requests: client.add_subscription(channel, *stream as i32, Default::default())?,
            client,
            route,
            patience_ns,
            sessions: Vec::new(),
            session_count: 0,
        })
    }

    /// Lets go of requesters that are gone, and answers the others.
    pub(crate) fn turn(&mut self, random: &mut fastrand::Rng, now_ns: i64) {
        let images = self.requests.images();
        let id = |image: &Image| image.correlation_id();
        self.sessions
            .retain(|session| images.iter().any(|image| id(image) == id(&session.image)));
        for image in images {
            if !self
                .sessions
                .iter()
                .any(|session| id(&session.image) == id(&image))
            {
                self.session_count += 1;
                let publisher = self.id << 32 | self.session_count;
                let is_shared = random.u8(0..3) == 0;
                self.sessions.push(Session::new(image, publisher, is_shared));
            }
        }
        for session in &mut self.sessions {
            session.follow(&self.client, &self.route, now_ns);
            session.turn(self.route.is_local, self.patience_ns, now_ns);
        }
    }

    pub(crate) fn leave_holes(&self, random: &mut fastrand::Rng) {
        for session in &self.sessions {
            if let Answers::Open(answers) = &session.answers
                && random.bool()
            {
                answers.leave_a_hole();
            }
        }
    }

    /// Sessions of requests, each with that of the stream that answers it.
    pub(crate) fn sessions(&self) -> Vec<(i32, Option<i32>)> {
        let answers = |session: &Session| match &session.answers {
            Answers::Open(answers) => Some(answers.session_id()),
            Answers::Missing { .. } | Answers::Asked(_) => None,
        };
        self.sessions
            .iter()
            .map(|session| (session.image.session_id(), answers(session)))
            .collect()
    }

    /// True when it has answered all that was asked on a session.
    pub(crate) fn has_feedback(&self, session_id: i32, asked: Stamp) -> bool {
        let mut sessions = self.sessions.iter();
        sessions.any(|session| {
            session.image.session_id() == session_id
                && session.waiting.is_empty()
                && session
                    .last_request
                    .is_some_and(|last| last.number + 1 == asked.number)
        })
    }
}

/// The publication of the answers to one requester.
enum Answers {
    /// To be asked for from this time on.
    Missing {
        from_ns: i64,
    },
    Asked(Pending),
    Open(Handle),
}

/// What the driver was asked for. It is not wanted any more when this is dropped.
struct Pending {
    client: Arc<Client>,
    id: i64,
    is_shared: bool,
}

impl Pending {
    fn ask(
        client: &Arc<Client>,
        channel: &str,
        stream_id: i32,
        is_shared: bool,
    ) -> Result<Self, ClientError> {
        let id = if is_shared {
            client.requests().add_publication(channel, stream_id)?
        } else {
            client.requests().add_exclusive_publication(channel, stream_id)?
        };
        Ok(Self {
            client: Arc::clone(client),
            id,
            is_shared,
        })
    }

    fn take(&self) -> Result<Option<Handle>, ClientError> {
        if self.is_shared {
            Ok(self
                .client
                .requests()
                .find_publication(self.id)?
                .map(Handle::Shared))
        } else {
            Ok(self
                .client
                .requests()
                .find_exclusive_publication(self.id)?
                .map(Handle::Exclusive))
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // Its client may be gone, and with that the request.
        let _ = self.client.requests().cancel(self.id);
    }
}

/// One requester, as its server knows it.
struct Session {
    image: Arc<Image>,
    is_shared: bool,
    answers: Answers,
    has_connected: bool,
    /// Since when it reads no answers.
    alone_since_ns: Option<i64>,
    /// Of the next answer.
    next: Stamp,
    last_request: Option<Stamp>,
    assembler: FragmentAssembler,
    waiting: VecDeque<Vec<u8>>,
}

impl Session {
    fn new(image: Arc<Image>, publisher: u64, is_shared: bool) -> Self {
        Self {
            image,
            is_shared,
            answers: Answers::Missing { from_ns: 0 },
            has_connected: false,
            alone_since_ns: None,
            next: Stamp { publisher, number: 0 },
            last_request: None,
            assembler: FragmentAssembler::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Goes on to have a publication for the answers.
    fn follow(&mut self, client: &Arc<Client>, route: &Route, now_ns: i64) {
        let refused = Answers::Missing {
            from_ns: now_ns + RETRY_NS,
        };
        match &self.answers {
            Answers::Missing { from_ns } if now_ns >= *from_ns => {
                let (stream, channel) = &route.answers;
                let id = self.image.correlation_id();
                let channel = format!("{channel}|response-correlation-id={id}");
                let asked = Pending::ask(client, &channel, *stream as i32, self.is_shared);
                self.answers = asked.map_or(refused, Answers::Asked);
            }
            Answers::Asked(pending) => match pending.take() {
                Ok(None) => {}
                Ok(Some(answers)) => self.answers = Answers::Open(answers),
                Err(_) => self.answers = refused,
            },
            Answers::Missing { .. } | Answers::Open(_) => {}
        }
    }

    fn turn(&mut self, is_local: bool, patience_ns: i64, now_ns: i64) {
        let Answers::Open(answers) = &mut self.answers else {
            return;
        };
        let is_connected = answers.is_connected();
        self.has_connected |= is_connected;
        let alone_since_ns = *self.alone_since_ns.get_or_insert(now_ns);
        if is_connected {
            self.alone_since_ns = None;
        }
        while let Some(request) = self.waiting.front() {
            if !answers.offer(&[self.next.bytes(), request.clone()].concat()) {
                break;
            }
            self.next.number += 1;
            self.waiting.pop_front();
        }
        let is_late = now_ns - alone_since_ns > patience_ns;
        if !is_connected && (is_late || self.has_left(is_local)) {
            // A stream that is not read to its end stays at the driver.
            self.read();
            self.waiting.clear();
        } else if is_connected && self.waiting.is_empty() {
            self.read();
        }
    }

    /// True for a requester without a reader of its answers that has said so. One that is cut off may come back.
    fn has_left(&self, is_local: bool) -> bool {
        (is_local && self.has_connected) || self.image.end_of_stream_position() != i64::MAX
    }

    /// Takes requests: those of one image follow each other.
    fn read(&mut self) {
        let Self {
            image,
            assembler,
            waiting,
            last_request,
            ..
        } = self;
        let polled = image.poll(
            |payload, header| {
                assembler.on_fragment(payload, header, |request, _| {
                    let stamp = Stamp::of(request);
                    if let Some(last) = last_request.replace(stamp) {
                        let number = last.number + 1;
                        assert_eq!(stamp, Stamp { number, ..last }, "after {last:?}");
                    }
                    waiting.push_back(request.to_vec());
                });
            },
            READ_AT_ONCE,
        );
        polled.unwrap();
    }
}
