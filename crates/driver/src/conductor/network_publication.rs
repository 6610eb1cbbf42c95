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

use headrace_buffers::counters::Counter;
use headrace_buffers::log::frame::FRAME_ALIGNMENT;
use headrace_protocol::channel::{ExistingPublication, InitialPosition, Tags};

use super::events::{PublicationDescription, StreamDescription};
use super::ipc_publication::IPC_SOURCE_IDENTITY;
use super::links::{Link, Links, UntetheredAction, UntetheredTimeouts};
use super::subscriptions::SpiedChannel;
use super::unblock::{BlockedCheck, unblock};
use crate::proxy::EndpointId;
use crate::shared::PublicationShared;

/// Where the publication is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetworkState {
    Active,
    Draining,
    Linger,
    Done,
}

/// What a publication is made from.
pub(crate) struct NetworkPublicationSpec {
    pub(crate) shared: Arc<PublicationShared>,
    pub(crate) endpoint: EndpointId,
    pub(crate) channel_status_counter_id: i32,
    /// Session ids are unique among publications with the same canonical form and stream.
    pub(crate) channel: SpiedChannel,
    pub(crate) is_exclusive: bool,
    pub(crate) tags: Tags,
    pub(crate) start: InitialPosition,
    pub(crate) log_file_name: String,
    pub(crate) window_length: i64,
    pub(crate) linger_timeout_ns: i64,
    pub(crate) untethered: UntetheredTimeouts,
    pub(crate) publisher_limit: Counter,
    pub(crate) publisher_position: Counter,
}

/// The conductor's record of one network publication.
pub(crate) struct NetworkPublication {
    spec: NetworkPublicationSpec,
    /// The spies.
    pub(crate) links: Links,
    state: NetworkState,
    handle_count: usize,
    start_position: i64,
    clean_position: i64,
    last_activity_ns: i64,
    blocked: BlockedCheck,
}

/// What a tick asks the conductor to do.
#[derive(Debug, Default)]
pub(crate) struct NetworkTick {
    /// Untethered spies that changed.
    pub(crate) untethered: Vec<UntetheredAction>,
    /// The stream is over for its spies: tell them. Their positions stay until it is done, since a spy that has
    /// not heard yet still stores to them.
    pub(crate) has_ended: bool,
    /// A hole left by a dead publisher was filled.
    pub(crate) unblocked: bool,
    /// The publication was revoked.
    pub(crate) revoked: bool,
    /// Take the publication from the sender and give up its channel.
    pub(crate) finished: bool,
}

impl NetworkPublication {
    pub(crate) fn new(spec: NetworkPublicationSpec, now_ns: i64) -> Self {
        let start_position = spec.start.position(spec.shared.log.term_length());
        Self {
            links: Links::default(),
            state: NetworkState::Active,
            handle_count: 0,
            start_position,
            clean_position: start_position,
            last_activity_ns: now_ns,
            blocked: BlockedCheck::new(start_position, now_ns),
            spec,
        }
    }

    pub(crate) fn spec(&self) -> &NetworkPublicationSpec {
        &self.spec
    }

    /// What is left to free once it is done.
    pub(crate) fn into_parts(mut self) -> (NetworkPublicationSpec, Vec<Link>) {
        let links = self.links.take_all();
        (self.spec, links)
    }

    pub(crate) fn state(&self) -> NetworkState {
        self.state
    }

    pub(crate) fn registration_id(&self) -> i64 {
        self.spec.shared.registration_id
    }

    /// True when a concurrent add joins this publication instead of making its own.
    pub(crate) fn is_shareable(&self, endpoint: EndpointId, stream_id: i32) -> bool {
        self.state == NetworkState::Active
            && !self.is_revoked()
            && !self.spec.is_exclusive
            && self.spec.endpoint == endpoint
            && self.spec.shared.stream_id == stream_id
    }

    /// True while no other publication of the stream on the channel may have this session id.
    pub(crate) fn holds_session_id(&self, session_id: i32, stream_id: i32) -> bool {
        self.state != NetworkState::Done
            && self.spec.shared.session_id == session_id
            && self.spec.shared.stream_id == stream_id
    }

    /// What a later add that names this publication is compared with.
    pub(crate) fn existing(&self) -> ExistingPublication {
        ExistingPublication {
            session_id: self.spec.shared.session_id,
            mtu_length: self.spec.shared.mtu_length,
            term_length: self.spec.shared.log.term_length(),
            start: self.spec.start,
            spies_simulate_connection: self.spec.shared.spies_simulate_connection,
        }
    }

