//! The readers of a stream, and their positions.
//!
//! A link ties one subscription to one stream (an IPC publication, an image, a spied publication) through a position
//! counter. An untethered link may be dropped so that the others can progress:
//!
//! | state | leaves when |
//! |---|---|
//! | Active | the position was not beyond the limit for the window limit time-out: reader told unavailable, Linger |
//! | Linger | after the linger time-out the position stops counting: Resting, or removed when it may not rejoin |
//! | Resting | after the resting time-out it joins again where the stream is: reader told available, Active |

use std::sync::Arc;

use headrace_buffers::counters::Counter;
use headrace_protocol::channel::{PublicationParams, SubscriptionParams};

use crate::event_recorder::{EventRecorder, Reason, Subject};
use crate::states::states;

states! {
    /// One subscription's hold on one stream. A tethered one stays active until it is gone.
    pub(crate) enum LinkState, "link" {
        /// The subscriber reads the stream and holds it back.
        Active => [Linger, Gone];
        /// The subscriber was too slow and lost its image; it may read the rest.
        Linger => [Resting, Gone];
        /// The subscriber holds nothing back and waits for its next image.
        Resting => [Active, Gone];
        /// The subscription or the stream is over.
        Gone => [];
    }
}

/// One subscription's hold on one stream.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) subscription_id: i64,
    pub(crate) client_id: i64,
    pub(crate) stream_id: i32,
    pub(crate) channel: Arc<str>,
    pub(crate) position: Counter,
    pub(crate) is_tethered: bool,
    pub(crate) may_rejoin: bool,
    state: LinkState,
    since_ns: i64,
}

/// What a link is made from.
pub(crate) struct LinkSpec {
    pub(crate) subscription_id: i64,
    pub(crate) client_id: i64,
    pub(crate) stream_id: i32,
    pub(crate) channel: Arc<str>,
    pub(crate) position: Counter,
    pub(crate) is_tethered: bool,
    pub(crate) may_rejoin: bool,
}

/// How long an untethered link may hold a stream back, stay counted, and rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UntetheredTimeouts {
    pub(crate) window_limit_ns: i64,
    pub(crate) linger_ns: i64,
    pub(crate) resting_ns: i64,
}

impl From<&PublicationParams> for UntetheredTimeouts {
    fn from(params: &PublicationParams) -> Self {
        Self {
            window_limit_ns: params.untethered_window_limit_timeout_ns,
            linger_ns: params.untethered_linger_timeout_ns,
            resting_ns: params.untethered_resting_timeout_ns,
        }
    }
}

impl From<&SubscriptionParams> for UntetheredTimeouts {
    fn from(params: &SubscriptionParams) -> Self {
        Self {
            window_limit_ns: params.untethered_window_limit_timeout_ns,
            linger_ns: params.untethered_linger_timeout_ns,
            resting_ns: params.untethered_resting_timeout_ns,
        }
    }
}

/// What the owner of the stream must do about an untethered link.
#[derive(Debug)]
pub(crate) enum UntetheredAction {
    /// Tell the reader that its image is gone.
    Unavailable(Link),
    /// Tell the reader that its image is back, at the position it now has.
    Available(Link),
    /// The link is removed: free its position.
    Removed(Link),
}

/// All the links of one stream.
#[derive(Debug, Default)]
pub(crate) struct Links {
    links: Vec<Link>,
    teller: Teller,
}

/// Tells of the changes of one stream's links.
#[derive(Debug, Default)]
struct Teller {
    recorder: EventRecorder,
    stream: i64,
    session_id: i32,
}

impl Teller {
    fn subject<'a>(&self, link: &'a Link) -> Subject<'a> {
        Subject {
            id: link.subscription_id,
            parent_id: Some(self.stream),
            stream_id: Some(link.stream_id),
            session_id: Some(self.session_id),
            detail: &link.channel,
        }
    }

    /// False when the link must not go to that state.
    fn tell<'a>(&self, link: &Link, new: LinkState, reason: impl Into<Reason<'a>>) -> bool {
        let mut state = link.state;
        self.recorder.change(&mut state, new, reason, &self.subject(link))
    }
}

impl Links {
    /// No links of the stream with this registration id or image id.
    pub(crate) fn new(recorder: &EventRecorder, stream: i64, session_id: i32) -> Self {
        Self {
            links: Vec::new(),
            teller: Teller {
                recorder: recorder.clone(),
                stream,
                session_id,
            },
        }
    }

