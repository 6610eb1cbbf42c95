//! Where an image is answered: one connection for each path of its channel.
//!
//! | channel | connections | answered |
//! |---|---|---|
//! | with one socket | one | always, at the group's control address or where the SETUP came from, or from where the stream comes once that sender has been silent for 5 s |
//! | whose destinations clients add | one for each that is there | while it is heard, at the group's control address or where its packets come from |
//!
//! A path is live for 5 s after its last frame, and for as long after it was added: until then it may still bring the
//! stream. Source: specification, image connections, and end of stream.
//!
//! What comes pays for what is answered. An address in a packet may be another's, so no more is sent there than came:
//! each frame pays for as many bytes as it has. A sender that lives says something every 100 ms, which pays for all that
//! the protocol has a receiver say.

use std::net::SocketAddr;

use headrace_protocol::frame::Setup;

/// How long a path counts that brings nothing.
const LIVE_NS: i64 = 5_000_000_000;

/// Time between two requests for the SETUP of a sender that is not known.
const QUESTION_INTERVAL_NS: i64 = 1_000_000_000;

/// Status messages to a group from which nothing was heard, and to a sender at the control address when it is heard again: the
/// addresses are the subscriber's word, not a stranger's. Such a sender says nothing to those that it has not heard, so the
/// first answer must not be lost.
const GREETINGS: u8 = 4;

/// Where a datagram comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The path that brought it.
    pub(super) path: usize,
    /// Who sent it.
    pub(super) address: SocketAddr,
}

#[derive(Clone, Copy, Debug)]
struct Connection {
    /// None until something was heard.
    control: Option<SocketAddr>,
    /// Answers go to the group, wherever its packets come from.
    is_fixed: bool,
    since_ns: i64,
    last_frame_ns: Option<i64>,
    /// When the one that is answered said something last.
    control_heard_ns: i64,
    end_of_stream_position: Option<i64>,
    asked_ns: Option<i64>,
    /// It brings something after a silence, and its sender has not been looked at.
    is_new: bool,
    /// Bytes that may be sent to `control`.
    credit: usize,
    /// Those of them that the last frame paid.
    last_paid: usize,
    /// Status messages that may be sent there besides.
    greetings: u8,
}

impl Connection {
    fn silent(group_control: Option<SocketAddr>, now_ns: i64) -> Self {
        Self {
            control: group_control,
            is_fixed: group_control.is_some(),
            since_ns: now_ns,
            last_frame_ns: None,
            control_heard_ns: now_ns,
            end_of_stream_position: None,
            asked_ns: None,
            is_new: false,
            credit: 0,
            last_paid: 0,
            greetings: group_control.map_or(0, |_| GREETINGS),
        }
    }

    fn is_live(&self, now_ns: i64) -> bool {
        now_ns - self.last_frame_ns.unwrap_or(self.since_ns) <= LIVE_NS
    }

    #[inline]
    fn is_heard(&self, now_ns: i64) -> bool {
        self.last_frame_ns
            .is_some_and(|last_ns| now_ns - last_ns <= LIVE_NS)
    }

    /// The first to be heard is answered, and the one that speaks when it has been silent for long: a stranger that knows
    /// the stream does not take over the answers to a sender that lives. True for one that is answered from now on.
    #[inline]
    fn on_frame(&mut self, address: SocketAddr, now_ns: i64) -> bool {
        self.last_frame_ns = Some(now_ns);
        if self.control == Some(address) {
            self.control_heard_ns = now_ns;
            return false;
        }
        let is_vacant = self.control.is_none() || now_ns - self.control_heard_ns > LIVE_NS;
        let takes_over = is_vacant && !self.is_fixed;
        if takes_over {
            self.control = Some(address);
            self.control_heard_ns = now_ns;
            self.greetings = 0;
            self.credit = self.last_paid; // what another has paid is not for this one
        }
        takes_over
    }

    fn pay(&mut self, length: usize) -> bool {
        let can_pay = self.credit >= length;
        if can_pay {
            self.credit -= length;
        }
        can_pay
    }

    fn pay_status(&mut self, length: usize) -> bool {
        if self.pay(length) {
            return true;
        }
        let is_greeting = self.greetings > 0;
        self.greetings -= u8::from(is_greeting);
        is_greeting
    }
}

/// The connections of one image, by path.
#[derive(Debug)]
pub(super) struct Connections {
    list: Vec<Option<Connection>>,
    /// The channel has just one path.
    is_single: bool,
}

