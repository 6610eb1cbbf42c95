//! The connections over which an image sends feedback: one for each path of its channel.
//!
//! | channel | connections | get feedback |
//! |---|---|---|
//! | with one socket | one | always, at the group's control address or where the SETUP came from, or from where the stream comes once that sender has been silent for 5 s |
//! | whose destinations clients add | one for each that is there | while it is heard, at the group's control address or where its packets come from |
//!
//! A path is live for 5 s after its last frame, and for as long after it was added: until then it may still bring the
//! stream. Source: specification, image connections, and end of stream.

use std::net::SocketAddr;

/// How long a path counts that brings nothing.
const LIVE_NS: i64 = 5_000_000_000;

/// Time between two requests for the SETUP of a sender that is not known.
const QUESTION_INTERVAL_NS: i64 = 1_000_000_000;

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
    /// Feedback goes to the group, wherever its packets come from.
    is_fixed: bool,
    since_ns: i64,
    last_frame_ns: Option<i64>,
    /// When the sender that gets the feedback was last heard.
    control_heard_ns: i64,
    end_of_stream_position: Option<i64>,
    asked_ns: Option<i64>,
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

    /// Feedback goes to the first sender that is heard, and to the next one once that has been silent for long: a
    /// stranger that knows the stream does not take over the feedback to a sender that lives. True if this sender gets
    /// it from now on.
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
        }
        takes_over
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
    /// another sender gets the feedback from now on.
    #[inline]
    pub(super) fn on_frame(&mut self, source: Source, now_ns: i64) -> bool {
        let Some(Some(connection)) = self.list.get_mut(source.path) else {
            return false;
        };
        let was_silent = !self.is_single && !connection.is_heard(now_ns);
        connection.on_frame(source.address, now_ns) || was_silent
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

    /// Each path that feedback goes over, with its address.
    pub(super) fn feedback_targets(&self, now_ns: i64) -> impl Iterator<Item = Source> {
        let is_single = self.is_single;
        let each = self.list.iter().enumerate();
        each.filter_map(move |(path, connection)| {
            let connection = connection.as_ref()?;
            let is_target = is_single || connection.is_live(now_ns);
            let address = connection.control.filter(|_| is_target)?;
            Some(Source { path, address })
        })
    }

    /// The address for feedback to the sender on a path.
    pub(super) fn on_path(&self, path: usize) -> Option<Source> {
        let address = self.list.get(path)?.as_ref()?.control?;
        Some(Source { path, address })
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

    fn feedback_targets(connections: &Connections, now_ns: i64) -> Vec<Source> {
        connections.feedback_targets(now_ns).collect()
    }

    /// Paths 0 and 1, added at time 0.
    fn two() -> Connections {
        let mut connections = Connections::several();
        connections.add(0, None, 0);
        connections.add(1, None, 0);
        connections
    }

    #[test]
    fn the_only_path_gets_feedback_however_long_it_is_silent() {
        let mut connections = Connections::single(at(1), None, 0);
        assert_eq!(feedback_targets(&connections, 99 * SECOND), [source(0, 1)]);
        let mut group = Connections::single(at(1), Some(at(9)), 0);
        assert!(!group.on_frame(source(0, 1), 10 * SECOND));
        assert_eq!(feedback_targets(&group, 99 * SECOND), [source(0, 9)]);
        assert_eq!(connections.end_of_stream(99 * SECOND), None);
        connections.on_end_of_stream(0, 64);
        assert_eq!(connections.end_of_stream(0), Some(64));
    }

    #[test]
    fn a_path_gets_feedback_once_it_is_heard_and_until_it_is_silent() {
        let mut connections = two();
        assert_eq!(feedback_targets(&connections, 0), []);
        connections.on_frame(source(1, 7), SECOND);
        assert_eq!(feedback_targets(&connections, SECOND), [source(1, 7)]);
        connections.on_frame(source(0, 5), 2 * SECOND);
        assert_eq!(
            feedback_targets(&connections, 6 * SECOND),
            [source(0, 5), source(1, 7)]
        );
        assert_eq!(feedback_targets(&connections, 6 * SECOND + 1), [source(0, 5)]);
        assert_eq!(connections.active_count(6 * SECOND, 5 * SECOND), 2);
        assert_eq!(connections.active_count(6 * SECOND + 1, 5 * SECOND), 1);
        connections.remove(0);
        assert_eq!(feedback_targets(&connections, 6 * SECOND + 1), []);
    }

    #[test]
    fn a_stranger_takes_over_only_the_feedback_to_a_silent_sender() {
        let mut connections = two();
        connections.on_frame(source(0, 5), 0);
        connections.on_frame(source(0, 99), SECOND);
        assert_eq!(connections.on_path(0), Some(source(0, 5)));
        connections.on_frame(source(0, 6), 7 * SECOND);
        assert_eq!(connections.on_path(0), Some(source(0, 6)));
    }

    /// A publisher is started again, or its packets come through another port, while those of the old one are on the way.
    #[test]
    fn one_that_speaks_all_the_time_gets_feedback_when_the_sender_before_it_is_silent() {
        for mut connections in [two(), Connections::single(at(5), None, 0)] {
            connections.on_frame(source(0, 5), 0);
            for tenths in 1..=50 {
                connections.on_frame(source(0, 6), tenths * SECOND / 10);
                assert_eq!(connections.on_path(0), Some(source(0, 5)), "{tenths}");
            }
            assert!(connections.on_frame(source(0, 6), 5 * SECOND + 1));
            assert_eq!(connections.on_path(0), Some(source(0, 6)));
            connections.on_frame(source(0, 5), 6 * SECOND);
            assert_eq!(connections.on_path(0), Some(source(0, 6)), "it is late");
        }
    }

    #[test]
    fn a_group_gets_feedback_at_its_control_address_at_once() {
        let mut connections = Connections::several();
        connections.add(0, Some(at(9)), 0);
        assert_eq!(feedback_targets(&connections, 0), [source(0, 9)]);
        assert_eq!(connections.active_count(0, SECOND), 0, "nothing was heard");
        connections.on_frame(source(0, 5), 9 * SECOND);
        assert_eq!(connections.on_path(0), Some(source(0, 9)));
    }

    #[test]
    fn a_path_that_is_not_heard_is_asked_about_once_a_second() {
        let mut connections = two();
        let asked = |connections: &mut Connections, now_ns| connections.take_question(0, now_ns);
        assert!(asked(&mut connections, 0) && !asked(&mut connections, SECOND - 1));
        assert!(asked(&mut connections, SECOND));
        connections.on_frame(source(0, 5), 2 * SECOND);
        assert!(!asked(&mut connections, 7 * SECOND));
        assert!(asked(&mut connections, 7 * SECOND + 1), "silent for too long");
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
            assert_eq!(connections.on_path(path), None);
        }
        assert_eq!(feedback_targets(&connections, 0), []);
    }
}
