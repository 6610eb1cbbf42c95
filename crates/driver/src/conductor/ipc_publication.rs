//! A publication read on this host only, through its own log.
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

use headrace_buffers::counters::Counter;
use headrace_buffers::log::LogBuffers;
use headrace_protocol::channel::{ExistingPublication, InitialPosition, Tags};

use super::events::{PublicationDescription, StreamDescription};
use super::links::{Link, Links, UntetheredAction, UntetheredTimeouts};
use super::unblock::BlockedCheck;

/// Where readers of IPC streams are told that they come from.
pub(crate) const IPC_SOURCE_IDENTITY: &str = "aeron:ipc";

/// Where the publication is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IpcState {
    Active,
    Draining,
    Linger,
    Done,
}

/// What a publication is made from.
pub(crate) struct IpcPublicationSpec {
    pub(crate) registration_id: i64,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) is_exclusive: bool,
    pub(crate) tags: Tags,
    pub(crate) start: InitialPosition,
    pub(crate) log: LogBuffers,
    pub(crate) log_file_name: String,
    pub(crate) start_position: i64,
    pub(crate) window_length: i64,
    pub(crate) untethered: UntetheredTimeouts,
    pub(crate) publisher_limit: Counter,
    pub(crate) publisher_position: Counter,
}

/// The conductor's record of one IPC publication.
pub(crate) struct IpcPublication {
    spec: IpcPublicationSpec,
    pub(crate) links: Links,
    state: IpcState,
    handle_count: usize,
    trip_limit: i64,
    trip_gain: i64,
    consumer_position: i64,
    clean_position: i64,
    cool_down_until_ns: Option<i64>,
    blocked: BlockedCheck,
}

/// What a tick asks the conductor to do.
#[derive(Debug, Default)]
pub(crate) struct IpcTick {
    /// Untethered links that changed.
    pub(crate) untethered: Vec<UntetheredAction>,
    /// The stream is over for its readers: tell them. Their positions stay until it is done, since a reader
    /// that has not heard yet still stores to them.
    pub(crate) has_ended: bool,
    /// A hole left by a dead publisher was filled.
    pub(crate) unblocked: bool,
    /// The publication was revoked.
    pub(crate) revoked: bool,
    /// The cool-down after a rejection is over: link matching subscriptions again.
    pub(crate) relink: bool,
}

impl IpcPublication {
    pub(crate) fn new(spec: IpcPublicationSpec, now_ns: i64) -> Self {
        Self {
            links: Links::default(),
            state: IpcState::Active,
            handle_count: 0,
            trip_limit: 0,
            trip_gain: spec.window_length / 8,
            consumer_position: spec.start_position,
            clean_position: spec.start_position,
            cool_down_until_ns: None,
            blocked: BlockedCheck::new(spec.start_position, now_ns),
            spec,
        }
    }

    pub(crate) fn spec(&self) -> &IpcPublicationSpec {
        &self.spec
    }

    pub(crate) fn state(&self) -> IpcState {
        self.state
    }

    pub(crate) fn registration_id(&self) -> i64 {
        self.spec.registration_id
    }

    /// True when a concurrent add of `stream_id` joins this publication instead of making its own.
    pub(crate) fn is_shareable(&self, stream_id: i32) -> bool {
        self.state == IpcState::Active
            && !self.is_revoked()
            && !self.spec.is_exclusive
            && self.spec.stream_id == stream_id
    }

    /// What a later add that names this publication is compared with.
    pub(crate) fn existing(&self) -> ExistingPublication {
        ExistingPublication {
            session_id: self.spec.session_id,
            mtu_length: self.spec.log.mtu(),
            term_length: self.spec.log.term_length(),
            start: self.spec.start,
            spies_simulate_connection: false,
        }
    }

    /// What is left to free once it is done.
    pub(crate) fn into_parts(mut self) -> (IpcPublicationSpec, Vec<Link>) {
        let links = self.links.take_all();
        (self.spec, links)
    }

    /// True while no other IPC publication of the stream may have this session id.
    pub(crate) fn holds_session_id(&self, session_id: i32, stream_id: i32) -> bool {
        matches!(self.state, IpcState::Active | IpcState::Draining)
            && self.spec.session_id == session_id
            && self.spec.stream_id == stream_id
    }

