//! Probes of the round trip to the senders of an image.

use headrace_protocol::frame::{RttMeasurement, rtt};
use headrace_protocol::loss::MeasuredRoundTrip;
use headrace_protocol::round_trips::RoundTrips;

use super::connections::Connections;
use super::outgoing::Outgoing;
use crate::shared::ImageShared;

/// Where congestion control or the delays of loss want round trips.
pub(super) struct RoundTripProbes(pub(super) Option<RoundTrips>);

impl RoundTripProbes {
    /// Sends a probe if it is time. Returns the work done.
    pub(super) fn send(
        &mut self,
        shared: &ImageShared,
        connections: &Connections,
        now_ns: i64,
        out: &mut Outgoing<'_>,
    ) -> usize {
        let Some(round_trips) = self.0.as_mut().filter(|found| found.is_probe_due(now_ns)) else {
            return 0;
        };
        round_trips.on_probe_sent(now_ns);
        let probe = RttMeasurement {
            flags: rtt::FLAG_REPLY,
            session_id: shared.session_id,
            stream_id: shared.stream_id,
            echo_timestamp_ns: now_ns,
            reception_delta_ns: 0,
            receiver_id: out.receiver_id,
        };
        let mut frame = [0; RttMeasurement::LENGTH];
        probe.encode(&mut frame);
        for connection in connections.feedback_targets(now_ns) {
            out.send_frame(&frame, connection);
        }
        1
    }

    /// A probe came back. False for an echo that answers none. The network, or another path, may bring one again.
    pub(super) fn on_echo(&mut self, shared: &ImageShared, echo: &RttMeasurement, now_ns: i64) -> bool {
        let Some(round_trips) = &mut self.0 else {
            return false;
        };
        let rtt_ns = round_trips.on_echo(echo, now_ns);
        if let (Some(rtt_ns), Some(estimate)) = (rtt_ns, round_trips.estimate()) {
            shared.report_round_trip(MeasuredRoundTrip {
                rtt_ns,
                estimate,
                receiver_count: echo.receiver_count(),
            });
        }
        round_trips.is_repeated(echo)
    }
}
