//! Congestion control: how much room a receiver grants, so as not to flood the network between.
//!
//! One controller per image is asked after each look at what has arrived. It returns the window to advertise,
//! and whether to say so at once rather than when consumption moves. [`StaticWindow`] is `cc=static`, [`CubicWindow`] is
//! `cc=cubic`. [`RoundTrips`] measures for it, where the frames
//! arrive.

mod cubic;
mod static_window;

pub use cubic::{CubicSettings, CubicWindow};
pub use static_window::StaticWindow;

use crate::round_trips::RoundTrips;

/// What changed since the controller was last asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RebuildProgress {
    /// Monotonic time.
    pub now_ns: i64,
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

    /// What measures round trips for the controller; none if it needs no measurements. Read once.
    fn round_trips(&self) -> Option<RoundTrips>;

    /// A round trip was measured.
    fn on_rtt_measurement(&mut self, rtt_ns: i64);
}

/// The window that a channel or the setting gives, cut to half the term.
fn window_length(receiver_window_length: i32, term_length: i32) -> i32 {
    receiver_window_length.min(term_length / 2)
}
