//! Tells the sender at a control address that this receiver is there.
//!
//! A sender with `control-mode=dynamic` sends to those that it hears. Until it sends, there is nothing to answer, so a
//! channel with a control address asks for a SETUP of no session in particular: when its first subscription is there, and
//! each second while it has any. Source: specification, eliciting SETUP and re-resolution.
//!
//! Besides that it asks for each stream that it lacks. Our senders answer such a request with that stream, and Aeron's
//! take it for a sign of life: they know no publication of it.

use std::net::SocketAddr;

use crate::names::Following;

const INTERVAL_NS: i64 = 1_000_000_000;

/// Streams that are asked for at once. The next ones have the next second.
const STREAMS_A_TURN: usize = 16;

/// The timer of one channel.
#[derive(Debug)]
pub(super) struct Elicitor {
    control: SocketAddr,
    is_name: bool,
    last_sent_ns: Option<i64>,
    last_heard_ns: i64,
    last_asked_ns: i64,
    last_named: i32,
}

impl Elicitor {
    /// Sends to `control`, which a name stands for that may move.
    pub(super) fn new(control: SocketAddr, is_name: bool, now_ns: i64) -> Self {
        Self {
            control,
            is_name,
            last_sent_ns: None,
            last_heard_ns: now_ns,
            last_asked_ns: now_ns,
            last_named: i32::MIN,
        }
    }

    /// Where the sender listens.
    pub(super) fn control(&self) -> SocketAddr {
        self.control
    }

    /// Where to send to, if it is time.
    pub(super) fn take_due(&mut self, now_ns: i64, has_subscriptions: bool) -> Option<SocketAddr> {
        let last_ns = self.last_sent_ns;
        let is_due = last_ns.is_none_or(|last_ns| now_ns.saturating_sub(last_ns) > INTERVAL_NS);
        (is_due && has_subscriptions).then(|| {
            self.last_sent_ns = Some(now_ns);
            self.control
        })
    }

    /// The streams, of those wanted, that are asked for this time.
    pub(super) fn take_turn(&mut self, mut wanted: Vec<i32>) -> Vec<i32> {
        wanted.sort_unstable();
        let first = wanted.partition_point(|stream_id| *stream_id <= self.last_named);
        wanted.rotate_left(first);
        wanted.truncate(STREAMS_A_TURN);
        self.last_named = wanted.last().copied().unwrap_or(i32::MIN);
        wanted
    }

    /// Something came in.
    pub(super) fn on_heard(&mut self, now_ns: i64) {
        self.last_heard_ns = now_ns;
    }

    /// True once for each silence: look the name up again.
    pub(super) fn take_silence(&mut self, following: Option<Following>, now_ns: i64) -> bool {
        let is_silent = self.is_name
            && following
                .is_some_and(|following| following.is_due(self.last_heard_ns, self.last_asked_ns, now_ns));
        if is_silent {
            self.last_asked_ns = now_ns;
        }
        is_silent
    }

    /// The name stands for this address now; true when that is another.
    pub(super) fn move_to(&mut self, control: SocketAddr) -> bool {
        let is_changed = self.control != control;
        if is_changed {
            self.control = control;
            self.last_sent_ns = None;
        }
        is_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn asks_at_once_and_each_second_while_there_are_subscriptions() {
        let mut elicitor = Elicitor::new(at("10.0.0.1:5"), false, 0);
        assert_eq!(elicitor.take_due(0, false), None);
        assert_eq!(elicitor.take_due(0, true), Some(at("10.0.0.1:5")));
        assert_eq!(elicitor.take_due(INTERVAL_NS, true), None);
        assert_eq!(elicitor.take_due(2 * INTERVAL_NS, false), None);
        assert_eq!(elicitor.take_due(2 * INTERVAL_NS, true), Some(at("10.0.0.1:5")));
        let following = Following::within(INTERVAL_NS);
        assert!(
            !elicitor.take_silence(following, i64::MAX),
            "an address does not move"
        );
    }

    #[test]
    fn a_few_streams_are_asked_for_at_once_and_each_has_its_turn() {
        let mut elicitor = Elicitor::new(at("10.0.0.1:5"), false, 0);
        let wanted: Vec<i32> = (0..20).collect();
        let take = |elicitor: &mut Elicitor| elicitor.take_turn(wanted.iter().rev().copied().collect());
        assert_eq!(take(&mut elicitor), wanted[..16]);
        assert_eq!(
            take(&mut elicitor),
            [16, 17, 18, 19, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
        );
        assert_eq!(elicitor.take_turn(vec![3, -7]), [-7, 3]);
        assert_eq!(elicitor.take_turn(Vec::new()), [0; 0]);
    }

    #[test]
    fn a_silent_name_is_looked_up_again_and_asked_at_once_where_it_moved_to() {
        let mut elicitor = Elicitor::new(at("10.0.0.1:5"), true, 0);
        elicitor.take_due(0, true);
        elicitor.on_heard(3);
        let following = Following::within(INTERVAL_NS);
        let silence_ns = INTERVAL_NS / 2;
        assert!(!elicitor.take_silence(following, silence_ns + 3));
        assert!(!elicitor.take_silence(None, silence_ns + 4));
        assert!(elicitor.take_silence(following, silence_ns + 4));
        assert!(!elicitor.take_silence(following, silence_ns + 5));
        assert!(!elicitor.move_to(at("10.0.0.1:5")));
        assert_eq!(elicitor.take_due(5, true), None);
        assert!(elicitor.move_to(at("10.0.0.2:5")));
        assert_eq!(elicitor.take_due(5, true), Some(at("10.0.0.2:5")));
    }
}