impl Connections {
    /// The only one: to the group if there is one, else to where a SETUP has come from.
    pub(super) fn single(source: SocketAddr, group_control: Option<SocketAddr>, now_ns: i64) -> Self {
        let connection = Connection {
            control: group_control.or(Some(source)),
            last_frame_ns: Some(now_ns),
            credit: Setup::LENGTH,
            greetings: 0,
            ..Connection::silent(group_control, now_ns)
        };
        Self {
            list: vec![Some(connection)],
            is_single: true,
        }
    }

    /// None yet.
    pub(super) fn several() -> Self {
        Self {
            list: Vec::new(),
            is_single: false,
        }
    }

    /// True where the channel has just one path.
    pub(super) fn is_single(&self) -> bool {
        self.is_single
    }

    /// There is one more path, with the control address of its group if it is in one.
    pub(super) fn add(&mut self, path: usize, group_control: Option<SocketAddr>, now_ns: i64) {
        if self.list.len() <= path {
            self.list.resize(path + 1, None);
        }
        self.list[path] = Some(Connection::silent(group_control, now_ns));
    }

    /// The sender that a path was last heard from is the one that the subscriber named.
    pub(super) fn greet(&mut self, path: usize) {
        if let Some(Some(connection)) = self.list.get_mut(path) {
            connection.greetings = GREETINGS;
        }
    }

    /// The sender at the address that the subscriber named is asked which streams it has: those that it answers on a path
    /// may be told once more that they have a receiver. What they were told before may be lost, and they say nothing to one
    /// that they do not know.
    pub(super) fn greet_once(&mut self, path: usize, named: SocketAddr) {
        if let Some(Some(connection)) = self.list.get_mut(path)
            && connection.control == Some(named)
        {
            connection.greetings = connection.greetings.max(1);
        }
    }

    /// A path that brings something after a silence, once, and where it is answered.
    pub(super) fn take_new(&mut self) -> Option<(usize, SocketAddr)> {
        self.list.iter_mut().enumerate().find_map(|(path, connection)| {
            let connection = connection.as_mut()?;
            let is_new = std::mem::take(&mut connection.is_new);
            connection
                .control
                .filter(|_| is_new)
                .map(|control| (path, control))
        })
    }

    /// A path is gone.
    pub(super) fn remove(&mut self, path: usize) {
        if let Some(connection) = self.list.get_mut(path) {
            *connection = None;
        }
    }

    /// No path is left that could bring something.
    pub(super) fn is_empty(&self) -> bool {
        self.list.iter().all(Option::is_none)
    }

    /// True while frames come on a path.
    pub(super) fn is_heard(&self, path: usize, now_ns: i64) -> bool {
        let connection = self.list.get(path).and_then(Option::as_ref);
        connection.is_some_and(|connection| connection.is_heard(now_ns))
    }

    /// Something of the stream came that says its sender lives. True where a path brings something after a silence, or
    /// another sender is answered from now on.
    #[inline]
    pub(super) fn on_frame(&mut self, source: Source, now_ns: i64) -> bool {
        let Some(Some(connection)) = self.list.get_mut(source.path) else {
            return false;
        };
        let was_silent = !self.is_single && !connection.is_heard(now_ns);
        let is_new = connection.on_frame(source.address, now_ns) || was_silent;
        connection.is_new |= is_new;
        is_new
    }

    /// True once a second for a path that brings frames of the stream which say nothing of their sender: they lie outside
    /// the window, and any program that knows the session can make them. Its SETUP says more.
    pub(super) fn take_question(&mut self, path: usize, now_ns: i64) -> bool {
        if self.is_heard(path, now_ns) {
            return false;
        }
        let Some(Some(connection)) = self.list.get_mut(path) else {
            return false;
        };
        let is_due = connection
            .asked_ns
            .is_none_or(|asked_ns| now_ns - asked_ns >= QUESTION_INTERVAL_NS);
        if is_due {
            connection.asked_ns = Some(now_ns);
        }
        is_due
    }

    /// The question of a path could not be put: the next frame may.
    pub(super) fn put_back_question(&mut self, path: usize) {
        if let Some(Some(connection)) = self.list.get_mut(path) {
            connection.asked_ns = None;
        }
    }

    /// A frame of the stream came, whatever became of it: it pays for answers.
    #[inline]
    pub(super) fn on_paid(&mut self, path: usize, length: usize) {
        if let Some(Some(connection)) = self.list.get_mut(path) {
            connection.credit += length;
            connection.last_paid = length;
        }
    }