    pub(crate) fn describe_publication(&self) -> PublicationDescription<'_> {
        PublicationDescription {
            registration_id: self.spec.registration_id,
            session_id: self.spec.session_id,
            stream_id: self.spec.stream_id,
            publisher_limit_counter_id: self.spec.publisher_limit.id(),
            channel_status_counter_id: -1,
            log_file_name: &self.spec.log_file_name,
            is_exclusive: self.spec.is_exclusive,
        }
    }

    pub(crate) fn describe_stream(&self) -> StreamDescription<'_> {
        StreamDescription {
            image_correlation_id: self.spec.registration_id,
            session_id: self.spec.session_id,
            stream_id: self.spec.stream_id,
            log_file_name: &self.spec.log_file_name,
            source_identity: IPC_SOURCE_IDENTITY,
        }
    }

    pub(crate) fn add_handle(&mut self) {
        self.handle_count += 1;
    }

    /// Drops one client's handle; the last one closes the stream.
    pub(crate) fn remove_handle(&mut self) {
        self.handle_count = self.handle_count.saturating_sub(1);
        if self.handle_count == 0 && self.state == IpcState::Active && !self.is_revoked() {
            self.fix_end_of_stream();
            self.state = IpcState::Draining;
        }
    }

    /// Ends the stream for everybody, at the next tick, without waiting for readers.
    pub(crate) fn revoke(&mut self) {
        if self.state == IpcState::Active {
            self.spec.log.metadata().put_is_publication_revoked_release();
        }
    }

    fn is_revoked(&self) -> bool {
        self.spec.log.metadata().is_publication_revoked_acquire()
    }

    /// True when a subscription may link now.
    pub(crate) fn accepts_links(&self) -> bool {
        self.cool_down_until_ns.is_none()
            && match self.state {
                IpcState::Active => true,
                IpcState::Draining => self.links.is_any_behind(self.spec.log.producer_position()),
                IpcState::Linger | IpcState::Done => false,
            }
    }

    pub(crate) fn join_position(&self) -> i64 {
        self.links.join_position(self.consumer_position)
    }

    /// To be called after a link was added.
    pub(crate) fn on_linked(&mut self) {
        if self.state == IpcState::Active {
            self.spec.log.metadata().put_is_connected_release(true);
            self.spec.log.doorbells().limit.ring();
        }
    }

    /// Takes out a subscription's link, keeping what it had consumed.
    pub(crate) fn unlink(&mut self, subscription_id: i64) -> Option<Link> {
        let link = self.links.remove(subscription_id)?;
        self.on_unlinked(&link);
        Some(link)
    }

    fn on_unlinked(&mut self, link: &Link) {
        let consumed = link.position.get_acquire().min(self.spec.log.producer_position());
        self.consumer_position = self.consumer_position.max(consumed);
        if !self.links.is_counted() {
            self.spec.log.metadata().put_is_connected_release(false);
        }
    }

    /// Turns every reader away until the cool-down is over. Returns the links to end.
    pub(crate) fn reject(&mut self, cool_down_until_ns: i64) -> Vec<Link> {
        self.cool_down_until_ns = Some(cool_down_until_ns);
        let links = self.links.take_all();
        for link in &links {
            self.on_unlinked(link);
        }
        links
    }

    fn end(&mut self, tick: &mut IpcTick) {
        self.spec.log.metadata().put_is_connected_release(false);
        self.state = IpcState::Linger;
        tick.has_ended = true;
    }

    /// Publishes the producer's position and moves its limit; returns the work done.
    #[inline]
    pub(crate) fn update_limit(&mut self) -> usize {
        if self.state != IpcState::Active {
            return 0;
        }
        let producer_position = self.spec.log.producer_position();
        self.spec.publisher_position.set_release(producer_position);
        match self.links.min_max() {
            Some((min, max)) => {
                // Readers are other processes: what they claim to have read is capped by what was written.
                let min = min.min(producer_position);
                self.consumer_position = self.consumer_position.max(max.min(producer_position));
                let limit = min + self.spec.window_length;
                if limit < self.trip_limit {
                    return 0;
                }
                self.clean_to(min);
                self.spec.publisher_limit.set_release(limit);
                self.spec.log.doorbells().limit.ring();
                self.trip_limit = limit + self.trip_gain;
                1
            }
            None if self.spec.publisher_limit.get() > self.consumer_position => {
                self.clean_to(self.consumer_position);
                self.trip_limit = self.consumer_position;
                self.spec.publisher_limit.set_release(self.consumer_position);
                1
            }
            None => 0,
        }
    }

    fn clean_to(&mut self, position: i64) {
        self.spec.log.clean(&mut self.clean_position, position);
    }

    /// The timer's step of the state machine.
    pub(crate) fn on_tick(&mut self, now_ns: i64, unblock_timeout_ns: i64) -> IpcTick {
        let mut tick = IpcTick::default();
        match self.state {
            IpcState::Active if self.is_revoked() => {
                self.fix_end_of_stream();
                tick.revoked = true;
                self.end(&mut tick);
            }
            IpcState::Active => self.tick_active(now_ns, unblock_timeout_ns, &mut tick),
            IpcState::Draining => self.tick_draining(&mut tick),
            IpcState::Linger if self.handle_count == 0 => self.state = IpcState::Done,
            IpcState::Linger | IpcState::Done => {}
        }
        tick
    }

    fn tick_active(&mut self, now_ns: i64, unblock_timeout_ns: i64, tick: &mut IpcTick) {
        if self.cool_down_until_ns.is_some_and(|until_ns| until_ns <= now_ns) {
            self.cool_down_until_ns = None;
            tick.relink = true;
        }
        let window = self.spec.window_length;
        let limit = self.consumer_position - window + window / 4;
        let join_position = self.join_position();
        tick.untethered = self
            .links
            .check_untethered(now_ns, limit, join_position, self.spec.untethered);
        let is_connected = self.links.is_counted();
        self.spec.log.metadata().put_is_connected_release(is_connected);
        if !self.spec.is_exclusive {
            tick.unblocked =
                self.blocked
                    .check(&self.spec.log, self.consumer_position, now_ns, unblock_timeout_ns);
        }
    }

    fn tick_draining(&mut self, tick: &mut IpcTick) {
        let producer_position = self.spec.log.producer_position();
        self.spec.publisher_position.set_release(producer_position);
        if self.links.is_any_behind(producer_position) {
            if let Some((_, max)) = self.links.min_max() {
                self.consumer_position = self.consumer_position.max(max.min(producer_position));
            }
            tick.unblocked = super::unblock::unblock(&self.spec.log, self.consumer_position);
        } else {
            self.end(tick);
        }
    }

    fn fix_end_of_stream(&mut self) {
        let producer_position = self.spec.log.producer_position();
        self.spec.publisher_limit.set_release(producer_position);
        self.spec
            .log
            .metadata()
            .put_end_of_stream_position_release(producer_position);
    }
}
