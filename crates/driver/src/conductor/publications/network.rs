//! The conductor's half of a publication sent over the network.
//!
//! | state | leaves when |
//! |---|---|
//! | Active | revoked: limit and end of stream fixed, Linger. Last handle gone: the same, Draining |
//! | Draining | everything is sent, or no receiver is left, and every spy has read all: Linger |
//! | Linger | no handles, and the receiver confirmed the end or the linger time-out passed: sender told, Done |
//! | Done | the sender let go: counters freed, log unmapped and deleted |
//!
//! Entering Linger, the stream is over for its spies.
//!
//! While active, every duty cycle raises the publisher's limit to the position of the sender, or of the slowest
//! spy if that is lower, plus a window. What was sent stays in the log for a whole term, for repairs, before it
//! is zeroed.

use std::sync::Arc;

use headrace_buffers::log::frame::FRAME_ALIGNMENT;

use super::publication::{Publication, Tick};
use super::stream::{PublicationState, Stream, StreamSpec};
use super::table::{Table, link_all};
use super::unblock::unblock;
use crate::conductor::context::Context;
use crate::conductor::held_back::{Holder, is_used_up};
use crate::conductor::subscriptions::links::Link;
use crate::conductor::subscriptions::{SpiedChannel, Subscription, Subscriptions};
use crate::endpoint::EndpointId;
use crate::event_recorder::EventRecorder;
use crate::shared::PublicationShared;
use crate::shared::publication::Exchange;

/// What a network publication has beside its stream.
pub(crate) struct NetworkSpec {
    pub(crate) shared: Arc<PublicationShared>,
    pub(crate) endpoint: EndpointId,
    /// Session ids are unique among publications with the same canonical form and stream.
    pub(crate) channel: SpiedChannel,
    pub(crate) linger_timeout_ns: i64,
}

/// The conductor's record of one network publication. Its links are the spies.
pub(crate) struct NetworkPublication {
    stream: Stream,
    spec: NetworkSpec,
    start_position: i64,
    last_activity_ns: i64,
    is_connected: bool,
    /// Another than its receiver may look at what was sent, or write there, see [`Self::clean_behind`].
    keeps_a_term: bool,
}

impl NetworkPublication {
    pub(crate) fn new(stream: StreamSpec, spec: NetworkSpec, recorder: &EventRecorder, now_ns: i64) -> Self {
        Self {
            start_position: stream.start_position(),
            stream: Stream::new(stream, recorder, now_ns),
            spec,
            last_activity_ns: now_ns,
            is_connected: false,
            keeps_a_term: false,
        }
    }

    /// What is left to free once it is done.
    pub(crate) fn into_stream(self) -> Stream {
        self.stream
    }

    /// The channel it is sent through.
    pub(crate) fn endpoint(&self) -> EndpointId {
        self.spec.endpoint
    }

    /// What makes a channel the same as another.
    pub(crate) fn canonical_form(&self) -> &str {
        &self.spec.channel.canonical_form
    }

    /// Its transport has got a further tag, by which spies may name it.
    fn add_tag(&mut self, tag: i64) {
        self.spec.channel.tags.push(tag);
    }

    fn update_has_spies(&mut self) {
        self.spec.shared.set_has_spies(self.stream.links.is_counted());
        let is_active = self.stream.state() == PublicationState::Active;
        if is_active {
            self.update_limit();
        }
        // Even without a change: another process may have written over it.
        self.tell_connected(is_active && self.is_connected);
    }

    /// The only place that tells publishers whether they have a reader.
    fn tell_connected(&mut self, is_connected: bool) {
        self.is_connected = is_connected;
        self.stream.set_connected(is_connected);
        self.stream.spec.log.doorbells().limit.ring();
    }

    /// Without a reader there is no room beyond what was sent; returns the work done.
    fn disconnect(&mut self) -> usize {
        let sent = self.join_position();
        let had_room = self.stream.withdraw_limit(sent);
        if had_room {
            // Spies are at most a window below: they have all read the bytes zeroed here.
            self.clean_behind(sent);
        }
        let was_connected = self.is_connected;
        if was_connected {
            // After the room is gone, so that a publisher's next offer is refused.
            self.tell_connected(false);
        }
        usize::from(had_room || was_connected)
    }

    /// Lets the sender know how far the fastest spy is. Returns how far the slowest one is.
    fn track_spies(&self) -> Option<i64> {
        let (min, max) = self.stream.links.min_max()?;
        // Spies are other processes: what they claim to have read is held to what was written, frame by frame.
        let written = self.stream.producer_position();
        let max = max.min(written) & !(FRAME_ALIGNMENT as i64 - 1);
        self.spec.shared.advance_spy_position(max);
        Some(min)
    }