    /// A frame that has paid on another account does not pay here as well.
    pub(super) fn take_back(&mut self, path: usize, length: usize) {
        if let Some(Some(connection)) = self.list.get_mut(path) {
            connection.credit = connection.credit.saturating_sub(length);
        }
    }

    /// What can be paid for at the most, where something can be.
    pub(super) fn credit(&self) -> usize {
        let each = self.list.iter().flatten();
        each.map(|connection| connection.credit).max().unwrap_or(0)
    }

    /// One more answer of this length may go to each, whatever was heard: what a program brings about, once for each image.
    pub(super) fn grant(&mut self, length: usize) {
        for connection in self.list.iter_mut().flatten() {
            connection.credit += length;
        }
    }

    /// False when an answer of this length has to wait, because nowhere has enough been heard.
    pub(super) fn can_answer(&self, length: usize, now_ns: i64) -> bool {
        self.has(now_ns, |connection| connection.credit >= length)
    }

    /// False when a status message of this length has to wait.
    pub(super) fn can_tell(&self, length: usize, now_ns: i64) -> bool {
        self.has(now_ns, |connection| {
            connection.credit >= length || connection.greetings > 0
        })
    }

    /// True if one that is answered is so, or none is there.
    fn has(&self, now_ns: i64, is_so: impl Fn(&Connection) -> bool) -> bool {
        let is_single = self.is_single;
        let mut answered =
            self.list.iter().flatten().filter(|connection| {
                connection.control.is_some() && (is_single || connection.is_live(now_ns))
            });
        match answered.next() {
            Some(first) => is_so(first) || answered.any(is_so),
            None => true,
        }
    }

    /// Each path that is answered on, with the address to answer to, and has paid for an answer of this length. It is
    /// taken to be sent.
    pub(super) fn answered(&mut self, length: usize, now_ns: i64) -> impl Iterator<Item = Source> {
        self.those(now_ns, move |connection| connection.pay(length))
    }

    /// As [`Self::answered`], for a status message.
    pub(super) fn told(&mut self, length: usize, now_ns: i64) -> impl Iterator<Item = Source> {
        self.those(now_ns, move |connection| connection.pay_status(length))
    }

    /// As [`Self::answered`], each path that has `to_spare` besides.
    pub(super) fn probed(
        &mut self,
        length: usize,
        to_spare: usize,
        now_ns: i64,
    ) -> impl Iterator<Item = Source> {
        self.those(now_ns, move |connection| {
            connection.credit >= length + to_spare && connection.pay(length)
        })
    }

    fn those(&mut self, now_ns: i64, pays: impl Fn(&mut Connection) -> bool) -> impl Iterator<Item = Source> {
        let is_single = self.is_single;
        let each = self.list.iter_mut().enumerate();
        each.filter_map(move |(path, connection)| {
            let connection = connection.as_mut()?;
            let is_answered = is_single || connection.is_live(now_ns);
            let address = connection.control.filter(|_| is_answered)?;
            pays(connection).then_some(Source { path, address })
        })
    }

    /// Where to answer what came on a path, if it has paid for it.
    pub(super) fn on_path(&mut self, path: usize, length: usize) -> Option<Source> {
        let connection = self.list.get_mut(path)?.as_mut()?;
        let address = connection.control?;
        connection.pay(length).then_some(Source { path, address })
    }

    /// How many paths brought something within the liveness time-out.
    pub(super) fn active_count(&self, now_ns: i64, liveness_ns: i64) -> i32 {
        let is_active = |connection: &&Connection| {
            let last_ns = connection.last_frame_ns;
            last_ns.is_some_and(|last_ns| now_ns - last_ns <= liveness_ns)
        };
        self.list.iter().flatten().filter(is_active).count() as i32
    }

    /// A path says that the stream ends there.
    pub(super) fn on_end_of_stream(&mut self, path: usize, position: i64) {
        if let Some(Some(connection)) = self.list.get_mut(path) {
            connection.end_of_stream_position = Some(position);
        }
    }

