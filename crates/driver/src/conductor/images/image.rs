//! The conductor's half of an image: what has arrived, what is missing, and what to report to the sender.
//!
//! The state is shared with the receiver and only grows; see [`ImageState`].
//!
//! | state | left by | when |
//! |---|---|---|
//! | Init | receiver | it knows the image |
//! | Active | receiver | end of stream reached, silence, or no subscription is left |
//! | Active | conductor, on the timer | revoked, or the last link was dropped |
//! | Draining | conductor, on the timer | all readers have everything and five status messages' time passed, or revoked: readers told unavailable |
//! | Linger | conductor, on the timer | no readers, or the liveness time-out passed |
//! | Done | | freed once the receiver let go |

use std::sync::Arc;

use headrace_buffers::counters::Counter;
use headrace_buffers::log::gap::{Gap, scan_for_gap};
use headrace_buffers::loss_report::LossReport;
use headrace_protocol::congestion::{CongestionControl, RebuildProgress};
use headrace_protocol::loss::LossDetector;

use super::intake::Intake;
use super::loss_log::LossLog;
use crate::conductor::context::Context;
use crate::conductor::counters::{NO_OWNER, StreamKey};
use crate::conductor::events::StreamDescription;
use crate::conductor::held_back::{Holder, IMAGE_HELD, is_used_up};
use crate::conductor::marks::Mark;
use crate::conductor::subscriptions::Subscription;
use crate::conductor::subscriptions::links::{Link, Links, UntetheredAction, UntetheredTimeouts};
use crate::conductor::unrepaired::{IMAGE_UNREPAIRED, Unrepaired, advice};
use crate::endpoint::EndpointId;
use crate::errors::ErrorGroup;
use crate::shared::{ImageShared, ImageState, LossRange, StatusMessageDue};

/// Status messages that a draining image still sends.
const DRAIN_STATUS_MESSAGES: i64 = 5;

/// What an image is made from.
pub(crate) struct ImageSpec {
    pub(crate) shared: Arc<ImageShared>,
    pub(crate) endpoint: EndpointId,
    pub(crate) channel: Arc<str>,
    pub(crate) log_file_name: String,
    pub(crate) source_identity: String,
    pub(crate) untethered: UntetheredTimeouts,
    pub(crate) loss_detector: LossDetector,
    pub(crate) congestion: Box<dyn CongestionControl>,
    /// Its publisher has other receivers, which this one may hold back.
    pub(crate) is_group: bool,
    /// Its publisher wants responses.
    pub(crate) asks_for_responses: bool,
    /// Of congestion control that changes its window.
    pub(crate) cubic: Option<CubicCounters>,
}

impl ImageSpec {
    pub(crate) fn describe_stream(&self) -> StreamDescription<'_> {
        StreamDescription {
            image_correlation_id: self.shared.correlation_id,
            session_id: self.shared.session_id,
            stream_id: self.shared.stream_id,
            log_file_name: &self.log_file_name,
            source_identity: &self.source_identity,
        }
    }
}

/// What cubic congestion control shows. Writer: conductor.
pub(crate) struct CubicCounters {
    /// `rcv-cc-cubic-rtt`
    pub(crate) round_trip: Counter,
    /// `rcv-cc-cubic-wnd`
    pub(crate) window: Counter,
}

/// The conductor's record of one image.
pub(crate) struct Image {
    spec: ImageSpec,
    pub(crate) links: Links,
    next_status: StatusMessageDue,
    loss: LossLog,
    round_trip_change: i64,
    // The last state acted on, and when it was first seen.
    seen_state: ImageState,
    since_ns: i64,
    is_released: bool,
    /// Its last reader was turned away, and may not rejoin.
    is_left_for_good: bool,
    held_back: Mark<Holder>,
    intake: Intake,
    unrepaired: Unrepaired,
}

/// What a tick asks the conductor to do.
#[derive(Debug, Default)]
pub(crate) struct ImageTick {
    /// Untethered links that changed.
    pub(crate) untethered: Vec<UntetheredAction>,
    /// The stream is over for its readers: tell them, take the image from the receiver. Their positions stay
    /// until it is done, since a reader that has not heard yet still stores to them.
    pub(crate) has_ended: bool,
}

/// What the conductor lends for a look at what has arrived.
pub(crate) struct Rebuild<'a> {
    pub(crate) now_ns: i64,
    pub(crate) now_ms: i64,
    pub(crate) random: &'a mut fastrand::Rng,
    pub(crate) loss_report: &'a mut LossReport,
}