    /// Held to where the stream started: the counter lies in memory that every process can write.
    fn sender_position(&self) -> i64 {
        let position = self.spec.shared.sender_position.get_acquire();
        position.max(self.start_position)
    }

    /// Receivers may ask for bytes again, spies that no longer count may still read, and a publisher that was taken for dead may
    /// still write where its hole was filled: a term is kept for them. Otherwise this zeroes at once what the only
    /// receiver has read, while its lines are in the caches.
    fn clean_behind(&mut self, consumed: i64) {
        let kept = consumed - self.stream.spec.log.term_length() as i64;
        let target = if self.keeps_a_term {
            kept
        } else {
            kept.max(consumed.min(self.spec.shared.consumption_position()))
        };
        self.stream.clean_to(target);
    }

    /// False when a publisher within `limit` could reach a term that is not zeroed to its end.
    fn is_clean_for(&self, limit: i64) -> bool {
        let (log, clean_position) = (&self.stream.spec.log, self.stream.clean_position());
        let bits = log.position_bits_to_shift();
        let terms_ahead = (limit >> bits) - (clean_position >> bits);
        let is_at_term_start = clean_position & (log.term_length() as i64 - 1) == 0;
        terms_ahead < 2 || (terms_ahead == 2 && !is_at_term_start)
    }

    fn tick_active(&mut self, now_ns: i64, unblock_timeout_ns: i64, tick: &mut Tick) {
        let join_position = self.join_position();
        let Stream { spec, links, .. } = &mut self.stream;
        let limit = join_position - spec.window_length + spec.window_length / 4;
        tick.untethered = links.check_untethered(now_ns, limit, join_position, spec.untethered);
        self.update_has_spies();
        let position = self.sender_position();
        tick.unblocked = self.stream.check_blocked(position, now_ns, unblock_timeout_ns);
    }

    fn tick_draining(&mut self, now_ns: i64, tick: &mut Tick) {
        let sender_position = self.sender_position();
        let producer_position = self.stream.publish_position();
        if producer_position > sender_position {
            if unblock(&self.stream.spec.log, sender_position) {
                tick.unblocked = true;
                return;
            }
            if self.spec.shared.has_receivers() {
                return;
            }
        }
        self.spec.shared.set_end_of_stream();
        if !self.stream.links.is_any_behind(producer_position) {
            self.enter_linger(
                now_ns,
                tick,
                "all is sent or no receiver is left, and spies have read all",
            );
        } else if let Some((_, max)) = self.stream.links.min_max() {
            // No receiver is left to bring the sender to a hole that the spies wait at.
            tick.unblocked = unblock(&self.stream.spec.log, max.min(producer_position));
        }
    }

    fn enter_linger(&mut self, now_ns: i64, tick: &mut Tick, reason: &'static str) {
        self.last_activity_ns = now_ns;
        self.stream.enter(PublicationState::Linger, reason);
        self.spec.shared.set_has_spies(false);
        tick.has_ended = true;
    }

    fn is_linger_over(&self, now_ns: i64) -> bool {
        self.spec.shared.is_end_of_stream_confirmed()
            || now_ns - self.last_activity_ns > self.spec.linger_timeout_ns
    }
}

impl Table<NetworkPublication> {
    /// A transport has got a further tag: links the spies that wait for it.
    pub(crate) fn add_tag(
        &mut self,
        cx: &mut Context,
        endpoint: EndpointId,
        tag: i64,
        subscriptions: &Subscriptions,
    ) {
        let on_transport = self
            .iter_mut()
            .filter(|publication| publication.endpoint() == endpoint);
        for publication in on_transport {
            publication.add_tag(tag);
            link_all(cx, publication, subscriptions);
        }
    }

    /// True while a publication responds to the requests of an image.
    pub(crate) fn responds_to(&self, image_id: i64) -> bool {
        self.iter().any(|publication| {
            publication.spec.shared.exchange == Exchange::Responses { image_id }
                && publication.stream.state() == PublicationState::Active
        })
    }
}

impl Publication for NetworkPublication {
    const KIND: &'static str = "a network";

    fn stream(&self) -> &Stream {
        &self.stream
    }

    fn stream_mut(&mut self) -> &mut Stream {
        &mut self.stream
    }

    fn holds_session_id(&self) -> bool {
        self.stream.state() < PublicationState::Done
    }

