//! Round trips, measured where the frames arrive: a probe carries the time it left, and its echo brings it back.
//!
//! The next probe leaves four round trips after the last echo. While none comes back the wait doubles, so that a sender
//! that does not answer is not asked thousands of times a second. Only an echo of a probe that is remembered counts, and
//! only once: an echo that a stranger makes up, or the network repeats, measures nothing. Where a round trip is only
//! watched, the pace becomes a slow one after a few echoes. An echo that is far from what was expected brings the quick
//! pace back until the new round trip is known: one pause of a process would otherwise be believed for a minute.

use super::{RARE_PROBE_INTERVAL_NS, RoundTripEstimate};
use crate::frame::RttMeasurement;

/// Round trips between an echo and the next probe.
const TIMEOUT_MULTIPLE: i64 = 4;
/// Longest wait for an echo, if four of the first round trips are not longer.
const TIMEOUT_MAX_NS: i64 = 1_000_000_000;
/// Probes that an echo may still come for. The wait doubles, so these reach back over 255 times the first.
const REMEMBERED: usize = 8;
/// The round trip that is assumed where one is only watched.
const WATCHED_INITIAL_NS: i64 = 100_000;
/// Echoes after which a round trip that is only watched is known.
const WATCHED_ECHOES: u32 = 8;
/// The same after one far from what was expected: what is left of it in the estimate is less than a hundred-thousandth.
const ECHOES_AFTER_CHANGE: u32 = 96;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    sent_ns: i64,
    is_answered: bool,
}

