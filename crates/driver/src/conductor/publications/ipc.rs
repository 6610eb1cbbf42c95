//! A publication that is read only on this host, through its log.
//!
//! | state | leaves when |
//! |---|---|
//! | Active | revoked: readers told unavailable, Linger. Last handle gone: limit and end of stream fixed, Draining |
//! | Draining | every reader has read all: readers told unavailable, session id free, Linger |
//! | Linger | no handles left, one tick later at the earliest: Done |
//! | Done | positions freed, log unmapped and deleted |
//!
//! While active, every duty cycle raises the publisher's limit to the slowest reader's position plus a window,
//! after zeroing the bytes before that position.

use headrace_protocol::channel::ResponseCorrelation;

use super::publication::{Publication, Tick};
use super::stream::{PublicationState, RESPONDED_TWICE, Stream, StreamSpec};
use super::table::Table;
use super::unblock::unblock;
use crate::conductor::context::Context;
use crate::conductor::held_back::{Holder, is_used_up};
use crate::conductor::subscriptions::links::Link;
use crate::conductor::subscriptions::{Subscription, SubscriptionKind, Subscriptions};
use crate::event_recorder::{EventRecorder, Reason};
use crate::shared::ConnectionState;

const REJECTED: &str = "a reader rejected the stream";

/// The conductor's record of one IPC publication.
pub(crate) struct IpcPublication {
    stream: Stream,
    trip_limit: i64,
    trip_gain: i64,
    consumer_position: i64,
    cool_down_until_ns: Option<i64>,
    connection: ConnectionState,
}

impl IpcPublication {
    pub(crate) fn new(spec: StreamSpec, recorder: &EventRecorder, now_ns: i64) -> Self {
        Self {
            trip_limit: 0,
            trip_gain: spec.window_length / 8,
            consumer_position: spec.start_position(),
            cool_down_until_ns: None,
            connection: ConnectionState::Disconnected,
            stream: Stream::new(spec, recorder, now_ns),
        }
    }

    /// What is left to free once it is done.
    pub(crate) fn into_stream(self) -> Stream {
        self.stream
    }

    /// The only place that tells publishers whether they have a reader.
    fn set_connected(&mut self, is_connected: bool, reason: &'static str) {
        let new = ConnectionState::of(is_connected);
        if self.connection != new {
            self.stream.tell_connection(&mut self.connection, new, reason);
        }
        // Always: another process may have written over it.
        self.stream.set_connected(is_connected);
    }

    /// A reader has come. Makes room first, since a connected publisher offers at once.
    fn connect(&mut self, reason: &'static str) {
        self.update_limit();
        self.set_connected(true, reason);
    }

    /// The last reader has left. Takes the room first, so that the log refuses the next offer of a disconnected
    /// publisher.
    fn disconnect(&mut self, reason: &'static str) {
        self.update_limit();
        self.set_connected(false, reason);
    }

    fn on_unlinked(&mut self, link: &Link, reason: &'static str) {
        let consumed = link.position.get_acquire().min(self.stream.producer_position());
        self.consumer_position = self.consumer_position.max(consumed);
        if !self.stream.links.is_counted() {
            self.disconnect(reason);
        }
    }

    /// Turns every reader away until the cool-down is over. Returns the links to end.
    pub(crate) fn reject(&mut self, cool_down_until_ns: i64) -> Vec<Link> {
        self.cool_down_until_ns = Some(cool_down_until_ns);
        let links = self.stream.links.take_all(Reason::fault(REJECTED));
        for link in &links {
            self.on_unlinked(link, REJECTED);
        }
        links
    }

    fn end(&mut self, tick: &mut Tick, reason: &'static str) {
        self.set_connected(false, reason);
        self.stream.enter(PublicationState::Linger, reason);
        tick.has_ended = true;
    }

    fn tick_active(&mut self, now_ns: i64, unblock_timeout_ns: i64, tick: &mut Tick) {
        if self.cool_down_until_ns.is_some_and(|until_ns| until_ns <= now_ns) {
            self.cool_down_until_ns = None;
            tick.relink = true;
        }
        let join_position = self.join_position();
        let Stream { spec, links, .. } = &mut self.stream;
        let limit = self.consumer_position - spec.window_length + spec.window_length / 4;
        tick.untethered = links.check_untethered(now_ns, limit, join_position, spec.untethered);
        if self.stream.links.is_counted() {
            self.connect("a reader has rested");
        } else {
            self.disconnect("its last reader holds it back");
        }
        tick.unblocked = self
            .stream
            .check_blocked(self.consumer_position, now_ns, unblock_timeout_ns);
    }

    fn tick_draining(&mut self, tick: &mut Tick) {
        let producer_position = self.stream.publish_position();
        if self.stream.links.is_any_behind(producer_position) {
            if let Some((_, max)) = self.stream.links.min_max() {
                self.consumer_position = self.consumer_position.max(max.min(producer_position));
            }
            tick.unblocked = unblock(&self.stream.spec.log, self.consumer_position);
        } else {
            self.end(tick, "every reader has read all");
        }
    }
}

impl Table<IpcPublication> {
    /// If a new publication responds to another one, the subscription that the other one names reads it, and nothing
    /// else. One that reads the responses of a live publication stays with that until it ends.
    pub(crate) fn bring_responses(
        &self,
        cx: &Context,
        responses: &StreamSpec,
        subscriptions: &mut Subscriptions,
    ) {
        let Some(subscription) = self.reader_of(responses, subscriptions) else {
            return;
        };
        if self.brings_live_stream_to(subscription.registration_id) {
            cx.warn(RESPONDED_TWICE);
        } else {
            subscription.session_id = Some(responses.session_id);
        }
    }

