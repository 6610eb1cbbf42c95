//! The channel of a command.

use headrace_protocol::channel::{ChannelRole, ChannelUri, doubts};

use crate::conductor::context::Context;
use crate::errors::CommandError;

/// What looks wrong and has no effect goes to the error log: the client is not refused.
pub(crate) fn parse_channel(
    cx: &Context,
    channel: &str,
    role: ChannelRole,
) -> Result<ChannelUri, CommandError> {
    let uri = ChannelUri::parse(channel)?;
    for doubt in doubts(&uri, role) {
        cx.doubt(&format!("{doubt}, channel={channel}"));
    }
    Ok(uri)
}