/// When to send a probe, and what an echo says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrips {
    initial_rtt_ns: i64,
    timeout_ns: i64,
    /// When the last probe was sent or the last echo came.
    last_ns: Option<i64>,
    awaits_echo: bool,
    probes: [Option<Probe>; REMEMBERED],
    next_probe: usize,
    /// Echoes until probes become rare, if they do.
    until_rare: Option<u32>,
    estimate: Option<RoundTripEstimate>,
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
            until_rare: None,
            estimate: None,
        }
    }

    /// A few quick probes, and then one a second.
    pub fn watched() -> Self {
        Self {
            until_rare: Some(WATCHED_ECHOES),
            ..Self::new(WATCHED_INITIAL_NS)
        }
    }

    /// What the echoes so far say of the next one.
    pub fn estimate(&self) -> Option<RoundTripEstimate> {
        self.estimate
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
        self.probes[self.next_probe] = Some(Probe {
            sent_ns: now_ns,
            is_answered: false,
        });
        self.next_probe = (self.next_probe + 1) % REMEMBERED;
    }

    /// True for an echo of a probe that another has answered: the network, or another path, brought it again.
    pub fn is_repeated(&self, echo: &RttMeasurement) -> bool {
        let mut probes = self.probes.iter().flatten();
        probes.any(|probe| probe.sent_ns == echo.echo_timestamp_ns && probe.is_answered)
    }

    /// An echo came for this receiver. Returns the round trip, or none if the echo answers no probe.
    pub fn on_echo(&mut self, echo: &RttMeasurement, now_ns: i64) -> Option<i64> {
        let sent_ns = echo.echo_timestamp_ns;
        let mut probes = self.probes.iter_mut().flatten();
        let probe = probes.find(|probe| probe.sent_ns == sent_ns && !probe.is_answered)?;
        let elapsed_ns = now_ns - sent_ns;
        if !(0..=elapsed_ns).contains(&echo.reception_delta_ns) {
            return None;
        }
        probe.is_answered = true;
        let rtt_ns = elapsed_ns - echo.reception_delta_ns;
        self.awaits_echo = false;
        self.last_ns = Some(now_ns);
        let is_change = self.estimate.is_some_and(|before| before.is_far_off(rtt_ns));
        self.until_rare = match self.until_rare {
            Some(0) if is_change => Some(ECHOES_AFTER_CHANGE),
            echoes => echoes.map(|echoes| echoes.saturating_sub(1)),
        };
        self.estimate = Some(RoundTripEstimate::updated(self.estimate, rtt_ns));
        let least_ns = if self.until_rare == Some(0) {
            RARE_PROBE_INTERVAL_NS
        } else {
            self.initial_rtt_ns.saturating_mul(TIMEOUT_MULTIPLE)
        };
        self.timeout_ns = rtt_ns.saturating_mul(TIMEOUT_MULTIPLE).max(least_ns);
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
    fn what_is_only_watched_is_soon_asked_for_once_a_second() {
        let mut round_trips = RoundTrips::watched();
        let mut sent = Vec::new();
        for now_ns in (0..5 * RARE_PROBE_INTERVAL_NS).step_by(50_000) {
            if round_trips.is_probe_due(now_ns) {
                round_trips.on_probe_sent(now_ns);
                round_trips.on_echo(&echo(now_ns, 0), now_ns).unwrap();
                sent.push(now_ns);
            }
        }
        assert_eq!(sent.len(), WATCHED_ECHOES as usize + 4, "{sent:?}");
        let quick_ns = sent[WATCHED_ECHOES as usize - 1];
        assert!(quick_ns < 5_000_000, "{sent:?}");
    }

    /// The round trip changes for one echo, or for good. Returns when the estimate has followed, and the probes until then.
    fn followed(round_trips: &mut RoundTrips, from_ns: i64, rtt_of: impl Fn(usize) -> i64) -> (i64, usize) {
        let mut now_ns = from_ns;
        for count in 1.. {
            while !round_trips.is_probe_due(now_ns) {
                now_ns += 50_000;
            }
            round_trips.on_probe_sent(now_ns);
            let (sent_ns, rtt_ns) = (now_ns, rtt_of(count));
            now_ns += rtt_ns;
            round_trips.on_echo(&echo(sent_ns, 0), now_ns).unwrap();
            let late_ns = round_trips.estimate().unwrap().late_after_ns();
            if (rtt_ns..2 * rtt_ns).contains(&late_ns) {
                return (now_ns - from_ns, count);
            }
        }
        unreachable!("the estimate never follows")
    }

    #[test]
    fn after_a_round_trip_far_from_what_was_expected_the_estimate_follows_within_a_few_seconds() {
        const NEAR_NS: i64 = 50_000;
        const FAR_NS: i64 = 200_000_000;
        let mut round_trips = RoundTrips::watched();
        let (mut now_ns, _) = followed(&mut round_trips, 0, |_| NEAR_NS);
        let pause = |count| if count == 1 { FAR_NS } else { NEAR_NS };
        now_ns += 10 * RARE_PROBE_INTERVAL_NS;
        while now_ns < 12 * RARE_PROBE_INTERVAL_NS {
            now_ns += followed(&mut round_trips, now_ns, |_| NEAR_NS).0;
        }
        let (elapsed_ns, probes) = followed(&mut round_trips, now_ns, pause);
        assert!(elapsed_ns < 3 * RARE_PROBE_INTERVAL_NS, "{elapsed_ns}");
        assert!(probes <= 1 + ECHOES_AFTER_CHANGE as usize, "{probes}");
        now_ns += elapsed_ns;
        let (elapsed_ns, _) = followed(&mut round_trips, now_ns, |_| FAR_NS);
        now_ns += elapsed_ns + 100 * RARE_PROBE_INTERVAL_NS;
        for _ in 0..2 * ECHOES_AFTER_CHANGE {
            now_ns += followed(&mut round_trips, now_ns, |_| FAR_NS).0;
        }
        let (elapsed_ns, _) = followed(&mut round_trips, now_ns, |_| NEAR_NS);
        assert!(elapsed_ns < 3 * RARE_PROBE_INTERVAL_NS, "{elapsed_ns}");
    }

    #[test]
    fn round_trips_that_are_never_as_expected_are_still_asked_for_at_a_bounded_pace() {
        let mut round_trips = RoundTrips::watched();
        let mut count = 0;
        for now_ns in (0..60 * RARE_PROBE_INTERVAL_NS).step_by(50_000) {
            if round_trips.is_probe_due(now_ns) {
                round_trips.on_probe_sent(now_ns);
                let rtt_ns = if count % 7 == 0 { 40_000 } else { 0 };
                round_trips.on_echo(&echo(now_ns, 0), now_ns + rtt_ns).unwrap();
                count += 1;
            }
        }
        let most = 60 * (1 + ECHOES_AFTER_CHANGE) + WATCHED_ECHOES;
        assert!(count <= most, "{count}");
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
        assert!(!round_trips.is_repeated(&echo(1000, 0)));
        assert_eq!(round_trips.on_echo(&echo(1000, 0), 1500), Some(500));
        assert!(round_trips.is_repeated(&echo(1000, 0)) && !round_trips.is_repeated(&echo(999, 0)));
        assert_eq!(round_trips.on_echo(&echo(1000, 0), 1600), None, "came before");
    }
}
