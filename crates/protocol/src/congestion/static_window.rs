//! The same window always.

use super::{CongestionControl, RebuildProgress, WindowDecision};
use crate::round_trips::RoundTrips;

/// What `cc=static` and no `cc` at all mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticWindow {
    window_length: i32,
}

impl StaticWindow {
    /// `receiver_window_length` as the channel or the setting gives it, cut to half the term.
    pub fn new(receiver_window_length: i32, term_length: i32) -> Self {
        Self {
            window_length: super::window_length(receiver_window_length, term_length),
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

    fn round_trips(&self) -> Option<RoundTrips> {
        None
    }

    fn on_rtt_measurement(&mut self, _rtt_ns: i64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_static_window_never_changes_and_never_forces() {
        let mut window = StaticWindow::new(128 * 1024, 16 << 20);
        let lossy = RebuildProgress {
            now_ns: 1,
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
        assert_eq!(window.round_trips(), None);
    }

    #[test]
    fn a_window_is_at_most_half_the_term() {
        assert_eq!(
            StaticWindow::new(128 * 1024, 64 * 1024).initial_window_length(),
            32 * 1024
        );
    }
}
