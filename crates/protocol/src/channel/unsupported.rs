//! What the protocol has and this version has not. A channel that asks for one of these is refused, with the
//! parameter's name, the reason and the way out: a stream that silently lacks what was asked for is worse.

use super::{ChannelError, ChannelUri, Media, keys};
use crate::ErrorCode;

/// A refusal of one part of a channel.
pub fn refuse(what: &str, missing: &str, remedy: &str, uri: &ChannelUri) -> ChannelError {
    ChannelError::new(
        ErrorCode::NotSupported,
        format!(
            "{what} is not supported by this version of Headrace: {missing} not built yet; {remedy}, channel={uri}"
        ),
    )
}

pub(crate) fn refuse_param(
    uri: &ChannelUri,
    key: &str,
    value: &str,
    missing: &str,
    remedy: &str,
) -> ChannelError {
    refuse(
        &format!("channel parameter '{key}={value}'"),
        missing,
        remedy,
        uri,
    )
}

fn check_network(uri: &ChannelUri) -> Result<(), ChannelError> {
    if super::params::boolean(uri, keys::TRANSPORT_SECURITY)? == Some(true) {
        let remedy = "remove it or set ats=false";
        return Err(refuse_param(
            uri,
            keys::TRANSPORT_SECURITY,
            "true",
            "transport security is",
            remedy,
        ));
    }
    Ok(())
}

pub(super) fn check_publication(uri: &ChannelUri) -> Result<(), ChannelError> {
    if uri.media() == Media::Udp {
        check_network(uri)?;
    }
    Ok(())
}

pub(super) fn check_subscription(uri: &ChannelUri) -> Result<(), ChannelError> {
    // A spy's channel is that of the publications it watches: it has no sockets, so what is said of them is theirs.
    if uri.media() == Media::Udp && !uri.is_spy() {
        check_network(uri)?;
    }
    Ok(())
}
