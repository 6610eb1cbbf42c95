//! Addresses, canonical forms and interface selection.

use std::net::{IpAddr, SocketAddr};

use headrace_protocol::ErrorCode;
use headrace_protocol::channel::{
    ChannelDefaults, ChannelError, ChannelRole, ChannelUri, Interface, ResolveError, Resolver, UdpChannel,
    UdpChannelKind, UdpEnvironment,
};

/// Knows `localhost` and a name for a group.
struct Names;

impl Resolver for Names {
    fn resolve(&self, host: &str, port: u16, _param: &str) -> Result<SocketAddr, ResolveError> {
        let ip = match host {
            "localhost" => IpAddr::from([127, 0, 0, 1]),
            "a-group" => IpAddr::from([224, 0, 1, 1]),
            _ => {
                return Err(ResolveError {
                    reason: "no such name".to_owned(),
                });
            }
        };
        Ok(SocketAddr::new(ip, port))
    }
}

fn interface(name: &str, address: &str, prefix_length: u8) -> Interface {
    Interface {
        name: name.to_owned(),
        address: address.parse().expect("an address"),
        prefix_length,
        is_up: true,
        is_loopback: name == "lo",
        is_multicast: name != "lo",
    }
}

fn parse_as(role: ChannelRole, text: &str) -> Result<UdpChannel, ChannelError> {
    let down = Interface {
        is_up: false,
        ..interface("eth2", "10.1.2.4", 30)
    };
    let interfaces = [
        interface("lo", "127.0.0.1", 8),
        interface("lo", "::1", 128),
        interface("eth0", "10.1.2.3", 16),
        interface("eth1", "10.1.2.5", 24),
        down,
        interface("eth0", "fe80::5", 64),
        interface("v6only", "fd00::1", 64),
    ];
    let environment = UdpEnvironment {
        interfaces: &interfaces,
        resolver: &Names,
    };
    UdpChannel::parse(&ChannelUri::parse(text).expect(text), role, &environment, 42)
}

fn publication(text: &str) -> UdpChannel {
    parse_as(ChannelRole::Publication, text).expect(text)
}