impl Image {
    pub(crate) fn new(spec: ImageSpec, now_ns: i64) -> Self {
        let position = spec.shared.join_position;
        Self {
            links: Links::new(
                spec.shared.events(),
                spec.shared.correlation_id,
                spec.shared.session_id,
            ),
            next_status: StatusMessageDue {
                position,
                window_length: spec.shared.initial_window_length,
            },
            loss: LossLog::default(),
            round_trip_change: 0,
            seen_state: ImageState::Init,
            since_ns: now_ns,
            is_released: false,
            is_left_for_good: false,
            held_back: Mark::default(),
            intake: Intake::default(),
            unrepaired: Unrepaired::default(),
            spec,
        }
    }

    pub(crate) fn spec(&self) -> &ImageSpec {
        &self.spec
    }

    pub(crate) fn correlation_id(&self) -> i64 {
        self.spec.shared.correlation_id
    }

    pub(crate) fn state(&self) -> ImageState {
        self.spec.shared.state()
    }

    pub(crate) fn describe_stream(&self) -> StreamDescription<'_> {
        self.spec.describe_stream()
    }

    /// What a reader is linked with.
    pub(crate) fn for_linking(&mut self) -> (&ImageSpec, &mut Links) {
        (&self.spec, &mut self.links)
    }

    /// True when the subscription is for this channel, stream and session, and does not read it yet.
    pub(crate) fn is_wanted_by(&self, subscription: &Subscription) -> bool {
        let shared = &self.spec.shared;
        subscription
            .network()
            .is_some_and(|(endpoint, _)| endpoint == self.spec.endpoint)
            && subscription.matches_stream(shared.stream_id, shared.session_id)
            && self.state() < ImageState::Linger
            && !self.links.contains(subscription.registration_id)
    }

    /// True for the image of that stream id and session, if its packets are taken, and it has readers.
    pub(crate) fn is_read(&self, endpoint: EndpointId, stream: (i32, i32)) -> bool {
        let shared = &self.spec.shared;
        (self.spec.endpoint, (shared.stream_id, shared.session_id)) == (endpoint, stream)
            && self.state() <= ImageState::Active
            && !self.links.is_empty()
    }

    /// True when a later subscription may join.
    pub(crate) fn accepts_links(&self) -> bool {
        !self.links.is_empty()
            && match self.state() {
                ImageState::Init | ImageState::Active => true,
                ImageState::Draining => !self.is_drained(),
                ImageState::Linger | ImageState::Done => false,
            }
    }

    pub(crate) fn join_position(&self) -> i64 {
        self.links.join_position(self.rebuild_position())
    }

    fn rebuild_position(&self) -> i64 {
        self.spec.shared.rebuild_position.get()
    }

    fn is_drained(&self) -> bool {
        !self.links.is_any_behind(self.rebuild_position())
    }

    fn is_revoked(&self) -> bool {
        self.spec.shared.log.metadata().is_publication_revoked_acquire()
    }

    /// The receiver no longer touches the image.
    pub(crate) fn on_released(&mut self) {
        self.is_released = true;
    }

    /// False when its readers do not want the session again.
    pub(crate) fn may_be_joined_again(&self) -> bool {
        let mut links = self.links.iter();
        links
            .next_back()
            .map_or(!self.is_left_for_good, |link| link.may_rejoin)
    }

    /// True when nothing refers to the image any more.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_released && self.state() == ImageState::Done
    }

    /// Gives up the counters and the log.
    pub(crate) fn free(mut self, cx: &mut Context) {
        let links = self.links.take_all("the image is over");
        let shared = &self.spec.shared;
        cx.counters.free_all(links.iter().map(|link| &link.position));
        cx.counters.free_all([
            &shared.high_water_mark,
            &shared.rebuild_position,
            &shared.naks_sent,
        ]);
        if let Some(cubic) = &self.spec.cubic {
            cx.counters.free_all([&cubic.round_trip, &cubic.window]);
        }
        self.held_back.free(&mut cx.counters);
        self.intake.free(&mut cx.counters);
        self.unrepaired.free(&mut cx.counters);
        cx.free_log(shared.log.clone(), self.spec.log_file_name);
    }

    /// Looks at what has arrived: moves the rebuild position, reports the first gap, and schedules a status
    /// message when enough was consumed. Returns the work done.
    #[inline]
    pub(crate) fn rebuild(&mut self, turn: &mut Rebuild<'_>) -> usize {
        if self.state() > ImageState::Draining || self.is_revoked() {
            return 0;
        }
        let shared = &self.spec.shared;
        let high_water_mark = shared.high_water_mark.get_acquire();
        let before = shared.rebuild_position.get();
        let (min, max) = match self.links.min_max() {
            Some(range) => range,
            None if self.links.is_empty() => return 0,
            // All rest, and none of them holds the publisher back: what arrives counts as read, so that they join again where the stream is.
            None => (before, before),
        };
        // Readers are other processes: what they claim to have read is held to what could have been.
        let (min, max) = (min.min(high_water_mark), max.min(high_water_mark));
        let in_order = shared.in_order_position().min(high_water_mark);
        let start = before.max(max).max(shared.join_position).max(in_order);
        let (rebuilt, gap) = self.scan(start, high_water_mark);
        let after = before.max(rebuilt);
        if after != before {
            shared.rebuild_position.set_release(after);
        }
        let outcome = self.spec.loss_detector.on_scan(gap, turn.now_ns, turn.random);
        if let Some(gap) = outcome.report {
            self.report(gap, turn);
        }
        self.take_round_trip();
        let decision = self.spec.congestion.on_rebuild(&RebuildProgress {
            now_ns: turn.now_ns,
            is_loss_found: outcome.is_loss_found,
        });
        // Of a narrow window a quarter may be more than what one datagram leaves.
        let window_length = decision.window_length;
        let threshold = i64::from((window_length / 4).min(window_length - self.spec.shared.mtu_length));
        let is_due = decision.forces_status_message
            || min > self.next_status.position + threshold
            || window_length != self.next_status.window_length;
        if is_due {
            self.schedule_status_message(min, window_length);
        }
        usize::from(is_due || after != before || outcome.report.is_some())
    }

    /// When the gap that is watched is to be looked at again.
    pub(crate) fn loss_deadline_ns(&self) -> Option<i64> {
        self.spec.loss_detector.deadline_ns()
    }

    /// Takes over what the receiver measured.
    fn take_round_trip(&mut self) {
        let Some((change, measured)) = self.spec.shared.round_trip_after(self.round_trip_change) else {
            return;
        };
        self.round_trip_change = change;
        self.spec.loss_detector.delays().on_round_trip(measured);
        if self.spec.congestion.round_trips().is_none() {
            return;
        }
        self.spec.congestion.on_rtt_measurement(measured.rtt_ns);
        if let Some(cubic) = &self.spec.cubic {
            cubic.round_trip.set_release(measured.rtt_ns);
        }
    }

    /// Walks the frames from `start` within its term. Returns the position up to which all has arrived, and the
    /// first gap after it.
    fn scan(&self, start: i64, high_water_mark: i64) -> (i64, Option<Gap>) {
        if start >= high_water_mark {
            return (start, None);
        }
        let log = &self.spec.shared.log;
        let geometry = log.geometry();
        let (term_id, offset) = (geometry.term_id(start), geometry.term_offset(start));
        let limit = if geometry.term_id(high_water_mark) == term_id {
            geometry.term_offset(high_water_mark)
        } else {
            geometry.term_length()
        };
        let scan = scan_for_gap(log.term(geometry.partition(start)), term_id, offset, limit);
        let arrived = start - offset as i64 + scan.rebuild_offset as i64;
        (arrived, scan.gap)
    }

    fn report(&mut self, gap: Gap, turn: &mut Rebuild<'_>) {
        self.spec.shared.report_loss(LossRange {
            term_id: gap.term_id,
            term_offset: gap.offset as i32,
            length: gap.length as i32,
        });
        let spec = &self.spec;
        self.loss.on_report(gap, turn.now_ms, |bytes| {
            turn.loss_report.create_entry(
                bytes,
                turn.now_ms,
                spec.shared.session_id,
                spec.shared.stream_id,
                &spec.channel,
                &spec.source_identity,
            )
        });
    }

    fn schedule_status_message(&mut self, position: i64, window_length: i32) {
        self.next_status = StatusMessageDue {
            position,
            window_length,
        };
        if let Some(cubic) = &self.spec.cubic {
            cubic.window.set_release(i64::from(window_length));
        }
        self.spec.shared.schedule_status_message(self.next_status);
    }

    /// The timer's step of the state machine.
    pub(crate) fn on_tick(
        &mut self,
        now_ns: i64,
        status_timeout_ns: i64,
        liveness_timeout_ns: i64,
    ) -> ImageTick {
        let mut tick = ImageTick::default();
        self.enter(self.state(), now_ns, "the receiver's half moved on");
        let waited_ns = now_ns - self.since_ns;
        match self.seen_state {
            ImageState::Active if self.is_revoked() => self.enter(ImageState::Draining, now_ns, "revoked"),
            ImageState::Active if self.links.is_empty() => {
                self.spec.shared.set_sends_end_of_stream_status();
                self.spec.shared.request_status_message();
                self.enter(ImageState::Draining, now_ns, "no reader is left");
            }
            ImageState::Active => {
                tick.untethered = self.check_untethered(now_ns);
                self.is_left_for_good |= self.links.is_empty();
            }
            ImageState::Draining if self.is_revoked() => {
                self.spec.shared.set_sends_end_of_stream_status();
                self.spec.shared.request_status_message();
                self.enter(ImageState::Linger, now_ns, "revoked");
                tick.has_ended = true;
            }
            ImageState::Draining if self.is_drained() => {
                if waited_ns >= status_timeout_ns.saturating_mul(DRAIN_STATUS_MESSAGES) {
                    self.enter(ImageState::Linger, now_ns, "every reader has read all");
                    tick.has_ended = true;
                }
            }
            ImageState::Linger if self.links.is_empty() => {
                self.enter(ImageState::Done, now_ns, "no reader is left");
            }
            ImageState::Linger if waited_ns >= liveness_timeout_ns => {
                self.enter(ImageState::Done, now_ns, "the liveness time-out is over");
            }
            ImageState::Init | ImageState::Draining | ImageState::Linger | ImageState::Done => {}
        }
        tick
    }

    /// Notes which reader keeps the sender from sending now, if the window is used up, whether what arrives is dropped, and
    /// whether what is asked for does not arrive.
    pub(crate) fn note_troubles(&mut self, cx: &mut Context) {
        let counters = &mut cx.counters;
        let window = i64::from(self.next_status.window_length);
        let is_held = |reader: &&Link| {
            let limit = reader.position.get_acquire() + window;
            self.seen_state == ImageState::Active && is_used_up(limit, self.rebuild_position(), window)
        };
        let holder = self.links.slowest().filter(is_held).map(Holder::reader);
        let shared = &self.spec.shared;
        let key = StreamKey {
            registration_id: shared.correlation_id,
            owner_id: NO_OWNER,
            session_id: shared.session_id,
            stream_id: shared.stream_id,
            channel: &self.spec.channel,
        };
        self.held_back
            .look(holder, (IMAGE_HELD, "rcv-held"), key, counters);
        self.intake.look(shared, key, counters);
        let (requests, mtu) = (&shared.repair_requests, shared.mtu_length as usize);
        if self
            .unrepaired
            .look(requests, mtu, IMAGE_UNREPAIRED, key, counters)
        {
            let text = format!(
                "the publisher at {} is heard, and what it is asked for again and again does not come: {}",
                shared.source,
                advice(mtu, None, key)
            );
            cx.errors.warn_in(ErrorGroup::Images, &text, cx.now_ms);
        }
    }

    /// The one place where the conductor's half changes its state, and starts the clock of the new one. The receiver's
    /// half may have entered it, or a later one, before.
    fn enter(&mut self, state: ImageState, now_ns: i64, reason: &'static str) {
        self.spec.shared.advance_to(state, reason);
        let state = self.state();
        if state != self.seen_state {
            debug_assert!(
                self.seen_state < state,
                "{:?} -> {state:?}: {reason}",
                self.seen_state
            );
            self.seen_state = state;
            self.since_ns = now_ns;
        }
    }

    fn check_untethered(&mut self, now_ns: i64) -> Vec<UntetheredAction> {
        let window = i64::from(self.next_status.window_length);
        // When all readers rest, none holds the stream back; the first to have rested comes back. Alone a reader is the
        // furthest, and holds back receivers elsewhere all the same: there it is measured by what has arrived.
        let arrived = if self.spec.is_group {
            self.rebuild_position()
        } else {
            i64::MIN
        };
        let limit = self
            .links
            .min_max()
            .map_or(i64::MIN, |(_, max)| max.max(arrived) - window + window / 4);
        let join_position = self.join_position();
        self.links
            .check_untethered(now_ns, limit, join_position, self.spec.untethered)
    }
}