    /// Brings responses that wait for those of another publication to the same requests, if that has ended.
    pub(crate) fn bring_waiting_responses(&mut self, cx: &mut Context, subscriptions: &mut Subscriptions) {
        while let Some(reader) = self.next_waiting_reader(subscriptions) {
            self.link(cx, &reader);
        }
    }

    /// A subscription that reads another publication's responses from now on.
    fn next_waiting_reader(&self, subscriptions: &mut Subscriptions) -> Option<Subscription> {
        let mut waiting = self
            .streams()
            .filter(|stream| stream.state() == PublicationState::Active && stream.links.is_empty());
        waiting.find_map(|stream| {
            let session_id = Some(stream.spec.session_id);
            let reader = self.reader_of(&stream.spec, subscriptions)?;
            if reader.session_id == session_id || self.brings_live_stream_to(reader.registration_id) {
                return None;
            }
            reader.session_id = session_id;
            Some(reader.clone())
        })
    }

    /// The subscription that reads a stream of responses, if that is one and is asked for.
    fn reader_of<'a>(
        &self,
        responses: &StreamSpec,
        subscriptions: &'a mut Subscriptions,
    ) -> Option<&'a mut Subscription> {
        let id = self.asker(responses.response_correlation)?;
        subscriptions.awaiting_ipc_responses(id)
    }

    fn brings_live_stream_to(&self, subscription_id: i64) -> bool {
        self.streams().any(|stream| {
            stream.state() == PublicationState::Active && stream.links.contains(subscription_id)
        })
    }

    /// The subscription that reads the responses to the publication of a registration id.
    fn asker(&self, requests: ResponseCorrelation) -> Option<i64> {
        let ResponseCorrelation::Id(registration_id) = requests else {
            return None;
        };
        let request = self
            .streams()
            .find(|stream| stream.spec.registration_id == registration_id)?;
        match request.spec.response_correlation {
            ResponseCorrelation::Id(subscription_id) => Some(subscription_id),
            ResponseCorrelation::None | ResponseCorrelation::Prototype => None,
        }
    }
}

impl Publication for IpcPublication {
    const KIND: &'static str = "an IPC";

    fn stream(&self) -> &Stream {
        &self.stream
    }

    fn stream_mut(&mut self) -> &mut Stream {
        &mut self.stream
    }

    fn holds_session_id(&self) -> bool {
        self.stream.state() < PublicationState::Linger
    }

    fn is_wanted_by(&self, subscription: &Subscription) -> bool {
        let spec = &self.stream.spec;
        subscription.kind == SubscriptionKind::Ipc
            && subscription.matches_stream(spec.stream_id, spec.session_id)
    }

    fn accepts_links(&self) -> bool {
        self.cool_down_until_ns.is_none()
            && match self.stream.state() {
                PublicationState::Active => true,
                PublicationState::Draining => {
                    self.stream.links.is_any_behind(self.stream.producer_position())
                }
                PublicationState::Linger | PublicationState::Done => false,
            }
    }

    fn join_position(&self) -> i64 {
        self.stream.links.join_position(self.consumer_position)
    }

    fn on_linked(&mut self) {
        if self.stream.state() == PublicationState::Active {
            self.connect("a subscription was linked to it");
            self.stream.spec.log.doorbells().limit.ring();
        }
    }

    fn unlink(&mut self, subscription_id: i64) -> Option<Link> {
        let link = self.stream.links.remove(subscription_id)?;
        self.on_unlinked(&link, "its last subscription is over");
        Some(link)
    }

    fn begin_draining(&mut self) {
        self.stream.fix_end_of_stream();
        self.stream
            .enter(PublicationState::Draining, "no client holds it");
    }

    #[inline]
    fn update_limit(&mut self) -> usize {
        if self.stream.state() != PublicationState::Active {
            return 0;
        }
        let producer_position = self.stream.publish_position();
        match self.stream.links.min_max() {
            Some((min, max)) => {
                // Readers are other processes: what they claim to have read is capped by what was written.
                let min = min.min(producer_position);
                self.consumer_position = self.consumer_position.max(max.min(producer_position));
                let limit = min + self.stream.spec.window_length;
                if limit < self.trip_limit {
                    return 0;
                }
                self.stream.clean_to(min);
                self.stream.raise_limit(limit);
                self.trip_limit = limit + self.trip_gain;
                1
            }
            None if self.stream.limit() > self.consumer_position => {
                // The conductor zeroes the log first. When a publisher reads the lower limit, the log is clean up to it.
                self.stream.clean_to(self.consumer_position);
                self.trip_limit = self.consumer_position;
                usize::from(self.stream.withdraw_limit(self.consumer_position))
            }
            None => 0,
        }
    }

    fn holder(&self) -> Option<Holder> {
        let stream = &self.stream;
        let is_held = stream.state() == PublicationState::Active
            && is_used_up(
                stream.limit(),
                stream.producer_position(),
                stream.spec.window_length,
            );
        let slowest = stream.links.slowest().filter(|_| is_held);
        slowest.map(Holder::reader)
    }

    fn on_tick(&mut self, now_ns: i64, unblock_timeout_ns: i64) -> Tick {
        let mut tick = Tick::default();
        match self.stream.state() {
            PublicationState::Active if self.stream.is_revoked() => {
                self.stream.fix_end_of_stream();
                tick.revoked = true;
                self.end(&mut tick, "revoked");
            }
            PublicationState::Active => self.tick_active(now_ns, unblock_timeout_ns, &mut tick),
            PublicationState::Draining => self.tick_draining(&mut tick),
            PublicationState::Linger if !self.stream.has_handles() => {
                self.stream
                    .enter(PublicationState::Done, "no client holds it any longer");
                tick.finished = true;
            }
            PublicationState::Linger | PublicationState::Done => {}
        }
        tick
    }
}
