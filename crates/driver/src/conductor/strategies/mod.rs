//! The suppliers of strategies: which flow control a publication gets, which congestion control and which loss delays
//! an image gets. They depend on the channel, the SETUP and the settings, and keep no state.

mod congestion_control;
mod flow_control;
mod loss_detection;

pub(crate) use congestion_control::{congestion_control, congestion_control_kind};
pub(crate) use flow_control::{Sending, flow_control};
pub(crate) use loss_detection::loss_detector;
