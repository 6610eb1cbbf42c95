//! Which streams and sessions an endpoint listens to, and where each session stands.
//!
//! ```text
//!              data                SETUP              image made
//!   (unknown) -----> PendingSetup ------> Initialising ---------> Image
//!       |                 | 1 s                | not made           | gone before its end
//!       |                 v                    v                    v
//!       |             (unknown)            (unknown)            CoolDown --> (unknown) when rejoining is allowed
//!       '------------------------ SETUP --> Initialising
//! ```
//! A session without a subscription has no entry: its packets are ignored by asking again each time. Images that
//! are asked for and made are bounded by the conductor, SETUPs asked for by the endpoint, and sessions that cool
//! down here: a stranger can forge sessions without end.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use crate::stream_map::KeyHasher;

type Map<V> = HashMap<i32, V, BuildHasherDefault<KeyHasher>>;

/// Sessions of one stream that cool down at once; one more and the oldest may be joined again.
pub(super) const COOL_DOWN_MAX: usize = 1024;

/// Where a session stands. Images are named by their slot in the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Session {
    PendingSetup,
    Initialising,
    Image(usize),
    CoolDown,
}

impl Session {
    fn is_admitted(self) -> bool {
        matches!(self, Self::Image(_) | Self::Initialising)
    }
}

/// One stream id with at least one subscription.
#[derive(Debug, Default)]
struct Stream {
    accepts_all: bool,
    accepted: Vec<i32>,
    sessions: Map<Session>,
    /// Sessions that are images, or become one.
    admitted_count: usize,
    /// Sessions that cool down, the oldest first.
    cooling: VecDeque<i32>,
}

impl Stream {
    fn is_interested(&self, session_id: i32) -> bool {
        self.accepts_all || self.accepted.contains(&session_id)
    }

    fn set(&mut self, session_id: i32, session: Session) {
        self.admitted_count += usize::from(session.is_admitted());
        if let Some(before) = self.sessions.insert(session_id, session) {
            self.admitted_count -= usize::from(before.is_admitted());
        }
    }

    fn remove(&mut self, session_id: i32) {
        if let Some(session) = self.sessions.remove(&session_id) {
            self.admitted_count -= usize::from(session.is_admitted());
            if session == Session::CoolDown {
                self.cooling.retain(|cooling| *cooling != session_id);
            }
        }
    }

    /// Ignores a session that is unknown now; the one that is forgotten for it, when too many cool down.
    fn cool_down(&mut self, session_id: i32) -> Option<i32> {
        let oldest = (self.cooling.len() == COOL_DOWN_MAX).then(|| self.cooling[0]);
        if let Some(oldest) = oldest {
            self.remove(oldest);
        }
        self.set(session_id, Session::CoolDown);
        self.cooling.push_back(session_id);
        oldest
    }

    /// Takes out sessions without a subscription; returns the slots of images among them.
    fn drop_unwanted(&mut self) -> Vec<usize> {
        let Self {
            accepts_all,
            accepted,
            sessions,
            admitted_count,
            cooling,
        } = self;
        let mut slots = Vec::new();
        sessions.retain(|session_id, session| {
            let keep = *accepts_all || accepted.contains(session_id);
            if let (false, Session::Image(slot)) = (keep, &session) {
                slots.push(*slot);
            }
            *admitted_count -= usize::from(!keep && session.is_admitted());
            keep
        });
        cooling.retain(|session_id| sessions.contains_key(session_id));
        slots
    }
}

/// What to do with a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnData {
    /// Give it to the image in this slot.
    Image(usize),
    /// The session is unknown and wanted: ask for a SETUP, then call [`Dispatcher::setup_asked`].
    Ask,
    /// No subscription wants it, or it came too early or too late.
    Ignore,
}

/// What to do with a SETUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnSetup {
    /// The image is there already.
    Image(usize),
    /// Ask the conductor for an image, then call [`Dispatcher::image_asked`].
    Create,
    /// Accepting one more session would exceed the limit.
    LimitExceeded,
    /// No subscription wants it, or it is being dealt with.
    Ignore,
}

/// The streams of one endpoint.
#[derive(Debug, Default)]
pub(super) struct Dispatcher {
    streams: Map<Stream>,
}

impl Dispatcher {
    /// True while there is a subscription to any stream.
    pub(super) fn has_subscriptions(&self) -> bool {
        !self.streams.is_empty()
    }

    /// Stream ids with subscriptions, or only those of them without an image.
    pub(super) fn wanted(&self, also_with_images: bool) -> impl Iterator<Item = i32> {
        let each = self.streams.iter();
        each.filter(move |(_, stream)| also_with_images || stream.admitted_count == 0)
            .map(|(stream_id, _)| *stream_id)
    }

