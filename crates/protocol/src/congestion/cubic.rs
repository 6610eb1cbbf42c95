//! A window that shrinks with loss and grows back as the cube of the time since: fast at first, slowly near the size at
//! which loss came, fast again beyond it.

use super::{CongestionControl, RebuildProgress, WindowDecision};
use crate::round_trips::RoundTrips;

/// How steep the growth is.
const SCALE: f64 = 0.4;
/// What part of the window one loss takes away.
const DECREASE: f64 = 0.2;
/// Datagrams that a stream begins with.
const INITIAL_DATAGRAMS: i32 = 10;
const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// The driver's settings of the controller. [`Default`] is the protocol's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CubicSettings {
    /// Send probes and use the round trips that they show.
    pub measures_rtt: bool,
    /// The round trip assumed before one is measured; the window grows at most once in this time.
    pub initial_rtt_ns: i64,
    /// Grow at least as fast as the classic congestion control of TCP would.
    pub is_tcp_mode: bool,
}

impl Default for CubicSettings {
    fn default() -> Self {
        Self {
            measures_rtt: false,
            initial_rtt_ns: 100_000,
            is_tcp_mode: false,
        }
    }
}

/// What `cc=cubic` means. It counts in datagrams of the publisher's MTU.
#[derive(Clone, Copy, Debug)]
pub struct CubicWindow {
    settings: CubicSettings,
    window_length_max: i32,
    mtu_length: i32,
    datagrams_max: i32,
    datagrams: i32,
    /// The window when loss was last found.
    datagrams_at_loss: i32,
    /// Seconds after a loss at which the window is as large as it was then.
    plateau_s: f64,
    last_loss_ns: i64,
    last_update_ns: i64,
    rtt_ns: i64,
}

impl CubicWindow {
    /// For a publisher with this MTU. `receiver_window_length`, cut to half the term, is the widest window.
    pub fn new(
        receiver_window_length: i32,
        term_length: i32,
        mtu_length: i32,
        settings: CubicSettings,
        now_ns: i64,
    ) -> Self {
        let window_length_max = super::window_length(receiver_window_length, term_length);
        let datagrams_max = window_length_max / mtu_length.max(1);
        Self {
            settings,
            window_length_max,
            mtu_length,
            datagrams_max,
            datagrams: INITIAL_DATAGRAMS.min(datagrams_max),
            datagrams_at_loss: datagrams_max,
            plateau_s: plateau_s(datagrams_max),
            last_loss_ns: now_ns,
            last_update_ns: now_ns,
            rtt_ns: settings.initial_rtt_ns,
        }
    }

    fn on_loss(&mut self, now_ns: i64) {
        self.datagrams_at_loss = self.datagrams;
        self.plateau_s = plateau_s(self.datagrams);
        self.datagrams = ((f64::from(self.datagrams) * (1.0 - DECREASE)) as i32).max(1);
        self.last_loss_ns = now_ns;
    }

    fn grow(&mut self, now_ns: i64) {
        let since_loss_s = (now_ns - self.last_loss_ns) as f64 / NANOSECONDS_PER_SECOND;
        let growth = (SCALE * (since_loss_s - self.plateau_s).powi(3)) as i32;
        let mut datagrams = self.datagrams_at_loss.saturating_add(growth);
        if self.settings.is_tcp_mode && datagrams < self.datagrams_at_loss {
            datagrams = datagrams.max(self.classic_datagrams(since_loss_s));
        }
        self.datagrams = datagrams.min(self.datagrams_max);
        self.last_update_ns = now_ns;
    }

    /// What the classic control has this long after the loss: one more datagram every few round trips.
    fn classic_datagrams(&self, since_loss_s: f64) -> i32 {
        let round_trips = since_loss_s * NANOSECONDS_PER_SECOND / self.rtt_ns.max(1) as f64;
        let kept = f64::from(self.datagrams_at_loss) * (1.0 - DECREASE);
        (kept + 3.0 * DECREASE / (2.0 - DECREASE) * round_trips) as i32
    }

    fn window_length(&self) -> i32 {
        self.datagrams * self.mtu_length // at most the widest window, by construction
    }
}

fn plateau_s(datagrams_at_loss: i32) -> f64 {
    (f64::from(datagrams_at_loss) * DECREASE / SCALE).cbrt()
}

impl CongestionControl for CubicWindow {
    fn on_rebuild(&mut self, progress: &RebuildProgress) -> WindowDecision {
        let now_ns = progress.now_ns;
        if progress.is_loss_found {
            self.on_loss(now_ns);
        } else if self.datagrams < self.datagrams_max
            && now_ns - self.last_update_ns > self.settings.initial_rtt_ns
        {
            self.grow(now_ns);
        }
        WindowDecision {
            window_length: self.window_length(),
            forces_status_message: progress.is_loss_found,
        }
    }

    fn initial_window_length(&self) -> i32 {
        self.mtu_length * INITIAL_DATAGRAMS.min(self.datagrams_max)
    }

    fn window_length_max(&self) -> i32 {
        self.window_length_max
    }

    fn round_trips(&self) -> Option<RoundTrips> {
        self.settings
            .measures_rtt
            .then(|| RoundTrips::new(self.settings.initial_rtt_ns))
    }

