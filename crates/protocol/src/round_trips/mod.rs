//! Round trips between a receiver and a sender: when to send probes, and what their echoes say.

mod estimate;
mod probes;

pub use estimate::RoundTripEstimate;
pub use probes::RoundTrips;

/// Time between two probes where a round trip is only watched.
pub const RARE_PROBE_INTERVAL_NS: i64 = 1_000_000_000;
