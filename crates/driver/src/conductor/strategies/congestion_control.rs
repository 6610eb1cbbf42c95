//! How much room a receiver grants.

use headrace_protocol::channel::{CongestionControlKind, SubscriptionParams};
use headrace_protocol::congestion::{CongestionControl, CubicSettings, CubicWindow, StaticWindow};
use headrace_protocol::frame::Setup;

use crate::config::DriverConfig;

/// As the first subscription of an image asks for it, unless the driver's settings say the same for all.
pub(crate) fn congestion_control_kind(
    config: &DriverConfig,
    params: &SubscriptionParams,
) -> CongestionControlKind {
    config.congestion_control.unwrap_or(params.congestion_control)
}

/// For an image of the stream that `setup` describes. `local_room` is what the socket can hold of a sender on this host.
pub(crate) fn congestion_control(
    config: &DriverConfig,
    params: &SubscriptionParams,
    setup: &Setup,
    local_room: Option<usize>,
    now_ns: i64,
) -> Box<dyn CongestionControl> {
    let (window_length, term_length) = (params.receiver_window_length, setup.term_length);
    match congestion_control_kind(config, params) {
        CongestionControlKind::Static => {
            let local = local_room.map_or(0, |room| room.min(params.local_window_length) as i32);
            Box::new(StaticWindow::new(window_length.max(local), term_length))
        }
        CongestionControlKind::Cubic => {
            let settings = CubicSettings {
                measures_rtt: config.cubic_measure_rtt,
                initial_rtt_ns: config.cubic_initial_rtt_ns,
                is_tcp_mode: config.cubic_tcp_mode,
            };
            Box::new(CubicWindow::new(
                window_length,
                term_length,
                setup.mtu,
                settings,
                now_ns,
            ))
        }
    }
}
