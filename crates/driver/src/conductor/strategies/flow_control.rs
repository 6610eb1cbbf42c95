//! How far a sender may go, and how many repairs it has under way.

use headrace_protocol::flow::{FlowControl, UnicastFlowControl};

use crate::config::DriverConfig;

/// Repairs under way at once for a single receiver.
const UNICAST_MAX_RESEND: usize = 1;

/// What the sender is given with a publication.
pub(crate) struct Sending {
    pub(crate) flow_control: Box<dyn FlowControl>,
    /// Repairs under way at once.
    pub(crate) max_resend: usize,
}

/// For a publication to one receiver.
pub(crate) fn flow_control(config: &DriverConfig) -> Sending {
    let window_multiple = config.unicast_flow_control_rrwm as i32;
    Sending {
        flow_control: Box::new(UnicastFlowControl::new(window_multiple)),
        max_resend: UNICAST_MAX_RESEND,
    }
}
