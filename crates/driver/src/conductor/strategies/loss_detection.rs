//! When a gap is reported to the publisher.

use headrace_protocol::channel::SubscriptionParams;
use headrace_protocol::loss::{Delays, LossDetector, LossSettings};

use crate::config::DriverConfig;

/// For an image of a stream, as its first subscription asks for it.
pub(crate) fn loss_detector(
    config: &DriverConfig,
    params: &SubscriptionParams,
    is_group: bool,
) -> LossDetector {
    let settings = LossSettings {
        nak_unicast_delay_ns: config.nak_unicast_delay_ns,
        nak_unicast_retry_delay_ratio: config.nak_unicast_retry_delay_ratio,
        nak_multicast_max_backoff_ns: config.nak_multicast_max_backoff_ns,
        nak_multicast_group_size: config.nak_multicast_group_size as i32,
        is_adaptive: true,
    };
    let is_adaptive = config.adaptive_loss && settings == LossSettings::default();
    LossDetector::new(Delays::for_image(
        params.is_reliable,
        is_group,
        params.nak_delay_ns,
        &LossSettings {
            is_adaptive,
            ..settings
        },
    ))
}