    pub(super) fn add_subscription(&mut self, stream_id: i32, session_id: Option<i32>) {
        let stream = self.streams.entry(stream_id).or_default();
        match session_id {
            None => stream.accepts_all = true,
            Some(session_id) if !stream.accepted.contains(&session_id) => stream.accepted.push(session_id),
            Some(_) => {}
        }
    }

    /// Returns the slots of images that no longer have a subscription.
    pub(super) fn remove_subscription(&mut self, stream_id: i32, session_id: Option<i32>) -> Vec<usize> {
        let Some(stream) = self.streams.get_mut(&stream_id) else {
            return Vec::new();
        };
        match session_id {
            None => stream.accepts_all = false,
            Some(session_id) => stream.accepted.retain(|accepted| *accepted != session_id),
        }
        let slots = stream.drop_unwanted();
        if !stream.accepts_all && stream.accepted.is_empty() {
            self.streams.remove(&stream_id);
        }
        slots
    }

    #[inline]
    pub(super) fn on_data(&self, session_id: i32, stream_id: i32, is_end_of_stream: bool) -> OnData {
        let Some(stream) = self.streams.get(&stream_id) else {
            return OnData::Ignore;
        };
        match stream.sessions.get(&session_id) {
            Some(Session::Image(slot)) => OnData::Image(*slot),
            None if !is_end_of_stream && stream.is_interested(session_id) => OnData::Ask,
            _ => OnData::Ignore,
        }
    }

    /// The image of a session, if there is one.
    pub(super) fn image(&self, session_id: i32, stream_id: i32) -> Option<usize> {
        match self.streams.get(&stream_id)?.sessions.get(&session_id)? {
            Session::Image(slot) => Some(*slot),
            _ => None,
        }
    }

    pub(super) fn on_setup(&self, session_id: i32, stream_id: i32, session_limit: usize) -> OnSetup {
        let Some(stream) = self.streams.get(&stream_id) else {
            return OnSetup::Ignore;
        };
        let is_full = stream.admitted_count >= session_limit;
        match stream.sessions.get(&session_id) {
            // One that has its image is not refused, as the reference does: it may come on one more path.
            Some(Session::Image(slot)) => OnSetup::Image(*slot),
            Some(Session::Initialising | Session::CoolDown) => OnSetup::Ignore,
            Some(Session::PendingSetup) if is_full => OnSetup::LimitExceeded,
            Some(Session::PendingSetup) => OnSetup::Create,
            None if !stream.is_interested(session_id) => OnSetup::Ignore,
            None if is_full => OnSetup::LimitExceeded,
            None => OnSetup::Create,
        }
    }

    pub(super) fn setup_asked(&mut self, session_id: i32, stream_id: i32) {
        self.put(session_id, stream_id, Session::PendingSetup);
    }

    pub(super) fn image_asked(&mut self, session_id: i32, stream_id: i32) {
        self.put(session_id, stream_id, Session::Initialising);
    }

    fn put(&mut self, session_id: i32, stream_id: i32, session: Session) {
        if let Some(stream) = self.streams.get_mut(&stream_id) {
            stream.set(session_id, session);
        }
    }

    /// The SETUP that was asked for did not come: the next packet may ask again.
    pub(super) fn setup_expired(&mut self, session_id: i32, stream_id: i32) {
        self.take(session_id, stream_id, |session| *session == Session::PendingSetup);
    }

    /// The image was not made: it may be asked for again.
    pub(super) fn forget_arrival(&mut self, session_id: i32, stream_id: i32) {
        self.take(session_id, stream_id, |session| *session == Session::Initialising);
    }

    /// The session may be joined again. It may have been already, when a subscription went and another one came.
    pub(super) fn end_cool_down(&mut self, session_id: i32, stream_id: i32) {
        self.take(session_id, stream_id, |session| *session == Session::CoolDown);
    }

    /// Maps a session to its new image; false when it no longer has a subscription.
    pub(super) fn add_image(&mut self, session_id: i32, stream_id: i32, slot: usize) -> bool {
        match self.streams.get_mut(&stream_id) {
            Some(stream) if stream.is_interested(session_id) => {
                stream.set(session_id, Session::Image(slot));
                true
            }
            _ => false,
        }
    }

    /// Unmaps an image if it is the one mapped.
    pub(super) fn remove_image(&mut self, session_id: i32, stream_id: i32, slot: usize) -> bool {
        self.take(session_id, stream_id, |session| *session == Session::Image(slot))
    }

    /// Ignores a session whose image was removed until it is cleared. True when an older one was forgotten for it.
    pub(super) fn cool_down(&mut self, session_id: i32, stream_id: i32) -> bool {
        let stream = self.streams.get_mut(&stream_id);
        stream.is_some_and(|stream| stream.cool_down(session_id).is_some())
    }

