//! The state of a channel's endpoint, as Python has it.

use headrace_client::ChannelStatus;

pub(crate) fn name(status: ChannelStatus) -> &'static str {
    match status {
        ChannelStatus::Initializing => "initializing",
        ChannelStatus::Active => "active",
        ChannelStatus::Closing => "closing",
        ChannelStatus::Errored => "errored",
        ChannelStatus::Closed => "closed",
    }
}