    /// Where the stream ends, once each path that lives has said that it does. A path that is silent cannot say it, and
    /// holds back nothing.
    pub(super) fn end_of_stream(&self, now_ns: i64) -> Option<i64> {
        let mut connections = self.list.iter().flatten();
        let goes_on = connections.any(|connection| {
            connection.end_of_stream_position.is_none() && (self.is_single || connection.is_live(now_ns))
        });
        let ends = self.list.iter().flatten();
        let furthest = ends
            .filter_map(|connection| connection.end_of_stream_position)
            .max();
        furthest.filter(|_| !goes_on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    fn source(path: usize, port: u16) -> Source {
        Source {
            path,
            address: at(port),
        }
    }

    /// For answers that cost nothing.
    fn answered(connections: &mut Connections, now_ns: i64) -> Vec<Source> {
        connections.answered(0, now_ns).collect()
    }

    /// Paths 0 and 1, added at time 0.
    fn two() -> Connections {
        let mut connections = Connections::several();
        connections.add(0, None, 0);
        connections.add(1, None, 0);
        connections
    }

    #[test]
    fn the_only_path_is_answered_however_long_it_is_silent() {
        let mut connections = Connections::single(at(1), None, 0);
        assert_eq!(answered(&mut connections, 99 * SECOND), [source(0, 1)]);
        let mut group = Connections::single(at(1), Some(at(9)), 0);
        assert!(!group.on_frame(source(0, 1), 10 * SECOND));
        assert_eq!(answered(&mut group, 99 * SECOND), [source(0, 9)]);
        assert_eq!(connections.end_of_stream(99 * SECOND), None);
        connections.on_end_of_stream(0, 64);
        assert_eq!(connections.end_of_stream(0), Some(64));
    }

    #[test]
    fn a_path_is_answered_once_it_is_heard_and_until_it_is_silent() {
        let mut connections = two();
        assert_eq!(answered(&mut connections, 0), []);
        connections.on_frame(source(1, 7), SECOND);
        assert_eq!(answered(&mut connections, SECOND), [source(1, 7)]);
        connections.on_frame(source(0, 5), 2 * SECOND);
        assert_eq!(
            answered(&mut connections, 6 * SECOND),
            [source(0, 5), source(1, 7)]
        );
        assert_eq!(answered(&mut connections, 6 * SECOND + 1), [source(0, 5)]);
        assert_eq!(connections.active_count(6 * SECOND, 5 * SECOND), 2);
        assert_eq!(connections.active_count(6 * SECOND + 1, 5 * SECOND), 1);
        connections.remove(0);
        assert_eq!(answered(&mut connections, 6 * SECOND + 1), []);
    }

    #[test]
    fn a_stranger_takes_over_only_the_answers_to_a_silent_sender() {
        let mut connections = two();
        connections.on_frame(source(0, 5), 0);
        connections.on_frame(source(0, 99), SECOND);
        assert_eq!(connections.on_path(0, 0), Some(source(0, 5)));
        connections.on_frame(source(0, 6), 7 * SECOND);
        assert_eq!(connections.on_path(0, 0), Some(source(0, 6)));
    }

    /// A publisher is started again, or its packets come through another port, while those of the old one are on the way.
    #[test]
    fn one_that_speaks_all_the_time_is_answered_when_the_sender_before_it_is_silent() {
        for mut connections in [two(), Connections::single(at(5), None, 0)] {
            connections.on_frame(source(0, 5), 0);
            for tenths in 1..=50 {
                connections.on_frame(source(0, 6), tenths * SECOND / 10);
                assert_eq!(connections.on_path(0, 0), Some(source(0, 5)), "{tenths}");
            }
            assert!(connections.on_frame(source(0, 6), 5 * SECOND + 1));
            assert_eq!(connections.on_path(0, 0), Some(source(0, 6)));
            assert_eq!(connections.take_new(), Some((0, at(6))));
            connections.on_frame(source(0, 5), 6 * SECOND);
            assert_eq!(connections.on_path(0, 0), Some(source(0, 6)), "it is late");
        }
    }

    #[test]
    fn a_group_is_answered_at_its_control_address_at_once() {
        let mut connections = Connections::several();
        connections.add(0, Some(at(9)), 0);
        assert_eq!(answered(&mut connections, 0), [source(0, 9)]);
        assert_eq!(connections.active_count(0, SECOND), 0, "nothing was heard");
        connections.on_frame(source(0, 5), 9 * SECOND);
        assert_eq!(connections.on_path(0, 0), Some(source(0, 9)));
    }

    #[test]
    fn what_comes_on_a_path_pays_for_what_is_answered_there() {
        let mut connections = two();
        for source in [source(0, 5), source(1, 7)] {
            connections.on_paid(source.path, 36);
            connections.on_frame(source, 0);
        }
        let answered =
            |connections: &mut Connections| connections.answered(36, 0).map(|to| to.path).collect::<Vec<_>>();
        assert_eq!(answered(&mut connections), [0, 1]);
        assert_eq!(answered(&mut connections), []);
        assert!(!connections.can_answer(1, 0));
        connections.on_paid(1, 1000);
        assert!(connections.can_answer(36, 0));
        for _ in 0..1000 / 36 {
            assert_eq!(answered(&mut connections), [1]);
        }
        assert_eq!(answered(&mut connections), []);
        connections.grant(36);
        assert_eq!(answered(&mut connections), [0, 1]);
        assert_eq!(connections.on_path(0, 36), None);
    }

    #[test]
    fn a_long_answer_waits_until_it_is_paid() {
        let mut connections = Connections::single(at(1), None, 0);
        connections.on_paid(0, 1000 - 40 - 1);
        assert!(!connections.can_answer(1000, 0));
        assert_eq!(connections.answered(1000, 0).count(), 0);
        connections.on_paid(0, 1);
        assert!(connections.can_answer(1000, 0));
        assert_eq!(connections.answered(1000, 0).count(), 1);
        assert!(!connections.can_answer(1, 0));
    }

    #[test]
    fn a_named_sender_is_greeted_a_few_times_and_a_probe_leaves_enough_for_one_answer() {
        let mut connections = two();
        connections.on_paid(0, 36);
        assert!(connections.on_frame(source(0, 5), 0), "heard for the first time");
        assert!(!connections.on_frame(source(0, 5), 1));
        (0..100).for_each(|_| connections.greet(0));
        connections.on_frame(source(1, 7), 1);
        let new: Vec<_> = std::iter::from_fn(|| connections.take_new()).collect();
        assert_eq!(new, [(0, at(5)), (1, at(7))], "two paths in one turn");
        connections.remove(1);
        connections.on_paid(0, 40);
        assert_eq!(connections.probed(40, 36, 0).count(), 1);
        assert_eq!(
            connections.probed(40, 36, 0).count(),
            0,
            "it leaves enough for a status message"
        );
        let told = (0..).take_while(|_| connections.can_tell(36, 0) && connections.told(36, 0).count() == 1);
        assert_eq!(told.count(), 1 + usize::from(GREETINGS));
        assert_eq!(
            connections.answered(28, 0).count(),
            0,
            "greetings are no requests for repairs"
        );
    }

    #[test]
    fn a_path_that_is_not_heard_is_asked_about_once_a_second() {
        let mut connections = two();
        let asked = |connections: &mut Connections, now_ns| connections.take_question(0, now_ns);
        assert!(asked(&mut connections, 0) && !asked(&mut connections, SECOND - 1));
        assert!(asked(&mut connections, SECOND));
        connections.put_back_question(0);
        assert!(asked(&mut connections, SECOND + 1), "it was not put");
        connections.on_frame(source(0, 5), 2 * SECOND);
        assert!(!asked(&mut connections, 7 * SECOND));
        assert!(asked(&mut connections, 7 * SECOND + 1), "silent for too long");
    }

    #[test]
    fn who_takes_a_silent_path_over_takes_over_nothing_that_was_paid() {
        let mut connections = two();
        connections.on_frame(source(0, 5), 0);
        connections.on_paid(0, 100_000);
        connections.on_paid(0, 36);
        connections.on_frame(source(0, 6), 6 * SECOND);
        assert_eq!(connections.answered(36, 6 * SECOND).count(), 1);
        assert_eq!(connections.answered(1, 6 * SECOND).count(), 0);
    }

    #[test]
    fn a_stream_ends_when_each_path_that_lives_has_said_so() {
        let mut connections = two();
        connections.on_frame(source(0, 5), SECOND);
        connections.on_end_of_stream(0, 320);
        assert_eq!(
            connections.end_of_stream(SECOND),
            None,
            "the other may still bring more"
        );
        connections.on_frame(source(1, 7), 4 * SECOND);
        assert_eq!(connections.end_of_stream(9 * SECOND), None);
        assert_eq!(
            connections.end_of_stream(9 * SECOND + 1),
            Some(320),
            "the other is dead"
        );
        connections.on_frame(source(1, 7), 10 * SECOND);
        assert_eq!(connections.end_of_stream(10 * SECOND), None);
        connections.on_end_of_stream(1, 640);
        assert_eq!(connections.end_of_stream(10 * SECOND), Some(640), "the furthest");
        connections.remove(1);
        assert_eq!(connections.end_of_stream(10 * SECOND), Some(320));
    }

    #[test]
    fn a_path_that_no_image_knows_is_nothing() {
        let mut connections = two();
        for path in [2, usize::MAX] {
            connections.on_frame(source(path, 5), 0);
            connections.on_end_of_stream(path, 0);
            connections.remove(path);
            assert_eq!(connections.on_path(path, 0), None);
        }
        assert_eq!(answered(&mut connections, 0), []);
    }
}