    pub(crate) fn add(&mut self, spec: LinkSpec, now_ns: i64) -> Link {
        let link = Link {
            subscription_id: spec.subscription_id,
            client_id: spec.client_id,
            stream_id: spec.stream_id,
            channel: spec.channel,
            position: spec.position,
            is_tethered: spec.is_tethered,
            may_rejoin: spec.may_rejoin,
            state: LinkState::Active,
            since_ns: now_ns,
        };
        self.teller
            .recorder
            .begin::<LinkState>("it wants the stream", &self.teller.subject(&link));
        self.links.push(link.clone());
        link
    }

    /// True when the subscription is linked, resting included.
    pub(crate) fn contains(&self, subscription_id: i64) -> bool {
        self.links
            .iter()
            .any(|link| link.subscription_id == subscription_id)
    }

    /// Takes out one subscription's link.
    pub(crate) fn remove(&mut self, subscription_id: i64) -> Option<Link> {
        let index = self
            .links
            .iter()
            .position(|link| link.subscription_id == subscription_id)?;
        let link = self.links.remove(index);
        self.teller
            .tell(&link, LinkState::Gone, "the subscription is over");
        Some(link)
    }

    /// Takes out every link, each in the state it was in.
    pub(crate) fn take_all<'a>(&mut self, reason: impl Into<Reason<'a>>) -> Vec<Link> {
        let reason = reason.into();
        for link in &self.links {
            self.teller.tell(link, LinkState::Gone, reason);
        }
        std::mem::take(&mut self.links)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Link> {
        self.links.iter()
    }

    /// True when no link is left at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    fn counted(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().filter(|link| link.state != LinkState::Resting)
    }

    /// True when at least one position counts for flow control.
    pub(crate) fn is_counted(&self) -> bool {
        self.counted().next().is_some()
    }

    /// Lowest and highest of the positions that count.
    #[inline]
    pub(crate) fn min_max(&self) -> Option<(i64, i64)> {
        self.counted().fold(None, |range, link| {
            let position = link.position.get_acquire();
            Some(range.map_or((position, position), |(min, max): (i64, i64)| {
                (min.min(position), max.max(position))
            }))
        })
    }

    /// The reader with the lowest of the positions that count.
    pub(crate) fn slowest(&self) -> Option<&Link> {
        self.counted().min_by_key(|link| link.position.get_acquire())
    }

    /// Where a reader joins a stream whose own position is `position`.
    pub(crate) fn join_position(&self, position: i64) -> i64 {
        self.min_max().map_or(position, |(min, _)| min.min(position))
    }

    /// True when a reader has not yet come to `position`. One that lingers has lost the image and reads no more of it.
    pub(crate) fn is_any_behind(&self, position: i64) -> bool {
        let mut readers = self.links.iter().filter(|link| link.is_available());
        readers.any(|link| link.position.get_acquire() < position)
    }

    /// Steps the untethered links. `limit` is how far a reader must be to not hold the stream back;
    /// `join_position` is where a rested one joins again.
    pub(crate) fn check_untethered(
        &mut self,
        now_ns: i64,
        limit: i64,
        join_position: i64,
        timeouts: UntetheredTimeouts,
    ) -> Vec<UntetheredAction> {
        let mut actions = Vec::new();
        let step = Step {
            now_ns,
            limit,
            join_position,
            timeouts,
        };
        let teller = &self.teller;
        self.links.retain_mut(|link| {
            let action = link.step(&step, teller);
            let stays = !matches!(action, Some(UntetheredAction::Removed(_)));
            actions.extend(action);
            stays
        });
        actions
    }
}

/// What a step of untethered links goes by.
struct Step {
    now_ns: i64,
    limit: i64,
    join_position: i64,
    timeouts: UntetheredTimeouts,
}

impl Link {
    fn step(&mut self, step: &Step, teller: &Teller) -> Option<UntetheredAction> {
        if self.is_tethered {
            return None;
        }
        let (now_ns, timeouts) = (step.now_ns, step.timeouts);
        let waited_ns = now_ns - self.since_ns;
        match self.state {
            LinkState::Active if self.position.get_acquire() > step.limit => {
                self.since_ns = now_ns;
                None
            }
            LinkState::Active if waited_ns >= timeouts.window_limit_ns => {
                self.enter(
                    teller,
                    LinkState::Linger,
                    now_ns,
                    Reason::fault("the reader holds the stream back"),
                );
                Some(UntetheredAction::Unavailable(self.clone()))
            }
            LinkState::Linger if waited_ns >= timeouts.linger_ns && !self.may_rejoin => {
                self.enter(teller, LinkState::Gone, now_ns, "it may not rejoin the stream");
                Some(UntetheredAction::Removed(self.clone()))
            }
            LinkState::Linger if waited_ns >= timeouts.linger_ns => {
                self.enter(teller, LinkState::Resting, now_ns, "its linger time-out is over");
                None
            }
            LinkState::Resting if waited_ns >= timeouts.resting_ns => {
                self.position.set_release(step.join_position);
                self.enter(teller, LinkState::Active, now_ns, "it has rested");
                Some(UntetheredAction::Available(self.clone()))
            }
            LinkState::Active | LinkState::Linger | LinkState::Resting | LinkState::Gone => None,
        }
    }