    pub(crate) fn describe(&self) -> PublicationDescription<'_> {
        PublicationDescription {
            registration_id: self.registration_id(),
            session_id: self.spec.shared.session_id,
            stream_id: self.spec.shared.stream_id,
            publisher_limit_counter_id: self.spec.publisher_limit.id(),
            channel_status_counter_id: self.spec.channel_status_counter_id,
            log_file_name: &self.spec.log_file_name,
            is_exclusive: self.spec.is_exclusive,
        }
    }

    /// The stream as a spy's image.
    pub(crate) fn describe_stream(&self) -> StreamDescription<'_> {
        StreamDescription {
            image_correlation_id: self.registration_id(),
            session_id: self.spec.shared.session_id,
            stream_id: self.spec.shared.stream_id,
            log_file_name: &self.spec.log_file_name,
            source_identity: IPC_SOURCE_IDENTITY,
        }
    }

    /// True when a spy may link now.
    pub(crate) fn accepts_links(&self) -> bool {
        match self.state {
            NetworkState::Active => !self.is_revoked(),
            NetworkState::Draining => {
                self.links.is_counted() && self.spec.shared.log.producer_position() > self.sender_position()
            }
            NetworkState::Linger | NetworkState::Done => false,
        }
    }

    /// Where a spy joins.
    pub(crate) fn join_position(&self) -> i64 {
        self.sender_position()
            .min(self.spec.shared.log.producer_position())
    }

    /// To be called after a spy was linked.
    pub(crate) fn on_linked(&mut self) {
        self.update_has_spies();
    }

    /// Takes out a spy's link, keeping what it had consumed.
    pub(crate) fn unlink(&mut self, subscription_id: i64) -> Option<Link> {
        self.track_spies();
        let link = self.links.remove(subscription_id)?;
        if matches!(self.state, NetworkState::Active | NetworkState::Draining) {
            self.update_has_spies();
        }
        Some(link)
    }

    fn update_has_spies(&mut self) {
        self.spec.shared.set_has_spies(self.links.is_counted());
        let is_connected = self.state == NetworkState::Active && self.spec.shared.is_connected();
        if self.state == NetworkState::Active && !is_connected {
            // Before a publisher is told, so that its next offer is refused.
            self.withdraw_limit();
        }
        let log = &self.spec.shared.log;
        log.metadata().put_is_connected_release(is_connected);
        log.doorbells().limit.ring();
    }

    /// Without a reader there is no room beyond what was sent; returns the work done.
    fn withdraw_limit(&mut self) -> usize {
        let sent = self
            .sender_position()
            .min(self.spec.shared.log.producer_position());
        if self.spec.publisher_limit.get() <= sent {
            return 0;
        }
        self.spec.publisher_limit.set_release(sent);
        // Spies are at most a window below: they have all read the bytes zeroed here.
        self.clean_behind(sent);
        1
    }

    /// Lets the sender know how far the fastest spy is. Returns how far the slowest one is.
    fn track_spies(&self) -> Option<i64> {
        let (min, max) = self.links.min_max()?;
        // Spies are other processes: what they claim to have read is held to what was written, frame by frame.
        let written = self.spec.shared.log.producer_position();
        let max = max.min(written) & !(FRAME_ALIGNMENT as i64 - 1);
        self.spec.shared.advance_spy_position(max);
        Some(min)
    }

    pub(crate) fn add_handle(&mut self) {
        self.handle_count += 1;
    }

    /// Drops one client's handle; the last one closes the stream.
    pub(crate) fn remove_handle(&mut self) {
        self.handle_count = self.handle_count.saturating_sub(1);
        if self.handle_count == 0 && self.state == NetworkState::Active && !self.is_revoked() {
            let producer_position = self.fix_end_of_stream();
            if self.sender_position() >= producer_position {
                self.spec.shared.set_end_of_stream();
            }
            self.state = NetworkState::Draining;
        }
    }

    /// Ends the stream for everybody, at the next tick, whether everything was sent or not.
    pub(crate) fn revoke(&mut self) {
        if self.state == NetworkState::Active {
            self.spec
                .shared
                .log
                .metadata()
                .put_is_publication_revoked_release();
        }
    }

    fn is_revoked(&self) -> bool {
        self.spec.shared.log.metadata().is_publication_revoked_acquire()
    }

    /// Held to where the stream started: the counter lies in memory that every process can write.
    fn sender_position(&self) -> i64 {
        let position = self.spec.shared.sender_position.get_acquire();
        position.max(self.start_position)
    }

    /// Publishes the producer's position and moves its limit; returns the work done.
    #[inline]
    pub(crate) fn update_limit(&mut self) -> usize {
        if !matches!(self.state, NetworkState::Active | NetworkState::Draining) {
            return 0;
        }
        let slowest_spy = self.track_spies();
        if self.state == NetworkState::Draining {
            return 0;
        }
        let producer_position = self.spec.shared.log.producer_position();
        self.spec.publisher_position.set_release(producer_position);
        let sent = self.sender_position().min(producer_position);
        let current = self.spec.publisher_limit.get();
        if self.spec.shared.is_connected() {
            let consumed = slowest_spy.map_or(sent, |position| position.min(sent));
            let limit = consumed + self.spec.window_length;
            if limit <= current {
                return 0;
            }
            self.clean_behind(consumed);
            if self.is_clean_for(limit) {
                self.spec.publisher_limit.set_release(limit);
                self.spec.shared.log.doorbells().limit.ring();
            }
            1
        } else {
            let work_count = self.withdraw_limit();
            if work_count > 0 {
                self.spec.shared.log.metadata().put_is_connected_release(false);
            }
            work_count
        }
    }

    fn clean_behind(&mut self, consumed: i64) {
        let log = &self.spec.shared.log;
        log.clean(&mut self.clean_position, consumed - log.term_length() as i64);
    }

    /// False when a publisher within `limit` could reach a term that is not zeroed to its end.
    fn is_clean_for(&self, limit: i64) -> bool {
        let log = &self.spec.shared.log;
        let bits = log.position_bits_to_shift();
        let terms_ahead = (limit >> bits) - (self.clean_position >> bits);
        let is_at_term_start = self.clean_position & (log.term_length() as i64 - 1) == 0;
        terms_ahead < 2 || (terms_ahead == 2 && !is_at_term_start)
    }

    /// The timer's step of the state machine.
    pub(crate) fn on_tick(&mut self, now_ns: i64, unblock_timeout_ns: i64) -> NetworkTick {
        let mut tick = NetworkTick::default();
        match self.state {
            NetworkState::Active if self.is_revoked() => {
                self.fix_end_of_stream();
                self.spec.shared.log.metadata().put_is_connected_release(false);
                self.spec.shared.set_end_of_stream();
                self.enter_linger(now_ns, &mut tick);
                tick.revoked = true;
            }
            NetworkState::Active => {
                let (join_position, window) = (self.join_position(), self.spec.window_length);
                let limit = join_position - window + window / 4;
                tick.untethered =
                    self.links
                        .check_untethered(now_ns, limit, join_position, self.spec.untethered);
                self.update_has_spies();
                if !self.spec.is_exclusive {
                    let position = self.sender_position();
                    let log = &self.spec.shared.log;
                    tick.unblocked = self.blocked.check(log, position, now_ns, unblock_timeout_ns);
                }
            }
            NetworkState::Draining => self.tick_draining(now_ns, &mut tick),
            NetworkState::Linger => {
                let is_over = self.spec.shared.is_end_of_stream_confirmed()
                    || now_ns - self.last_activity_ns > self.spec.linger_timeout_ns;
                if self.handle_count == 0 && is_over {
                    self.state = NetworkState::Done;
                    tick.finished = true;
                }
            }
            NetworkState::Done => {}
        }
        tick
    }

    fn tick_draining(&mut self, now_ns: i64, tick: &mut NetworkTick) {
        let sender_position = self.sender_position();
        let producer_position = self.spec.shared.log.producer_position();
        self.spec.publisher_position.set_release(producer_position);
        if producer_position > sender_position {
            if unblock(&self.spec.shared.log, sender_position) {
                tick.unblocked = true;
                return;
            }
            if self.spec.shared.has_receivers() {
                return;
            }
        }
        self.spec.shared.set_end_of_stream();
        if !self.links.is_any_behind(producer_position) {
            self.enter_linger(now_ns, tick);
        } else if let Some((_, max)) = self.links.min_max() {
            // No receiver is left to bring the sender to a hole that the spies wait at.
            tick.unblocked = unblock(&self.spec.shared.log, max.min(producer_position));
        }
    }

    fn enter_linger(&mut self, now_ns: i64, tick: &mut NetworkTick) {
        self.last_activity_ns = now_ns;
        self.state = NetworkState::Linger;
        self.spec.shared.set_has_spies(false);
        tick.has_ended = true;
    }

    fn fix_end_of_stream(&mut self) -> i64 {
        let log = &self.spec.shared.log;
        let producer_position = log.producer_position();
        self.spec.publisher_limit.set_release(producer_position);
        log.metadata()
            .put_end_of_stream_position_release(producer_position);
        producer_position
    }
}
