//! What looks wrong in a channel, for the client's log.

use headrace_protocol::channel::{ChannelRole, ChannelUri, doubts};
use pyo3::prelude::*;

use crate::{arguments, errors};

#[doc = docstring!("channel_doubts")]
#[pyfunction]
#[pyo3(signature = (channel, role))]
pub(crate) fn channel_doubts(
    #[pyo3(from_py_with = arguments::channel)] channel: &str,
    role: &str,
) -> PyResult<Vec<String>> {
    let role = match role {
        "publication" => ChannelRole::Publication,
        "subscription" => ChannelRole::Subscription,
        "send destination" => ChannelRole::SendDestination,
        "receive destination" => ChannelRole::ReceiveDestination,
        other => {
            let rule = "must be publication, subscription, send destination or receive destination";
            return Err(errors::config("role", other, rule));
        }
    };
    // One that cannot be parsed is refused when it is used, and says why.
    Ok(ChannelUri::parse(channel).map_or_else(|_| Vec::new(), |uri| doubts(&uri, role)))
}
