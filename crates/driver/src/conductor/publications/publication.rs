//! The trait of all kinds of publications; [`super::table::Table`] does the rest.

use super::stream::Stream;
use crate::conductor::context::Context;
use crate::conductor::held_back::Holder;
use crate::conductor::subscriptions::Subscription;
use crate::conductor::subscriptions::links::{Link, UntetheredAction};

/// A publication of one kind.
pub(crate) trait Publication {
    /// The kind with its article, for error texts.
    const KIND: &'static str;

    fn stream(&self) -> &Stream;

    fn stream_mut(&mut self) -> &mut Stream;

    /// True while no other publication of the stream may have its session id.
    fn holds_session_id(&self) -> bool;

    /// True when the subscription is for this kind, channel, stream and session.
    fn is_wanted_by(&self, subscription: &Subscription) -> bool;

    /// True when a subscription may link now.
    fn accepts_links(&self) -> bool;

    /// Where a reader joins.
    fn join_position(&self) -> i64;

    /// A reader was linked.
    fn on_linked(&mut self);

    /// Takes out a subscription's link, keeping what it had consumed.
    fn unlink(&mut self, subscription_id: i64) -> Option<Link>;

    /// The last handle is gone: the stream ends.
    fn begin_draining(&mut self);

    /// Publishes the producer's position and moves its limit; returns the work done.
    fn update_limit(&mut self) -> usize;

    /// Who keeps publishers from writing now, if their room is used up.
    fn holder(&self) -> Option<Holder>;

    /// Notes what is the matter with it now, for a person who looks.
    fn note_troubles(&mut self, cx: &mut Context) {
        let holder = self.holder();
        self.stream_mut().note_holder(holder, cx);
    }

    /// The timer's step of the state machine.
    fn on_tick(&mut self, now_ns: i64, unblock_timeout_ns: i64) -> Tick;
}

/// What a tick asks for.
#[derive(Debug, Default)]
pub(crate) struct Tick {
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
    /// It is done.
    pub(crate) finished: bool,
}