    fn is_wanted_by(&self, subscription: &Subscription) -> bool {
        let spec = &self.stream.spec;
        subscription.spies_on(&self.spec.channel, spec.stream_id, spec.session_id)
    }

    fn accepts_links(&self) -> bool {
        match self.stream.state() {
            PublicationState::Active => !self.stream.is_revoked(),
            PublicationState::Draining => {
                self.stream.links.is_counted() && self.stream.producer_position() > self.sender_position()
            }
            PublicationState::Linger | PublicationState::Done => false,
        }
    }

    fn join_position(&self) -> i64 {
        self.sender_position().min(self.stream.producer_position())
    }

    fn on_linked(&mut self) {
        self.keeps_a_term = true;
        self.update_has_spies();
    }

    fn unlink(&mut self, subscription_id: i64) -> Option<Link> {
        self.track_spies();
        let link = self.stream.links.remove(subscription_id)?;
        if self.stream.state() < PublicationState::Linger {
            self.update_has_spies();
        }
        Some(link)
    }

    fn begin_draining(&mut self) {
        let producer_position = self.stream.fix_end_of_stream();
        if self.sender_position() >= producer_position {
            self.spec.shared.set_end_of_stream();
        }
        self.stream
            .enter(PublicationState::Draining, "no client holds it");
    }

    #[inline]
    fn update_limit(&mut self) -> usize {
        if self.stream.state() > PublicationState::Draining {
            return 0;
        }
        let slowest_spy = self.track_spies();
        if self.stream.state() == PublicationState::Draining {
            return 0;
        }
        let producer_position = self.stream.publish_position();
        if !self.spec.shared.is_connected() {
            return self.disconnect();
        }
        let sent = self.sender_position().min(producer_position);
        let consumed = slowest_spy.map_or(sent, |position| position.min(sent));
        let limit = consumed + self.stream.spec.window_length;
        let gives_room = limit > self.stream.limit();
        if gives_room {
            self.clean_behind(consumed);
            if self.is_clean_for(limit) {
                self.stream.raise_limit(limit);
            }
        }
        if !self.is_connected && self.stream.limit() >= limit {
            // Room comes first: a publisher that is told offers at once.
            self.tell_connected(true);
        }
        usize::from(gives_room)
    }

    fn holder(&self) -> Option<Holder> {
        let (stream, shared) = (&self.stream, &self.spec.shared);
        let is_held = stream.state() == PublicationState::Active
            && self.is_connected
            && is_used_up(
                stream.limit(),
                stream.producer_position(),
                stream.spec.window_length,
            );
        if !is_held {
            return None;
        }
        let sent = self.sender_position();
        let spies_set_the_pace = shared.spies_simulate_connection && !shared.has_receivers();
        let slowest_spy = stream
            .links
            .slowest()
            .filter(|spy| spies_set_the_pace || spy.position.get_acquire() < sent);
        if let Some(spy) = slowest_spy {
            return Some(Holder::reader(spy));
        }
        // Less than a datagram: the sender waits as well.
        let waits_for_receivers = shared.sender_limit.get() - sent < shared.mtu_length as i64;
        let receiver = shared.limiting_receiver().filter(|_| waits_for_receivers);
        Some(receiver.map_or(Holder::Sender, Holder::Receiver))
    }

    fn note_troubles(&mut self, cx: &mut Context) {
        let holder = self.holder();
        self.stream.note_holder(holder, cx);
        let shared = &self.spec.shared;
        self.stream
            .note_requests(&shared.repair_requests, shared.mtu_length, cx);
    }

    fn on_tick(&mut self, now_ns: i64, unblock_timeout_ns: i64) -> Tick {
        let mut tick = Tick::default();
        match self.stream.state() {
            PublicationState::Active if self.stream.is_revoked() => {
                self.stream.fix_end_of_stream();
                self.tell_connected(false);
                self.spec.shared.set_end_of_stream();
                self.enter_linger(now_ns, &mut tick, "revoked");
                tick.revoked = true;
            }
            PublicationState::Active => self.tick_active(now_ns, unblock_timeout_ns, &mut tick),
            PublicationState::Draining => self.tick_draining(now_ns, &mut tick),
            PublicationState::Linger if !self.stream.has_handles() && self.is_linger_over(now_ns) => {
                self.stream.enter(
                    PublicationState::Done,
                    "the end is confirmed, or the linger time-out over",
                );
                tick.finished = true;
            }
            PublicationState::Linger | PublicationState::Done => {}
        }
        self.keeps_a_term |= tick.unblocked;
        tick
    }
}