    fn take(&mut self, session_id: i32, stream_id: i32, matches: impl FnOnce(&Session) -> bool) -> bool {
        let Some(stream) = self.streams.get_mut(&stream_id) else {
            return false;
        };
        let found = stream.sessions.get(&session_id).is_some_and(matches);
        if found {
            stream.remove(session_id);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LIMIT: usize = usize::MAX;
    const STREAM: i32 = 1001;
    const SESSION: i32 = -7;

    fn with_wildcard() -> Dispatcher {
        let mut dispatcher = Dispatcher::default();
        dispatcher.add_subscription(STREAM, None);
        dispatcher
    }

    #[test]
    fn streams_without_a_subscription_are_ignored() {
        let dispatcher = with_wildcard();
        assert_eq!(dispatcher.on_data(SESSION, STREAM + 1, false), OnData::Ignore);
        assert_eq!(
            dispatcher.on_setup(SESSION, STREAM + 1, NO_LIMIT),
            OnSetup::Ignore
        );
    }

    #[test]
    fn data_asks_for_a_setup_once_until_the_request_expires() {
        let mut dispatcher = with_wildcard();
        assert_eq!(
            dispatcher.on_data(SESSION, STREAM, true),
            OnData::Ignore,
            "the stream is over"
        );
        assert_eq!(dispatcher.on_data(SESSION, STREAM, false), OnData::Ask);
        dispatcher.setup_asked(SESSION, STREAM);
        assert_eq!(dispatcher.on_data(SESSION, STREAM, false), OnData::Ignore);
        dispatcher.setup_expired(SESSION, STREAM);
        assert_eq!(dispatcher.on_data(SESSION, STREAM, false), OnData::Ask);
    }

    #[test]
    fn a_setup_creates_an_image_once() {
        let mut dispatcher = with_wildcard();
        dispatcher.setup_asked(SESSION, STREAM);
        assert_eq!(dispatcher.on_setup(SESSION, STREAM, NO_LIMIT), OnSetup::Create);
        dispatcher.image_asked(SESSION, STREAM);
        dispatcher.setup_expired(SESSION, STREAM);
        assert_eq!(dispatcher.on_setup(SESSION, STREAM, NO_LIMIT), OnSetup::Ignore);
        assert!(dispatcher.add_image(SESSION, STREAM, 3));
        assert_eq!(dispatcher.on_setup(SESSION, STREAM, NO_LIMIT), OnSetup::Image(3));
        assert_eq!(dispatcher.on_data(SESSION, STREAM, true), OnData::Image(3));
        assert_eq!(dispatcher.image(SESSION, STREAM), Some(3));
    }

    #[test]
    fn an_image_that_could_not_be_made_may_be_tried_again() {
        let mut dispatcher = with_wildcard();
        dispatcher.image_asked(SESSION, STREAM);
        dispatcher.end_cool_down(SESSION, STREAM);
        assert_eq!(
            dispatcher.on_setup(SESSION, STREAM, NO_LIMIT),
            OnSetup::Ignore,
            "an image before it is over, and this one is being made"
        );
        dispatcher.forget_arrival(SESSION, STREAM);
        assert_eq!(dispatcher.on_setup(SESSION, STREAM, NO_LIMIT), OnSetup::Create);
    }

    /// SETUPs of several sessions may come before the first of them has its image.
    #[test]
    fn sessions_whose_images_are_being_made_count_towards_the_limit() {
        let mut dispatcher = with_wildcard();
        dispatcher.image_asked(1, STREAM);
        dispatcher.image_asked(2, STREAM);
        assert_eq!(dispatcher.on_setup(3, STREAM, 2), OnSetup::LimitExceeded);
        assert_eq!(
            dispatcher.on_setup(1, STREAM, 2),
            OnSetup::Ignore,
            "it is one of the two"
        );
        dispatcher.add_image(1, STREAM, 0);
        assert_eq!(dispatcher.on_setup(3, STREAM, 2), OnSetup::LimitExceeded);
        assert_eq!(
            dispatcher.on_setup(1, STREAM, 2),
            OnSetup::Image(0),
            "it comes on another path"
        );
        dispatcher.forget_arrival(2, STREAM);
        assert_eq!(dispatcher.on_setup(3, STREAM, 2), OnSetup::Create);
        dispatcher.image_asked(2, STREAM);
        dispatcher.add_subscription(STREAM, Some(1));
        assert_eq!(dispatcher.remove_subscription(STREAM, None), [0; 0]);
        dispatcher.add_subscription(STREAM, None);
        assert_eq!(
            dispatcher.on_setup(3, STREAM, 2),
            OnSetup::Create,
            "the second one left"
        );
    }

    #[test]
    fn a_lost_image_cools_down_until_cleared() {
        let mut dispatcher = with_wildcard();
        dispatcher.add_image(SESSION, STREAM, 0);
        assert!(
            !dispatcher.remove_image(SESSION, STREAM, 1),
            "not the image mapped"
        );
        assert!(dispatcher.remove_image(SESSION, STREAM, 0));
        assert!(!dispatcher.cool_down(SESSION, STREAM));
        assert_eq!(dispatcher.on_data(SESSION, STREAM, false), OnData::Ignore);
        assert_eq!(dispatcher.on_setup(SESSION, STREAM, NO_LIMIT), OnSetup::Ignore);
        dispatcher.end_cool_down(SESSION, STREAM);
        assert_eq!(dispatcher.on_data(SESSION, STREAM, false), OnData::Ask);
    }

    #[test]
    fn of_too_many_sessions_that_cool_down_the_oldest_is_forgotten() {
        let mut dispatcher = with_wildcard();
        let lose = |dispatcher: &mut Dispatcher, session_id| {
            dispatcher.add_image(session_id, STREAM, 0);
            assert!(dispatcher.remove_image(session_id, STREAM, 0));
            dispatcher.cool_down(session_id, STREAM)
        };
        let count = COOL_DOWN_MAX as i32;
        for session_id in 0..count {
            assert!(!lose(&mut dispatcher, session_id));
        }
        dispatcher.end_cool_down(0, STREAM);
        assert!(
            !lose(&mut dispatcher, count),
            "a session that was cleared left room"
        );
        for session_id in 1..=3 {
            assert!(lose(&mut dispatcher, count + session_id));
            assert_eq!(dispatcher.on_setup(session_id, STREAM, NO_LIMIT), OnSetup::Create);
            assert_eq!(
                dispatcher.on_setup(session_id + 1, STREAM, NO_LIMIT),
                OnSetup::Ignore
            );
        }
        let stream = &dispatcher.streams[&STREAM];
        assert_eq!(
            (stream.sessions.len(), stream.cooling.len()),
            (COOL_DOWN_MAX, COOL_DOWN_MAX)
        );
    }

    #[test]
    fn sessions_that_no_subscription_wants_do_not_cool_down() {
        let mut dispatcher = with_wildcard();
        dispatcher.add_subscription(STREAM, Some(SESSION));
        for session_id in [SESSION, SESSION + 1] {
            dispatcher.cool_down(session_id, STREAM);
        }
        dispatcher.remove_subscription(STREAM, None);
        assert_eq!(dispatcher.streams[&STREAM].cooling, [SESSION]);
    }

    #[test]
    fn a_finished_image_leaves_its_session_unknown() {
        let mut dispatcher = with_wildcard();
        dispatcher.add_image(SESSION, STREAM, 0);
        assert!(dispatcher.remove_image(SESSION, STREAM, 0));
        assert_eq!(dispatcher.on_setup(SESSION, STREAM, NO_LIMIT), OnSetup::Create);
    }

    #[test]
    fn a_full_stream_refuses_setups_of_further_sessions_but_no_data() {
        let mut dispatcher = with_wildcard();
        dispatcher.add_image(SESSION, STREAM, 0);
        assert_eq!(
            dispatcher.on_setup(SESSION + 1, STREAM, 1),
            OnSetup::LimitExceeded
        );
        assert_eq!(dispatcher.on_setup(SESSION, STREAM, 1), OnSetup::Image(0));
        assert_eq!(dispatcher.on_data(SESSION, STREAM, false), OnData::Image(0));
    }

    #[test]
    fn a_session_subscription_accepts_only_its_session() {
        let mut dispatcher = Dispatcher::default();
        dispatcher.add_subscription(STREAM, Some(SESSION));
        assert_eq!(dispatcher.on_data(SESSION + 1, STREAM, false), OnData::Ignore);
        assert_eq!(
            dispatcher.on_setup(SESSION + 1, STREAM, NO_LIMIT),
            OnSetup::Ignore
        );
        assert_eq!(dispatcher.on_setup(SESSION, STREAM, NO_LIMIT), OnSetup::Create);
        assert!(!dispatcher.add_image(SESSION + 1, STREAM, 0));
    }

    #[test]
    fn images_stay_as_long_as_some_subscription_wants_them() {
        let mut dispatcher = with_wildcard();
        dispatcher.add_subscription(STREAM, Some(SESSION));
        dispatcher.add_image(SESSION, STREAM, 0);
        dispatcher.add_image(SESSION + 1, STREAM, 1);
        assert_eq!(dispatcher.remove_subscription(STREAM, None), [1]);
        assert_eq!(dispatcher.on_data(SESSION, STREAM, false), OnData::Image(0));
        assert_eq!(dispatcher.remove_subscription(STREAM, Some(SESSION)), [0]);
        assert_eq!(dispatcher.on_data(SESSION, STREAM, false), OnData::Ignore);
        assert!(dispatcher.remove_subscription(STREAM, None).is_empty());
    }
}
