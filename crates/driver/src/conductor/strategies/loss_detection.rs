//! When a gap is reported to the publisher.

use headrace_protocol::channel::SubscriptionParams;
use headrace_protocol::frame::{Setup, setup};
use headrace_protocol::loss::{DelayGenerator, LossDetector, LossSettings};

use crate::config::DriverConfig;

/// Group behaviour, as the channel forces it or the sender says.
pub(crate) fn is_group(params: &SubscriptionParams, setup: &Setup) -> bool {
    params.group.is_group(setup.flags & setup::FLAG_GROUP != 0)
}

/// For an image of the stream that `setup` describes, as its first subscription asks for it.
pub(crate) fn loss_detector(
    config: &DriverConfig,
    params: &SubscriptionParams,
    setup: &Setup,
) -> LossDetector {
    let settings = LossSettings {
        nak_unicast_delay_ns: config.nak_unicast_delay_ns,
        nak_unicast_retry_delay_ratio: config.nak_unicast_retry_delay_ratio,
        nak_multicast_max_backoff_ns: config.nak_multicast_max_backoff_ns,
        nak_multicast_group_size: config.nak_multicast_group_size as i32,
    };
    let is_group = is_group(params, setup);
    LossDetector::new(DelayGenerator::for_image(
        params.is_reliable,
        is_group,
        params.nak_delay_ns,
        &settings,
    ))
}