    /// The one place where the state changes.
    fn enter(&mut self, teller: &Teller, new: LinkState, now_ns: i64, reason: impl Into<Reason<'static>>) {
        if teller.tell(self, new, reason) {
            self.state = new;
            self.since_ns = now_ns;
        }
    }

    /// True when the reader believes it has the image.
    pub(crate) fn is_available(&self) -> bool {
        self.state == LinkState::Active
    }
}

#[cfg(test)]
mod tests {
    use headrace_buffers::AtomicBuffer;
    use headrace_buffers::counters::CountersManager;

    use super::*;

    const TIMEOUTS: UntetheredTimeouts = UntetheredTimeouts {
        window_limit_ns: 5,
        linger_ns: 3,
        resting_ns: 10,
    };

    struct Fixture {
        counters: CountersManager,
        links: Links,
    }

    impl Fixture {
        fn new() -> Self {
            let (metadata, values) = (AtomicBuffer::allocate(8192), AtomicBuffer::allocate(2048));
            Self {
                counters: CountersManager::new(metadata, values, 0),
                links: Links::default(),
            }
        }

        fn link(&mut self, subscription_id: i64, is_tethered: bool, may_rejoin: bool) -> Counter {
            let id = self.counters.allocate(4, &[], "sub-pos", 0).unwrap();
            let position = self.counters.counter(id);
            let spec = LinkSpec {
                subscription_id,
                client_id: 1,
                stream_id: 10,
                channel: Arc::from("aeron:ipc"),
                position: position.clone(),
                is_tethered,
                may_rejoin,
            };
            self.links.add(spec, 0);
            position
        }

        fn check(&mut self, now_ns: i64, limit: i64) -> Vec<&'static str> {
            let actions = self.links.check_untethered(now_ns, limit, 900, TIMEOUTS);
            actions
                .iter()
                .map(|action| match action {
                    UntetheredAction::Unavailable(_) => "unavailable",
                    UntetheredAction::Available(_) => "available",
                    UntetheredAction::Removed(_) => "removed",
                })
                .collect()
        }
    }

    #[test]
    fn a_slow_untethered_link_lingers_rests_and_comes_back_where_the_stream_is() {
        let mut fixture = Fixture::new();
        let fast = fixture.link(1, true, true);
        let slow = fixture.link(2, false, true);
        fast.set_release(1000);
        slow.set_release(100);
        // Beyond the limit: the clock restarts.
        assert_eq!(fixture.check(4, 99), [""; 0]);
        assert_eq!(fixture.check(8, 100), [""; 0]);
        assert!(fixture.links.is_any_behind(1000));
        assert_eq!(fixture.check(9, 100), ["unavailable"]);
        assert!(!fixture.links.is_any_behind(1000), "it reads no more");
        // Still counted while it lingers.
        assert_eq!(fixture.links.min_max(), Some((100, 1000)));
        assert_eq!(fixture.check(12, 100), [""; 0]);
        assert_eq!(fixture.links.min_max(), Some((1000, 1000)));
        assert_eq!(fixture.check(21, 100), [""; 0]);
        assert_eq!(fixture.check(22, 100), ["available"]);
        assert_eq!(slow.get(), 900);
    }

    #[test]
    fn an_untethered_link_that_may_not_rejoin_is_removed_after_its_linger() {
        let mut fixture = Fixture::new();
        fixture.link(2, false, false);
        assert_eq!(fixture.check(5, 0), ["unavailable"]);
        assert_eq!(fixture.check(8, 0), ["removed"]);
        assert!(fixture.links.is_empty());
    }

    #[test]
    fn a_tethered_link_is_never_dropped() {
        let mut fixture = Fixture::new();
        fixture.link(1, true, true);
        assert_eq!(fixture.check(1_000_000, 0), [""; 0]);
        assert!(fixture.links.is_counted());
    }

    #[test]
    fn a_reader_joins_at_the_lowest_position_there_is() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.links.join_position(700), 700);
        fixture.link(1, true, true).set_release(500);
        fixture.link(2, true, true).set_release(800);
        assert_eq!(fixture.links.join_position(700), 500);
        assert_eq!(fixture.links.slowest().map(|link| link.subscription_id), Some(1));
        assert!(fixture.links.is_any_behind(700) && !fixture.links.is_any_behind(500));
        assert!(fixture.links.remove(1).is_some() && fixture.links.remove(1).is_none());
        assert_eq!(fixture.links.join_position(700), 700);
    }
}
