//! What the protocol has and this version has not. A channel that asks for one of these is refused, with the
//! parameter's name, the reason and the way out: a stream that silently lacks what was asked for is worse.

use super::{ChannelError, ChannelRole, ChannelUri, Media, keys};
use crate::ErrorCode;
use crate::channel::params::response::ResponseCorrelation;

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

const RESPONSE_CHANNELS: &str = "response channels are";

/// Refuses what no channel may ask for yet.
pub(super) fn check_control_mode(uri: &ChannelUri, role: ChannelRole) -> Result<(), ChannelError> {
    let is_destination = matches!(
        role,
        ChannelRole::SendDestination | ChannelRole::ReceiveDestination
    );
    match uri.get(keys::CONTROL_MODE) {
        Some(mode @ "response") if !is_destination && uri.media() == Media::Udp => {
            let remedy = "remove it and name an endpoint each way";
            Err(refuse_param(
                uri,
                keys::CONTROL_MODE,
                mode,
                RESPONSE_CHANNELS,
                remedy,
            ))
        }
        _ => Ok(()),
    }
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
    check_control_mode(uri, ChannelRole::Publication)?;
    if uri.media() == Media::Udp {
        if let Some(value) = uri.get(keys::RESPONSE_CORRELATION_ID)
            && ResponseCorrelation::from_uri(uri)? != ResponseCorrelation::None
        {
            let remedy = "remove it and name an endpoint each way";
            return Err(refuse_param(
                uri,
                keys::RESPONSE_CORRELATION_ID,
                value,
                RESPONSE_CHANNELS,
                remedy,
            ));
        }
        check_network(uri)?;
    }
    Ok(())
}

pub(super) fn check_subscription(uri: &ChannelUri) -> Result<(), ChannelError> {
    // A spy's channel is that of the publications it watches: it has no sockets, so what is said of them is theirs.
    let role = if uri.is_spy() {
        ChannelRole::Publication
    } else {
        ChannelRole::Subscription
    };
    check_control_mode(uri, role)?;
    if uri.media() == Media::Udp && !uri.is_spy() {
        check_network(uri)?;
    }
    Ok(())
}
