//! The heartbeat of another process, as it is seen from here.

/// How long a heartbeat has stood still, by the monotonic clock of who looks.
///
/// A heartbeat is the wall time at which it was stored. A wall clock that is set forwards makes every heartbeat look
/// old, and one that is set back makes that of a dead process look young; so what counts is when it changed. The wall
/// time only says how long before a look that was, and at most the time since the look before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    heartbeat_ms: i64,
    beat_ns: i64,
    looked_ns: i64,
}

impl Pulse {
    /// A process that is taken to live at `now_ns`, monotonic, with the heartbeat that it has then.
    pub fn new(heartbeat_ms: i64, now_ns: i64) -> Self {
        Self {
            heartbeat_ms,
            beat_ns: now_ns,
            looked_ns: now_ns,
        }
    }

    /// Looks at the heartbeat. Returns how long it has been the same, in nanoseconds.
    pub fn look(&mut self, heartbeat_ms: i64, now_ms: i64, now_ns: i64) -> i64 {
        if heartbeat_ms != self.heartbeat_ms {
            self.heartbeat_ms = heartbeat_ms;
            let age_ns = now_ms.saturating_sub(heartbeat_ms).saturating_mul(1_000_000);
            self.beat_ns = now_ns - age_ns.clamp(0, now_ns - self.looked_ns);
        }
        self.looked_ns = now_ns;
        now_ns - self.beat_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_heartbeat_that_stops_grows_older_from_its_own_time_on() {
        let mut pulse = Pulse::new(1_000, 5 * MS);
        assert_eq!(pulse.look(1_004, 1_010, 15 * MS), 6 * MS);
        assert_eq!(pulse.look(1_004, 1_020, 25 * MS), 16 * MS);
        assert_eq!(pulse.look(1_025, 1_030, 35 * MS), 5 * MS);
    }

    #[test]
    fn a_wall_clock_that_jumps_changes_nothing() {
        for jump_ms in [3_600_000, -3_600_000, i64::MAX / 4, i64::MIN / 4] {
            let mut pulse = Pulse::new(1_000, 0);
            assert_eq!(pulse.look(1_000, 1_010 + jump_ms, 10 * MS), 10 * MS);
            // It beat between the jump and the look, by either clock.
            assert!(pulse.look(1_015, 1_020 + jump_ms, 20 * MS) <= 10 * MS);
            assert!(pulse.look(1_025 + jump_ms, 1_030, 30 * MS) <= 10 * MS);
        }
    }
}
