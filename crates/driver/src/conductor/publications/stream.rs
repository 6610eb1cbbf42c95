//! The common part of IPC and network publications: a log with one session, its publishers, and its readers on this
//! host.

use std::sync::Arc;

use headrace_buffers::counters::Counter;
use headrace_buffers::log::LogBuffers;
use headrace_protocol::channel::{ExistingPublication, InitialPosition, ResponseCorrelation, Tags};

use super::unblock::BlockedCheck;
use crate::conductor::context::Context;
use crate::conductor::counters::{NO_OWNER, StreamKey};
use crate::conductor::events::{PublicationDescription, StreamDescription};
use crate::conductor::held_back::{Holder, PUBLISHER_HELD};
use crate::conductor::marks::Mark;
use crate::conductor::subscriptions::links::{Links, UntetheredTimeouts};
use crate::conductor::unrepaired::{PUBLICATION_UNREPAIRED, Unrepaired, advice};
use crate::event_recorder::{EventRecorder, Subject};
use crate::network::advise_mtu;
use crate::shared::ConnectionState;
use crate::shared::requests::RepairRequests;
use crate::states::states;

/// Where readers on this host are told that a stream comes from.
const LOCAL_SOURCE_IDENTITY: &str = "aeron:ipc";

/// A warning: responses that flow are not redirected.
pub(crate) const RESPONDED_TWICE: &str =
    "a second publication responds to the same request: it is read when the first has ended";

states! {
    /// A stream that clients of this driver publish. It only moves down this list.
    pub(crate) enum PublicationState, "publication" {
        /// Publishers may write.
        Active => [Draining, Linger];
        /// No publisher is left; readers may still need the log.
        Draining => [Linger];
        /// The stream is over; the driver keeps the log for late readers.
        Linger => [Done];
        /// The driver frees it when the sender has let go.
        Done => [];
    }
}

/// What a stream is made from.
pub(crate) struct StreamSpec {
    pub(crate) registration_id: i64,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) channel: Arc<str>,
    pub(crate) is_exclusive: bool,
    pub(crate) tags: Tags,
    /// Which requests it responds to, or which subscription reads its responses.
    pub(crate) response_correlation: ResponseCorrelation,
    pub(crate) start: InitialPosition,
    /// Spies alone make the publication connected.
    pub(crate) spies_simulate_connection: bool,
    pub(crate) log: LogBuffers,
    pub(crate) log_file_name: String,
    pub(crate) window_length: i64,
    pub(crate) untethered: UntetheredTimeouts,
    pub(crate) channel_status_counter_id: i32,
    pub(crate) counters: StreamCounters,
}

/// The counters of a stream, freed with it.
pub(crate) struct StreamCounters {
    pub(crate) publisher_position: Counter,
    pub(crate) publisher_limit: Counter,
    /// Those that only one kind of publication has.
    pub(crate) further: Vec<Counter>,
}

impl StreamSpec {
    /// The position of its first byte.
    pub(crate) fn start_position(&self) -> i64 {
        self.start.position(self.log.term_length())
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            id: self.registration_id,
            parent_id: None,
            stream_id: Some(self.stream_id),
            session_id: Some(self.session_id),
            detail: &self.channel,
        }
    }

    /// The stream as an image of a reader on this host.
    pub(crate) fn describe_image(&self) -> StreamDescription<'_> {
        StreamDescription {
            image_correlation_id: self.registration_id,
            session_id: self.session_id,
            stream_id: self.stream_id,
            log_file_name: &self.log_file_name,
            source_identity: LOCAL_SOURCE_IDENTITY,
        }
    }

    pub(crate) fn describe_publication(&self) -> PublicationDescription<'_> {
        PublicationDescription {
            registration_id: self.registration_id,
            session_id: self.session_id,
            stream_id: self.stream_id,
            publisher_limit_counter_id: self.counters.publisher_limit.id(),
            channel_status_counter_id: self.channel_status_counter_id,
            log_file_name: &self.log_file_name,
            is_exclusive: self.is_exclusive,
        }
    }

    /// The stream, as its counters name it.
    fn key(&self) -> StreamKey<'_> {
        StreamKey {
            registration_id: self.registration_id,
            owner_id: NO_OWNER,
            session_id: self.session_id,
            stream_id: self.stream_id,
            channel: &self.channel,
        }
    }
}

/// The common half of a publication.
pub(crate) struct Stream {
    pub(crate) spec: StreamSpec,
    /// Readers on this host: IPC subscriptions, or spies.
    pub(crate) links: Links,
    state: PublicationState,
    recorder: EventRecorder,
    handle_count: usize,
    clean_position: i64,
    blocked: BlockedCheck,
    held_back: Mark<Holder>,
    unrepaired: Unrepaired,
}

impl Stream {
    /// A stream that no client holds yet.
    pub(crate) fn new(spec: StreamSpec, recorder: &EventRecorder, now_ns: i64) -> Self {
        let start_position = spec.start_position();
        Self {
            links: Links::new(recorder, spec.registration_id, spec.session_id),
            state: recorder.begin("added by a client", &spec.subject()),
            recorder: recorder.clone(),
            handle_count: 0,
            clean_position: start_position,
            blocked: BlockedCheck::new(start_position, now_ns),
            held_back: Mark::default(),
            unrepaired: Unrepaired::default(),
            spec,
        }
    }

    pub(crate) fn state(&self) -> PublicationState {
        self.state
    }