fn refused(role: ChannelRole, text: &str, code: ErrorCode, words: &str) {
    let error = parse_as(role, text).expect_err(text);
    assert_eq!(error.code, code, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

#[test]
fn unicast_keeps_names_as_text() {
    let channel = publication("aeron:udp?endpoint=localhost:40123");
    assert_eq!(channel.canonical_form, "UDP-0.0.0.0:0-localhost:40123");
    assert_eq!(
        (channel.local, channel.remote),
        (address("0.0.0.0:0"), address("127.0.0.1:40123"))
    );
    assert_eq!(channel.kind, UdpChannelKind::Unicast);
    let literal = publication("aeron:udp?endpoint=127.0.0.1:40123");
    assert!(!literal.matches_canonical_form(&channel));
    let ip6 = publication("aeron:udp?endpoint=[::1]:40123");
    assert_eq!(ip6.canonical_form, "UDP-[::]:0-[::1]:40123");
}

#[test]
fn control_is_where_a_publication_binds() {
    let channel = publication("aeron:udp?endpoint=localhost:40123|control=localhost:40200");
    assert_eq!(channel.canonical_form, "UDP-localhost:40200-localhost:40123");
    assert_eq!(
        (channel.local, channel.kind),
        (address("127.0.0.1:40200"), UdpChannelKind::Control)
    );
    let any_port = publication("aeron:udp?endpoint=localhost:40123|control=localhost:0");
    assert_eq!(any_port.canonical_form, "UDP-localhost:0-localhost:40123-42");
}

#[test]
fn channels_without_fixed_addresses_are_kept_apart() {
    let subscription =
        parse_as(ChannelRole::Subscription, "aeron:udp?endpoint=localhost:0").expect("a wildcard port");
    assert_eq!(subscription.canonical_form, "UDP-0.0.0.0:0-localhost:0-42");
    let tagged =
        parse_as(ChannelRole::Subscription, "aeron:udp?endpoint=localhost:0|tags=5").expect("tagged");
    assert_eq!(tagged.canonical_form, "UDP-0.0.0.0:0-localhost:0#5");
    let only_tag = publication("aeron:udp?tags=5,7");
    assert_eq!(only_tag.canonical_form, "UDP-0.0.0.0:0-0.0.0.0:0#5");
    assert!(only_tag.is_wildcard() && only_tag.check_original().is_err());
}

#[test]
fn interfaces() {
    let local = |interface: &str| {
        publication(&format!(
            "aeron:udp?endpoint=localhost:40123|interface={interface}"
        ))
        .local
        .to_string()
    };
    assert_eq!(local("10.1.2.3"), "10.1.2.3:0");
    assert_eq!(local("10.1.2.3:7"), "10.1.2.3:7");
    assert_eq!(
        local("10.1.0.0/16"),
        "10.1.2.5:0",
        "the longest network prefix that is up"
    );
    assert_eq!(local("10.1.0.0:9/16"), "10.1.2.5:9");
    assert_eq!(local("0.0.0.0:9"), "0.0.0.0:9");
    assert_eq!(local("127.0.0.1"), "127.0.0.1:0");
    assert_eq!(local("localhost"), "127.0.0.1:0");
    assert_eq!(local("1.2.3.4/0"), "10.1.2.5:0", "loopback comes last");
    assert_eq!(local("{eth0}"), "10.1.2.3:0");
    assert_eq!(local("{eth0}:9"), "10.1.2.3:9");
    let ip6 = publication("aeron:udp?endpoint=[::1]:40123|interface={eth0}");
    assert_eq!(ip6.canonical_form, "UDP-[fe80::5]:0-[::1]:40123");
    let ip6 = publication("aeron:udp?endpoint=[::1]:40123|interface=[fe80::]:8/10");
    assert_eq!(ip6.local.to_string(), "[fe80::5]:8");
}

#[test]
fn interfaces_that_are_not_there() {
    for role in [ChannelRole::Publication, ChannelRole::Subscription] {
        for (interface, words) in [
            ("{does_not_exist}", "unknown interface does_not_exist"),
            ("{v6only}", "no INET addresses found on interface v6only"),
            ("{eth0", "expected format"),
            ("{eth0}x", "expected format"),
            ("{eth0}:x", "expected format"),
            ("10.2.0.0/16", "could not find matching interface=(10.2.0.0/16)"),
            ("10.1.2.4", "could not find matching interface"),
            ("10.1.2.3/33", "invalid prefix length"),
            ("10.1.2.3/x", "invalid prefix length"),
        ] {
            let text = format!("aeron:udp?endpoint=localhost:40123|interface={interface}");
            refused(role, &text, ErrorCode::InvalidChannel, words);
        }
    }
}

#[test]
fn names_that_do_not_resolve() {
    for role in [ChannelRole::Publication, ChannelRole::Subscription] {
        let text = "aeron:udp?endpoint=nowhere.invalid:40123";
        refused(
            role,
            text,
            ErrorCode::UnknownHost,
            "(-9) unknown host: Unable to resolve host=(nowhere.invalid)",
        );
        refused(
            role,
            text,
            ErrorCode::UnknownHost,
            "unresolved - endpoint=nowhere.invalid:40123",
        );
    }
}

#[test]
fn combinations_that_mean_nothing() {
    use ChannelRole::{Publication, Subscription};
    use ErrorCode::{GenericError, InvalidChannel, NotSupported};
    for role in [Publication, Subscription] {
        refused(
            role,
            "aeron:udp?mtu=1408",
            InvalidChannel,
            "must specify endpoint",
        );
        refused(role, "aeron:ipc", InvalidChannel, "only supports UDP media");
        refused(
            role,
            "aeron:udp?endpoint=localhost",
            InvalidChannel,
            "address:port is required for ipv4",
        );
        refused(
            role,
            "aeron:udp?endpoint=[::1]",
            InvalidChannel,
            "[address]:port is required for ipv6",
        );
        refused(
            role,
            "aeron:udp?endpoint=224.0.1.1:40123",
            NotSupported,
            "'endpoint=224.0.1.1:40123'",
        );
        refused(
            role,
            "aeron:udp?endpoint=a-group:40123",
            NotSupported,
            "multicast is not built yet",
        );
        refused(
            role,
            "aeron:udp?endpoint=[ff02::1]:40123",
            NotSupported,
            "multicast is not built yet",
        );
        refused(
            role,
            "aeron:udp?control-mode=manual",
            NotSupported,
            "'control-mode=manual'",
        );
    }
    refused(
        Publication,
        "aeron:udp?endpoint=localhost:0",
        GenericError,
        "endpoint has port=0 for publication",
    );
    refused(
        Publication,
        "aeron:udp?control=localhost:1",
        GenericError,
        "'control' parameter requires",
    );
    let text = "aeron:udp?endpoint=localhost:0|control=localhost:1";
    refused(Subscription, text, NotSupported, "'control=localhost:1'");
}

#[test]
fn tags_find_an_open_endpoint() {
    let existing = publication("aeron:udp?endpoint=localhost:40123|tags=5");
    let by_tag = publication("aeron:udp?tags=5");
    let same = publication("aeron:udp?endpoint=127.0.0.1:40123|tags=5");
    let other = publication("aeron:udp?endpoint=localhost:40123|tags=6");
    let untagged = publication("aeron:udp?endpoint=localhost:40123");
    let elsewhere = publication("aeron:udp?endpoint=localhost:40124|tags=5");
    assert_eq!(by_tag.matches_tag(&existing), Ok(true));
    assert_eq!(
        same.matches_tag(&existing),
        Ok(true),
        "addresses are compared as they resolve"
    );
    assert_eq!(other.matches_tag(&existing), Ok(false));
    assert_eq!(untagged.matches_tag(&existing), Ok(false));
    let error = elsewhere.matches_tag(&existing).expect_err("another port");
    assert!(
        error
            .message
            .contains("matching tag=5 has mismatched endpoint or control"),
        "{error}"
    );
    assert!(untagged.matches_canonical_form(&existing));
    assert!(!other.matches_canonical_form(&existing));
}

#[test]
fn socket_buffers_must_agree_with_the_open_endpoint() {
    let defaults = ChannelDefaults::default();
    let plain = publication("aeron:udp?endpoint=localhost:40123");
    let with = |params: &str| publication(&format!("aeron:udp?endpoint=localhost:40123|{params}"));
    assert_eq!(
        plain.check_socket_buffers(&with("so-sndbuf=64k"), &defaults),
        Ok(())
    );
    assert_eq!(
        with("so-rcvbuf=128k").check_socket_buffers(&plain, &defaults),
        Ok(()),
        "the setting's value"
    );
    let error = with("so-sndbuf=64k")
        .check_socket_buffers(&plain, &defaults)
        .expect_err("not set");
    assert!(
        error
            .message
            .starts_with("so-sndbuf=65536 does not match existing value of OS default"),
        "{error}"
    );
    let error = with("so-rcvbuf=64k")
        .check_socket_buffers(&with("so-rcvbuf=32k"), &defaults)
        .expect_err("differs");
    assert!(
        error
            .message
            .starts_with("so-rcvbuf=65536 does not match existing value of 32768"),
        "{error}"
    );
    assert_eq!(with("so-sndbuf=64k").effective_sndbuf_length(&defaults), 65536);
    assert_eq!(with("so-rcvbuf=0").effective_rcvbuf_length(&defaults), 131_072);
    assert!(
        plain
            .check_mtu(1408, 1024)
            .expect_err("too long")
            .message
            .contains("MTU greater than SO_SNDBUF")
    );
    assert!(plain.check_receiver_window(131_073, 131_072).is_err());
    assert_eq!(plain.check_receiver_window(131_072, 131_072), Ok(()));
}

#[test]
fn the_best_of_several_interfaces() {
    let pick = |interfaces: &[Interface]| {
        let environment = UdpEnvironment {
            interfaces,
            resolver: &Names,
        };
        let uri =
            ChannelUri::parse("aeron:udp?endpoint=localhost:40123|interface=1.2.3.4/0").expect("a channel");
        UdpChannel::parse(&uri, ChannelRole::Publication, &environment, 1)
            .expect("a match")
            .local
            .ip()
            .to_string()
    };
    let loopback = interface("lo", "127.0.0.1", 32);
    let tunnel = Interface {
        is_multicast: false,
        ..interface("tun0", "10.8.0.1", 24)
    };
    let (wide, narrow) = (
        interface("eth0", "10.1.0.1", 8),
        interface("eth1", "10.2.0.1", 16),
    );
    let same = interface("eth2", "10.3.0.1", 16);
    assert_eq!(
        pick(&[loopback.clone(), tunnel.clone()]),
        "10.8.0.1",
        "anything but loopback"
    );
    assert_eq!(
        pick(&[tunnel, wide.clone()]),
        "10.1.0.1",
        "one that can send to groups"
    );
    assert_eq!(
        pick(&[wide, narrow.clone(), loopback.clone()]),
        "10.2.0.1",
        "the longer prefix"
    );
    assert_eq!(pick(&[narrow, same]), "10.2.0.1", "the first of equals");
    assert_eq!(pick(&[loopback]), "127.0.0.1");
}
