//! How much room a receiver grants.

use headrace_protocol::channel::SubscriptionParams;
use headrace_protocol::congestion::{CongestionControl, StaticWindow};
use headrace_protocol::frame::Setup;

/// For an image of the stream that `setup` describes, as its first subscription asks for it.
pub(crate) fn congestion_control(params: &SubscriptionParams, setup: &Setup) -> Box<dyn CongestionControl> {
    Box::new(StaticWindow::new(
        params.receiver_window_length,
        setup.term_length,
    ))
}