    /// The one place where the state changes.
    pub(crate) fn enter(&mut self, new: PublicationState, reason: &'static str) {
        self.recorder
            .change(&mut self.state, new, reason, &self.spec.subject());
    }

    /// True when a concurrent add may join instead of making a publication of its own.
    pub(crate) fn is_shareable(&self) -> bool {
        self.state == PublicationState::Active && !self.is_revoked() && !self.spec.is_exclusive
    }

    /// What a later add that names this publication is compared with.
    pub(crate) fn existing(&self) -> ExistingPublication {
        ExistingPublication {
            session_id: self.spec.session_id,
            mtu_length: self.spec.log.mtu(),
            term_length: self.spec.log.term_length(),
            start: self.spec.start,
            spies_simulate_connection: self.spec.spies_simulate_connection,
        }
    }

    pub(crate) fn add_handle(&mut self) {
        self.handle_count += 1;
    }

    /// Drops one client's handle; true when none is left and the stream must end now.
    pub(crate) fn remove_handle(&mut self) -> bool {
        self.handle_count = self.handle_count.saturating_sub(1);
        self.handle_count == 0 && self.state == PublicationState::Active && !self.is_revoked()
    }

    pub(crate) fn has_handles(&self) -> bool {
        self.handle_count > 0
    }

    /// Ends the stream for all, at the next tick, without waiting for readers.
    pub(crate) fn revoke(&mut self) {
        if self.state == PublicationState::Active {
            self.spec.log.metadata().put_is_publication_revoked_release();
        }
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.spec.log.metadata().is_publication_revoked_acquire()
    }

    pub(crate) fn producer_position(&self) -> i64 {
        self.spec.log.producer_position()
    }

    /// Shows how far publishers are; returns it.
    #[inline]
    pub(crate) fn publish_position(&self) -> i64 {
        let position = self.producer_position();
        self.spec.counters.publisher_position.set_release(position);
        position
    }

    /// Lets publishers write up to `limit`, and wakes one that waits for room.
    pub(crate) fn raise_limit(&self, limit: i64) {
        self.spec.counters.publisher_limit.set_release(limit);
        self.spec.log.doorbells().limit.ring();
    }

    /// Takes back room that publishers have; true when they had any beyond `limit`.
    pub(crate) fn withdraw_limit(&self, limit: i64) -> bool {
        let had_room = self.limit() > limit;
        if had_room {
            self.spec.counters.publisher_limit.set_release(limit);
        }
        had_room
    }

    /// How far publishers may write.
    #[inline]
    pub(crate) fn limit(&self) -> i64 {
        self.spec.counters.publisher_limit.get()
    }

    /// Tells of a change of whether readers are there.
    pub(crate) fn tell_connection(
        &self,
        state: &mut ConnectionState,
        new: ConnectionState,
        reason: &'static str,
    ) {
        self.recorder.change(state, new, reason, &self.spec.subject());
    }

    /// What publishers see.
    pub(crate) fn set_connected(&self, is_connected: bool) {
        self.spec.log.metadata().put_is_connected_release(is_connected);
    }

    /// Zeroes the log up to `position`, so that it can be written again.
    pub(crate) fn clean_to(&mut self, position: i64) {
        self.spec.log.clean(&mut self.clean_position, position);
    }

    pub(crate) fn clean_position(&self) -> i64 {
        self.clean_position
    }

    /// Nothing is written after what publishers have now; returns that position.
    pub(crate) fn fix_end_of_stream(&self) -> i64 {
        let position = self.producer_position();
        self.spec.counters.publisher_limit.set_release(position);
        self.spec
            .log
            .metadata()
            .put_end_of_stream_position_release(position);
        position
    }

    /// Fills a hole that a dead publisher left at `position`, where consumers stand; true when there was one.
    pub(crate) fn check_blocked(&mut self, position: i64, now_ns: i64, timeout_ns: i64) -> bool {
        // A publisher that writes alone is not told from one that takes its time.
        !self.spec.is_exclusive && self.blocked.check(&self.spec.log, position, now_ns, timeout_ns)
    }

    /// Notes who holds the publishers back now.
    pub(crate) fn note_holder(&mut self, holder: Option<Holder>, cx: &mut Context) {
        let kind = (PUBLISHER_HELD, "pub-held");
        self.held_back
            .look(holder, kind, self.spec.key(), &mut cx.counters);
    }

    /// Notes whether receivers go on asking for what they were sent again.
    pub(crate) fn note_requests(&mut self, requests: &RepairRequests, mtu: usize, cx: &mut Context) {
        let key = self.spec.key();
        let begins = self
            .unrepaired
            .look(requests, mtu, PUBLICATION_UNREPAIRED, key, &mut cx.counters);
        if begins {
            let receiver = requests.receiver();
            let known = receiver.and_then(|receiver| advise_mtu(cx.network.as_ref(), receiver, mtu));
            cx.warn(&format!(
                "a receiver asks again and again for the same bytes, and they do not arrive there: {}",
                advice(mtu, known.as_deref(), key)
            ));
        }
    }

    /// Gives up the counters and the log.
    pub(crate) fn free(mut self, cx: &mut Context) {
        let links = self.links.take_all("the stream is over");
        let spec = self.spec;
        cx.counters.free_all(links.iter().map(|link| &link.position));
        cx.counters
            .free_all([&spec.counters.publisher_limit, &spec.counters.publisher_position]);
        cx.counters.free_all(&spec.counters.further);
        self.held_back.free(&mut cx.counters);
        self.unrepaired.free(&mut cx.counters);
        cx.free_log(spec.log, spec.log_file_name);
    }
}
