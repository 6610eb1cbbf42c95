//! Round trips, measured where the frames arrive: a probe carries the time it left, and its echo brings it back.
//!
//! The next probe leaves four round trips after the last echo. While none comes back the wait doubles, so that a sender
//! that does not answer is not asked thousands of times a second. Only an echo of a probe that is remembered counts, and
//! only once: an echo that a stranger makes up, or the network repeats, measures nothing.

use crate::frame::RttMeasurement;

/// Round trips between an echo and the next probe.
const TIMEOUT_MULTIPLE: i64 = 4;
/// Longest wait for an echo, if four of the first round trips are not longer.
const TIMEOUT_MAX_NS: i64 = 1_000_000_000;
/// Probes that an echo may still come for. The wait doubles, so these reach back over 255 times the first.
const REMEMBERED: usize = 8;

/// When to send a probe, and what an echo says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrips {
    initial_rtt_ns: i64,
    timeout_ns: i64,
    /// When the last probe was sent or the last echo came.
    last_ns: Option<i64>,
    awaits_echo: bool,
    /// When each of the last probes was sent, until its echo comes.
    probes: [Option<i64>; REMEMBERED],
    next_probe: usize,
}

impl RoundTrips {
    /// `initial_rtt_ns` is assumed until one is measured, and the shortest that sets the pace of probes.
    pub fn new(initial_rtt_ns: i64) -> Self {
        Self {
            initial_rtt_ns,
            timeout_ns: initial_rtt_ns.saturating_mul(TIMEOUT_MULTIPLE),
            last_ns: None,
            awaits_echo: false,
            probes: [None; REMEMBERED],
            next_probe: 0,
        }
    }

    /// True if a probe should leave now; the first does at once.
    pub fn is_probe_due(&self, now_ns: i64) -> bool {
        self.last_ns
            .is_none_or(|last_ns| now_ns > last_ns.saturating_add(self.timeout_ns))
    }

    /// A probe left that carries `now_ns`.
    pub fn on_probe_sent(&mut self, now_ns: i64) {
        if self.awaits_echo {
            let longest_ns = TIMEOUT_MAX_NS.max(self.timeout_ns);
            self.timeout_ns = self.timeout_ns.saturating_mul(2).min(longest_ns);
        }
        self.awaits_echo = true;
        self.last_ns = Some(now_ns);
        self.probes[self.next_probe] = Some(now_ns);
        self.next_probe = (self.next_probe + 1) % REMEMBERED;
    }

    /// An echo came for this receiver. Returns the round trip, or none if the echo answers no probe.
    pub fn on_echo(&mut self, echo: &RttMeasurement, now_ns: i64) -> Option<i64> {
        let sent_ns = echo.echo_timestamp_ns;
        let probe = self.probes.iter_mut().find(|probe| **probe == Some(sent_ns))?;
        let elapsed_ns = now_ns - sent_ns;
        if !(0..=elapsed_ns).contains(&echo.reception_delta_ns) {
            return None;
        }
        *probe = None;
        let rtt_ns = elapsed_ns - echo.reception_delta_ns;
        self.awaits_echo = false;
        self.last_ns = Some(now_ns);
        self.timeout_ns = rtt_ns.max(self.initial_rtt_ns).saturating_mul(TIMEOUT_MULTIPLE);
        Some(rtt_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT_NS: i64 = 100;

    fn echo(echo_timestamp_ns: i64, reception_delta_ns: i64) -> RttMeasurement {
        RttMeasurement {
            flags: 0,
            session_id: 1,
            stream_id: 2,
            echo_timestamp_ns,
            reception_delta_ns,
            receiver_id: 3,
        }
    }

    /// Sends probes as they fall due until `end_ns`; returns when.
    fn probes(round_trips: &mut RoundTrips, from_ns: i64, end_ns: i64) -> Vec<i64> {
        let due = (from_ns..=end_ns).filter(|&now_ns| {
            let is_due = round_trips.is_probe_due(now_ns);
            if is_due {
                round_trips.on_probe_sent(now_ns);
            }
            is_due
        });
        due.collect()
    }

    #[test]
    fn probes_leave_at_once_then_four_round_trips_after_each_echo() {
        let mut round_trips = RoundTrips::new(RTT_NS);
        assert_eq!(probes(&mut round_trips, 0, 400), [0]);
        assert_eq!(round_trips.on_echo(&echo(0, 0), 400), Some(400));
        assert_eq!(probes(&mut round_trips, 401, 2000), []);
        assert_eq!(probes(&mut round_trips, 2001, 2001), [2001]);
        assert_eq!(
            round_trips.on_echo(&echo(2001, 5), 2050),
            Some(44),
            "without the time that the other side held it"
        );
        assert_eq!(
            probes(&mut round_trips, 2051, 2451),
            [2451],
            "the first round trip sets the pace of shorter ones"
        );
    }

    #[test]
    fn probes_without_an_echo_become_rare_and_an_old_one_may_still_come_back() {
        let mut round_trips = RoundTrips::new(RTT_NS);
        assert_eq!(
            probes(&mut round_trips, 0, 20_000),
            [0, 401, 1202, 2803, 6004, 12_405]
        );
        assert_eq!(round_trips.on_echo(&echo(401, 0), 20_401), Some(20_000));
        assert_eq!(probes(&mut round_trips, 20_402, 100_402), [100_402]);
    }

    #[test]
    fn a_wait_never_grows_beyond_a_second() {
        let mut round_trips = RoundTrips::new(TIMEOUT_MAX_NS / 16);
        let mut now_ns = 0;
        for _ in 0..10 {
            round_trips.on_probe_sent(now_ns);
            now_ns += TIMEOUT_MAX_NS + 1;
            assert!(round_trips.is_probe_due(now_ns));
        }
        assert!(!round_trips.is_probe_due(now_ns - 1));
    }

    #[test]
    fn an_echo_that_answers_no_probe_measures_nothing() {
        let mut round_trips = RoundTrips::new(RTT_NS);
        assert_eq!(round_trips.on_echo(&echo(0, 0), 1), None, "nothing was sent");
        round_trips.on_probe_sent(1000);
        for (wrong, what) in [
            (echo(999, 0), "never left"),
            (echo(1000, -1), "held for less than no time"),
            (echo(1000, 501), "held for longer than it was away"),
        ] {
            assert_eq!(round_trips.on_echo(&wrong, 1500), None, "{what}");
        }
        assert_eq!(round_trips.on_echo(&echo(1000, 0), 1500), Some(500));
        assert_eq!(round_trips.on_echo(&echo(1000, 0), 1600), None, "came before");
    }
}