    fn on_rtt_measurement(&mut self, rtt_ns: i64) {
        self.rtt_ns = rtt_ns;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MTU: i32 = 1024;
    const SECOND_NS: i64 = 1_000_000_000;
    const RTT_NS: i64 = 100_000;

    fn cubic(settings: CubicSettings) -> CubicWindow {
        CubicWindow::new(128 * 1024, 16 << 20, MTU, settings, 0)
    }

    fn look(now_ns: i64, is_loss_found: bool) -> RebuildProgress {
        RebuildProgress {
            now_ns,
            is_loss_found,
        }
    }

    /// Datagrams of the window after a look, and whether a status message is forced.
    fn after(window: &mut CubicWindow, now_ns: i64, is_loss_found: bool) -> (i32, bool) {
        let decision = window.on_rebuild(&look(now_ns, is_loss_found));
        (decision.window_length / MTU, decision.forces_status_message)
    }

    #[test]
    fn a_stream_begins_with_ten_datagrams_or_as_many_as_fit() {
        let window = cubic(CubicSettings::default());
        assert_eq!(window.initial_window_length(), 10 * MTU);
        assert_eq!(window.window_length_max(), 128 * 1024);
        let small = CubicWindow::new(128 * 1024, 64 * 1024, 8 * MTU, CubicSettings::default(), 0);
        assert_eq!(
            (small.initial_window_length(), small.window_length_max()),
            (32 * MTU, 32 * MTU)
        );
        let none = CubicWindow::new(512, 64 * 1024, MTU, CubicSettings::default(), 0);
        assert_eq!(
            none.initial_window_length(),
            0,
            "the conductor refuses such an image"
        );
    }

    /// K of 128 datagrams is 4 s: at 0 s the window is 128 - 0.4 * 64 = 102.4, cut after the cube: 128 - 25.
    #[test]
    fn the_window_follows_the_cube_of_the_time_since_loss() {
        let mut window = cubic(CubicSettings::default());
        assert_eq!(
            after(&mut window, RTT_NS, false),
            (10, false),
            "not twice in a round trip"
        );
        assert_eq!(after(&mut window, RTT_NS + 1, false), (103, false));
        assert_eq!(
            after(&mut window, 2 * SECOND_NS, false),
            (125, false),
            "0.4 * 2^3"
        );
        assert_eq!(after(&mut window, 4 * SECOND_NS, false), (128, false));
        assert_eq!(
            after(&mut window, 100 * SECOND_NS, false),
            (128, false),
            "never wider"
        );
        // K of 128 again: the loss comes at the widest window.
        assert_eq!(after(&mut window, 100 * SECOND_NS, true), (102, true));
        assert_eq!(after(&mut window, 102 * SECOND_NS, false), (125, false));
        // K of 125 datagrams is 3.97 s.
        assert_eq!(after(&mut window, 102 * SECOND_NS, true), (100, true));
        assert_eq!(after(&mut window, 104 * SECOND_NS, false), (122, false));
    }

    /// K of 10 datagrams is 1.7 s, less than half that of the widest window.
    #[test]
    fn a_narrow_window_is_back_sooner_than_a_wide_one() {
        let mut window = cubic(CubicSettings::default());
        assert_eq!(after(&mut window, 1, true), (8, true));
        assert_eq!(after(&mut window, SECOND_NS, false), (10, false));
    }

    #[test]
    fn losses_in_a_row_leave_one_datagram() {
        let mut window = cubic(CubicSettings::default());
        let shrunk: Vec<i32> = (0..10).map(|_| after(&mut window, 1, true).0).collect();
        assert_eq!(shrunk, [8, 6, 4, 3, 2, 1, 1, 1, 1, 1]);
        assert_eq!(after(&mut window, 2, false), (1, false));
    }

    #[test]
    fn in_tcp_mode_the_window_grows_at_least_with_the_round_trips() {
        let settings = CubicSettings {
            is_tcp_mode: true,
            ..CubicSettings::default()
        };
        let mut window = cubic(settings);
        window.on_rtt_measurement(SECOND_NS / 10);
        assert_eq!(after(&mut window, 40 * SECOND_NS, false), (128, false));
        after(&mut window, 40 * SECOND_NS, true);
        // 102.4 + 1/3 datagram in each of 30 round trips; the cube alone has 128 - 0.4.
        assert_eq!(after(&mut window, 43 * SECOND_NS, false), (128, false));
        window.on_rebuild(&look(43 * SECOND_NS, true));
        assert_eq!(
            after(&mut window, 44 * SECOND_NS, false),
            (118, false),
            "the cube is ahead"
        );
        window.on_rtt_measurement(SECOND_NS / 50);
        window.on_rebuild(&look(44 * SECOND_NS, true));
        // 118 * 0.8 + 50 / 3 = 111.06; the cube has 118 - 0.4 * 2.89^3 = 108.
        assert_eq!(after(&mut window, 45 * SECOND_NS, false), (111, false));
    }

    #[test]
    fn only_a_controller_that_measures_has_probes_sent() {
        assert_eq!(cubic(CubicSettings::default()).round_trips(), None);
        let settings = CubicSettings {
            measures_rtt: true,
            ..CubicSettings::default()
        };
        assert_eq!(cubic(settings).round_trips(), Some(RoundTrips::new(RTT_NS)));
    }

    proptest! {
        #[test]
        fn the_window_is_whole_datagrams_from_one_to_the_widest(
            is_tcp_mode: bool,
            steps in proptest::collection::vec((0..=i64::MAX / 1024, any::<bool>(), 1..=i64::MAX), 1..100),
        ) {
            let settings = CubicSettings { is_tcp_mode, ..CubicSettings::default() };
            let mut window = cubic(settings);
            let mut now_ns = 0;
            for (wait_ns, is_loss_found, rtt_ns) in steps {
                now_ns += wait_ns;
                window.on_rtt_measurement(rtt_ns);
                let length = window.on_rebuild(&look(now_ns, is_loss_found)).window_length;
                prop_assert!((MTU..=128 * 1024).contains(&length) && length % MTU == 0, "{}", length);
            }
        }
    }
}
