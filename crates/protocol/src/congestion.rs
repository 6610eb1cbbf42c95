//! Congestion control: how much room a receiver grants, so as not to flood the network between.
//!
//! One controller per image is asked after each look at what has arrived. It returns the window to advertise,
//! and whether to say so at once rather than when consumption moves.

/// What changed since the controller was last asked. Positions are stream positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RebuildProgress {
    /// Monotonic time.
    pub now_ns: i64,
    /// Lowest position of the subscribers.
    pub consumption_position: i64,
    /// Position of the status message scheduled last.
    pub status_message_position: i64,
    /// Furthest byte seen.
    pub high_water_mark: i64,
    /// Contiguous up to here before this look.
    pub rebuild_position_before: i64,
    /// Contiguous up to here now.
    pub rebuild_position_after: i64,
    /// This look activated a gap that was not known before.
    pub is_loss_found: bool,
}

/// What to advertise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowDecision {
    /// Bytes granted beyond the consumed position.
    pub window_length: i32,
    /// Schedule a status message even if nothing else asks for one.
    pub forces_status_message: bool,
}

/// A controller of one image.
pub trait CongestionControl: Send {
    /// The window from now on.
    fn on_rebuild(&mut self, progress: &RebuildProgress) -> WindowDecision;

    /// Window of the first status message. Read once.
    fn initial_window_length(&self) -> i32;

    /// Widest the window will ever be. Read once.
    fn window_length_max(&self) -> i32;

    /// True if a round-trip probe should be sent now.
    fn should_measure_rtt(&self, now_ns: i64) -> bool;

    /// A probe was sent.
    fn on_rtt_probe_sent(&mut self, now_ns: i64);

    /// A probe came back.
    fn on_rtt_measurement(&mut self, now_ns: i64, rtt_ns: i64);
}

/// The same window always; what `cc=static` and no `cc` at all mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticWindow {
    window_length: i32,
}

impl StaticWindow {
    /// `receiver_window_length` as the channel or the setting gives it, cut to half the term.
    pub fn new(receiver_window_length: i32, term_length: i32) -> Self {
        Self {
            window_length: receiver_window_length.min(term_length / 2),
        }
    }
}

impl CongestionControl for StaticWindow {
    fn on_rebuild(&mut self, _progress: &RebuildProgress) -> WindowDecision {
        WindowDecision {
            window_length: self.window_length,
            forces_status_message: false,
        }
    }

    fn initial_window_length(&self) -> i32 {
        self.window_length
    }

    fn window_length_max(&self) -> i32 {
        self.window_length
    }

    fn should_measure_rtt(&self, _now_ns: i64) -> bool {
        false
    }

    fn on_rtt_probe_sent(&mut self, _now_ns: i64) {}

    fn on_rtt_measurement(&mut self, _now_ns: i64, _rtt_ns: i64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_window_never_changes_and_never_forces() {
        let mut window = StaticWindow::new(128 * 1024, 16 << 20);
        let lossy = RebuildProgress {
            now_ns: 1,
            consumption_position: 64,
            status_message_position: 0,
            high_water_mark: 4096,
            rebuild_position_before: 64,
            rebuild_position_after: 64,
            is_loss_found: true,
        };
        let decision = WindowDecision {
            window_length: 128 * 1024,
            forces_status_message: false,
        };
        assert_eq!(window.on_rebuild(&lossy), decision);
        assert_eq!(
            (window.initial_window_length(), window.window_length_max()),
            (128 * 1024, 128 * 1024)
        );
        assert!(!window.should_measure_rtt(i64::MAX));
    }

    #[test]
    fn a_window_is_at_most_half_the_term() {
        assert_eq!(
            StaticWindow::new(128 * 1024, 64 * 1024).initial_window_length(),
            32 * 1024
        );
    }
}
