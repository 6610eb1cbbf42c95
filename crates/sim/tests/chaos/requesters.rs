//! Programs that ask, and what each must read: the answers to its own requests, in order and once.

use std::collections::{BTreeMap, BTreeSet};

use headrace_client::{Client, ClientError, FragmentAssembler, Subscription};

use crate::people::{Progress, Publisher, Stamp, Tie, image_name, note};
use crate::stage::Route;

/// Asks a service, and reads the responses.
pub(crate) struct Requester {
    pub(crate) node: usize,
    pub(crate) service: usize,
    /// It reads nothing before this time.
    pub(crate) asleep_until_ns: i64,
    pub(crate) requests: Publisher,
    answers: Subscription,
    assembler: FragmentAssembler,
    /// How far it has read each stream of responses.
    read: BTreeMap<u64, Progress>,
    /// Its requests to which it has the answers.
    answered: BTreeSet<u64>,
}

impl Requester {
    pub(crate) fn new(
        node: usize,
        client: &Client,
        service: usize,
        route: &Route,
        id: u64,
        is_shared: bool,
    ) -> Result<Self, ClientError> {
        let (stream, channel) = &route.answers;
        let answers = client.add_subscription(channel, *stream as i32, Default::default())?;
        let (stream, channel) = &route.requests;
        let channel = format!("{channel}|response-correlation-id={}", answers.registration_id());
        Ok(Self {
            node,
            service,
            asleep_until_ns: 0,
            requests: Publisher::new(node, client, (*stream, &channel), &[], id, is_shared)?,
            answers,
            assembler: FragmentAssembler::new(),
            read: BTreeMap::new(),
            answered: BTreeSet::new(),
        })
    }

    pub(crate) fn poll(&mut self) {
        let (assembler, read, answered) = (&mut self.assembler, &mut self.read, &mut self.answered);
        let (answers, asked) = (&self.answers, self.requests.published());
        let polled = answers.poll(
            |payload, header| {
                assembler.on_fragment(payload, header, |answer, header| {
                    let (stamp, request) = answer.split_at(Stamp::LENGTH);
                    let image = image_name(answers.image_by_session_id(header.session_id()));
                    note(read, Stamp::read(stamp), image, Tie::Tethered);
                    let request = Stamp::of(request);
                    assert_eq!(
                        request.publisher, asked.publisher,
                        "it answers the request of another"
                    );
                    assert!(
                        request.number < asked.number,
                        "it answers {request:?} of {asked:?}"
                    );
                    assert!(answered.insert(request.number), "{request:?} is answered twice");
                });
            },
            50,
        );
        polled.unwrap();
    }

    /// True when it has the answers to the last `count` requests.
    pub(crate) fn has_answers(&self, count: u64) -> bool {
        let end = self.requests.published().number;
        (end - count..end).all(|number| self.answered.contains(&number))
    }

    /// The sessions of the streams of responses that it reads.
    pub(crate) fn sessions(&self) -> Vec<i32> {
        let images = self.answers.images();
        images.iter().map(|image| image.session_id()).collect()
    }
}
