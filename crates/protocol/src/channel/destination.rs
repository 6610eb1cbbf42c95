//! What a destination may say: of a publication, which sends to it, or of a subscription, which receives through it.

use std::net::SocketAddr;

use super::{ChannelError, ChannelUri, Media, keys};

/// They belong to the channel that the destination is added to.
const FORBIDDEN: [&str; 5] = [
    keys::MTU,
    keys::RECEIVER_WINDOW,
    keys::SOCKET_RCVBUF,
    keys::SOCKET_SNDBUF,
    keys::RESPONSE_CORRELATION_ID,
];

/// Fails if a publication cannot send to what the channel says. Of a group `interface` and `ttl` count too; what else the
/// channel says has no effect.
pub fn check_send_destination(uri: &ChannelUri) -> Result<(), ChannelError> {
    if uri.is_spy() {
        return Err(ChannelError::invalid(format!(
            "Aeron spies are invalid as send destinations: channel={uri}"
        )));
    }
    check_keys(uri)?;
    let Some(endpoint) = uri.get(keys::ENDPOINT).filter(|_| uri.media() == Media::Udp) else {
        return Err(ChannelError::generic(format!(
            "incorrect URI format for destination: it must be aeron:udp with an endpoint, channel={uri}"
        )));
    };
    if endpoint
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse() == Ok(0_u16))
    {
        return Err(ChannelError::generic(format!(
            "endpoint has port=0 for send destination: it must be the port of the receiver, channel={uri}"
        )));
    }
    Ok(())
}

/// The multicast group that a channel's endpoint is the address of.
pub fn group_address(uri: &ChannelUri) -> Option<SocketAddr> {
    let address: SocketAddr = uri.get(keys::ENDPOINT)?.parse().ok()?;
    address.ip().is_multicast().then_some(address)
}

/// Fails if a subscription cannot receive through what the channel says: a socket, what clients of the driver publish over
/// IPC, or what they send elsewhere.
pub fn check_receive_destination(uri: &ChannelUri) -> Result<(), ChannelError> {
    check_keys(uri)
}

fn check_keys(uri: &ChannelUri) -> Result<(), ChannelError> {
    for key in FORBIDDEN {
        if uri.contains(key) {
            return Err(ChannelError::invalid(format!(
                "destinations must not contain the key: {key}, channel={uri}"
            )));
        }
    }
    if uri.get(keys::CONTROL_MODE) == Some("response") {
        return Err(ChannelError::invalid(format!(
            "destinations may not specify control-mode=response, channel={uri}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    #[test]
    fn what_a_destination_may_say() {
        let check = |text: &str| check_send_destination(&ChannelUri::parse(text).unwrap());
        for text in [
            "aeron:udp?endpoint=localhost:5",
            "aeron:udp?endpoint=[::1]:5|alias=x|group=true|control-mode=manual",
        ] {
            assert_eq!(check(text), Ok(()));
        }
        for (text, code, words) in [
            (
                "aeron-spy:aeron:udp?endpoint=localhost:5",
                ErrorCode::InvalidChannel,
                "spies are invalid",
            ),
            (
                "aeron:udp?endpoint=localhost:5|mtu=1408",
                ErrorCode::InvalidChannel,
                "the key: mtu",
            ),
            (
                "aeron:udp?endpoint=localhost:5|rcv-wnd=8k",
                ErrorCode::InvalidChannel,
                "the key: rcv-wnd",
            ),
            (
                "aeron:udp?endpoint=localhost:5|control-mode=response",
                ErrorCode::InvalidChannel,
                "control-mode=response",
            ),
            (
                "aeron:udp?control=localhost:5",
                ErrorCode::GenericError,
                "incorrect URI format",
            ),
            ("aeron:ipc", ErrorCode::GenericError, "incorrect URI format"),
            (
                "aeron:udp?endpoint=localhost:0",
                ErrorCode::GenericError,
                "port=0 for send destination",
            ),
        ] {
            let error = check(text).unwrap_err();
            assert!(
                error.code == code && error.message.contains(words),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn what_a_destination_of_a_subscription_may_say() {
        let check = |text: &str| check_receive_destination(&ChannelUri::parse(text).unwrap());
        for text in [
            "aeron:udp?endpoint=localhost:0|control=localhost:5|ttl=3|tags=1",
            "aeron:ipc",
            "aeron-spy:aeron:udp?endpoint=localhost:5|tether=false",
        ] {
            assert_eq!(check(text), Ok(()));
        }
        for (text, words) in [
            ("aeron:ipc?mtu=1408", "the key: mtu"),
            (
                "aeron:udp?endpoint=localhost:5|so-rcvbuf=1m",
                "the key: so-rcvbuf",
            ),
            (
                "aeron:udp?endpoint=localhost:5|control-mode=response",
                "control-mode=response",
            ),
        ] {
            let error = check(text).unwrap_err();
            assert!(
                error.code == ErrorCode::InvalidChannel && error.message.contains(words),
                "{text}: {error}"
            );
        }
    }
}
