//! Channels, as users and other programs write them.

use std::net::SocketAddr;

use headrace_protocol::channel::destination::{check_receive_destination, check_send_destination};
use headrace_protocol::channel::{
    ChannelDefaults, ChannelRole, ChannelUri, ChannelUriBuilder, Interface, PublicationParams, ResolveError,
    Resolver, SubscriptionParams, UdpChannel, UdpChannelKind, UdpEnvironment, units,
};

struct NoNames;

impl Resolver for NoNames {
    fn resolve(&self, _host: &str, port: u16, _param: &str) -> Result<SocketAddr, ResolveError> {
        if port.is_multiple_of(2) {
            Ok(([127, 0, 0, 1], port).into())
        } else {
            Err(ResolveError {
                reason: String::new(),
            })
        }
    }
}

/// Takes a channel as far as a driver does.
pub fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let _ = (units::parse_size(&text), units::parse_duration_ns(&text));
    let Ok(uri) = ChannelUri::parse(&text) else {
        return;
    };
    assert_eq!(ChannelUri::parse(&uri.to_string()), Ok(uri.clone()));
    if let Ok(built) = ChannelUriBuilder::from(uri.clone()).build() {
        assert_eq!(built.params().count(), uri.params().count());
    }
    let defaults = ChannelDefaults::default();
    if let Ok(params) = PublicationParams::from_uri(&uri, &defaults) {
        assert!(params.mtu_length <= params.publication_window_length);
        assert!(params.publication_window_length <= params.term_length / 2);
        if let Some(start) = params.initial_position {
            assert!(start.position(params.term_length) >= 0);
        }
    }
    let _ = SubscriptionParams::from_uri(&uri, &defaults);
    let loopback = Interface {
        index: 1,
        name: "lo".to_owned(),
        address: [127, 0, 0, 1].into(),
        prefix_length: 8,
        is_up: true,
        is_loopback: true,
        is_multicast: false,
    };
    let environment = UdpEnvironment {
        interfaces: &[loopback],
        resolver: &NoNames,
    };
    let _ = (check_send_destination(&uri), check_receive_destination(&uri));
    for role in [
        ChannelRole::Publication,
        ChannelRole::Subscription,
        ChannelRole::SendDestination,
        ChannelRole::ReceiveDestination,
    ] {
        if let Ok(channel) = UdpChannel::parse(&uri, role, &environment, 1) {
            let kind = channel.kind;
            // What a channel with destinations has for an endpoint means nothing.
            let is_group = channel.remote.ip().is_multicast() && !kind.has_destinations();
            assert!(channel.canonical_form.starts_with("UDP-") && is_group == kind.group().is_some());
            let may_have_destinations = match kind {
                UdpChannelKind::Dynamic => role == ChannelRole::Publication,
                UdpChannelKind::Manual => {
                    matches!(role, ChannelRole::Publication | ChannelRole::Subscription)
                }
                _ => true,
            };
            assert!(may_have_destinations, "{role:?} of {kind:?}");
        }
    }
}

/// Channels of every kind, with every parameter.
pub fn seeds() -> Vec<Vec<u8>> {
    [
        "aeron:ipc",
        "aeron:ipc?term-length=64k|alias=local",
        "aeron:udp?endpoint=localhost:40124|control=127.0.0.1:0|interface=127.0.0.0/8|tags=5,7|so-sndbuf=2m",
        "aeron:udp?endpoint=[::1%lo]:40124|interface={lo}:9|group=true|rejoin=false|reliable=false|tether=false",
        "aeron:udp?endpoint=127.0.0.1:1|mtu=8k|term-length=128k|init-term-id=3|term-id=4|term-offset=64|pub-wnd=32k",
        "aeron:udp?endpoint=127.0.0.1:1|session-id=tag:7|linger=5s|sparse=false|eos=false|max-resend=16|stream-id=9",
        "aeron:udp?endpoint=127.0.0.1:1|session-id=-9|rcv-wnd=256k|nak-delay=10us|cc=static|so-rcvbuf=0|ttl=0",
        "aeron:udp?endpoint=224.0.1.1:40456|interface=10.0.0.0/8|ttl=8|fc=tagged,g:1001/3,t:10s|gtag=1001",
        "aeron:udp?control=localhost:40124|control-mode=dynamic|ssc=true|channel-snd-ts-offset=reserved",
        "aeron:udp?endpoint=224.0.1.2:0|control-mode=manual|tags=5",
        "aeron:udp?endpoint=[ff02::1]:40456|control=localhost:40125|control-mode=dynamic",
        "aeron:udp?control-mode=response|response-correlation-id=prototype|response-endpoint=localhost:1|ats=true",
        "aeron-spy:aeron:udp?tags=5|untethered-window-limit-timeout=1s|untethered-linger-timeout=0",
        "16m",
        "200ms",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}
