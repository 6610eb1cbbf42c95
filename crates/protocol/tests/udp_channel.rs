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
            "an-even-group" => IpAddr::from([224, 0, 1, 2]),
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
        index: name.bytes().map(u32::from).sum(),
        name: name.to_owned(),
        address: address.parse().expect("an address"),
        prefix_length,
        is_up: true,
        is_loopback: name == "lo",
        is_multicast: name != "lo",
    }
}

fn parse_as(role: ChannelRole, text: &str) -> Result<UdpChannel, ChannelError> {
    parse_with_id(role, text, 42)
}

fn parse_with_id(role: ChannelRole, text: &str, unique_id: i64) -> Result<UdpChannel, ChannelError> {
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
    UdpChannel::parse(
        &ChannelUri::parse(text).expect(text),
        role,
        &environment,
        unique_id,
    )
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
fn only_the_first_parameter_follows_a_question_mark() {
    let (text, words) = (
        "aeron:udp?endpoint=localhost:40123?mtu=1408",
        "each other one a '|'",
    );
    refused(ChannelRole::Publication, text, ErrorCode::InvalidChannel, words);
}

#[test]
fn names_that_do_not_resolve() {
    for role in [ChannelRole::Publication, ChannelRole::Subscription] {
        refused(
            role,
            "aeron:udp?endpoint=localhost:40123|interface=eth9",
            ErrorCode::UnknownHost,
            "an interface is given by its address, or by its name in braces: interface={eth9}",
        );
        let text = "aeron:udp?endpoint=nowhere.invalid:40123";
        for words in [
            "(-9) unknown host: Unable to resolve host=(nowhere.invalid)",
            "unresolved - endpoint=nowhere.invalid:40123",
        ] {
            refused(role, text, ErrorCode::UnknownHost, words);
        }
    }
}

#[test]
fn combinations_that_mean_nothing() {
    use ChannelRole::{Publication, ReceiveDestination, Subscription};
    use ErrorCode::{GenericError, InvalidChannel};
    for (text, words) in [
        ("aeron:udp?mtu=1408", "must specify endpoint"),
        ("aeron:ipc", "only supports UDP media"),
        (
            "aeron:udp?endpoint=localhost",
            "address:port is required for ipv4",
        ),
        ("aeron:udp?endpoint=localhost", "such as localhost:40123"),
        ("aeron:udp?endpoint=[::1]", "[address]:port is required for ipv6"),
        (
            "aeron:udp?endpoint=localhost:40123?mtu=1408",
            "each other one a '|'",
        ),
        (
            "aeron:udp?endpoint=224.0.1.1:40123|control-mode=response",
            "a stream of responses has one receiver",
        ),
    ] {
        refused(Publication, text, InvalidChannel, words);
        refused(Subscription, text, InvalidChannel, words);
    }
    for text in ["aeron:udp?tags=5", "aeron:udp?control-mode=manual"] {
        refused(
            ReceiveDestination,
            text,
            InvalidChannel,
            "must specify endpoint or control",
        );
    }
    refused(
        ReceiveDestination,
        "aeron:udp?control=localhost:0",
        GenericError,
        "control has port=0",
    );
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
    refused(
        Publication,
        "aeron:udp?endpoint=localhost:1|control-mode=dynamic",
        InvalidChannel,
        "explicit control expected with dynamic control mode",
    );
    refused(
        Subscription,
        "aeron:udp?control=localhost:0",
        GenericError,
        "control has port=0 for subscription",
    );
}

#[test]
fn publications_with_several_destinations() {
    let dynamic = publication("aeron:udp?control=localhost:24325|control-mode=dynamic");
    assert_eq!(dynamic.kind, UdpChannelKind::Dynamic);
    assert!(dynamic.kind.has_group_semantics());
    assert_eq!(dynamic.local, "127.0.0.1:24325".parse().unwrap());
    assert_eq!(dynamic.canonical_form, "UDP-localhost:24325-0.0.0.0:0");
    let same = publication("aeron:udp?control=localhost:24325|control-mode=dynamic");
    assert!(dynamic.matches_canonical_form(&same));

    // Without an address nor a tag there is nothing to share by.
    let manual = || publication("aeron:udp?control-mode=manual");
    assert_eq!(manual().kind, UdpChannelKind::Manual);
    assert_eq!(manual().check_original(), Ok(()));
    let other = parse_with_id(ChannelRole::Publication, "aeron:udp?control-mode=manual", 43).unwrap();
    assert!(!manual().matches_canonical_form(&other));
    let tagged = publication("aeron:udp?control-mode=manual|tags=5");
    assert!(
        publication("aeron:udp?tags=5")
            .matches_tag(&tagged, &[5])
            .unwrap()
    );
    let error = publication("aeron:udp?control=localhost:1|control-mode=dynamic|tags=5")
        .matches_tag(&tagged, &[5])
        .expect_err("another mode");
    assert!(
        error
            .message
            .contains("matching tag=5 has mismatched control-mode"),
        "{error}"
    );
    // An endpoint has no meaning there, so its port may be any.
    publication("aeron:udp?endpoint=localhost:0|control-mode=manual");
}

#[test]
fn streams_of_responses_go_to_no_address_that_the_channel_names() {
    let text = "aeron:udp?control=localhost:24325|control-mode=response";
    for role in [ChannelRole::Publication, ChannelRole::Subscription] {
        let channel = parse_as(role, text).expect(text);
        assert_eq!(channel.kind, UdpChannelKind::Response);
        assert!(!channel.kind.has_peer() && !channel.kind.has_group_semantics());
        assert_eq!(channel.local, "127.0.0.1:24325".parse().unwrap());
        assert_eq!(channel.remote, "0.0.0.0:0".parse().unwrap());
        assert_eq!(channel.canonical_form, "UDP-localhost:24325-0.0.0.0:0");
    }
    let responses = publication(text);
    let dynamic = publication("aeron:udp?control=localhost:24325|control-mode=dynamic");
    assert_eq!(responses.check_carries_responses(&responses), Ok(()));
    assert_eq!(
        publication("aeron:udp?tags=5").check_carries_responses(&responses),
        Ok(())
    );
    for (one, other) in [(&responses, &dynamic), (&dynamic, &responses)] {
        let error = one.check_carries_responses(other).expect_err("one of the two");
        assert!(
            error.message.contains(&other.uri) && error.message.contains(&one.uri),
            "{error}"
        );
    }
    // Each without an address is a channel of its own.
    let anywhere =
        |id| parse_with_id(ChannelRole::Publication, "aeron:udp?control-mode=response", id).unwrap();
    assert_eq!(anywhere(1).check_original(), Ok(()));
    assert!(!anywhere(1).matches_canonical_form(&anywhere(2)));
}

#[test]
fn subscriptions_may_say_where_their_sender_listens() {
    let channel = parse_as(
        ChannelRole::Subscription,
        "aeron:udp?endpoint=localhost:40123|control=localhost:24325|control-mode=dynamic",
    )
    .expect("a receiver of many");
    assert_eq!(
        channel.kind,
        UdpChannelKind::Control,
        "the sender's mode has no meaning here"
    );
    assert!(!channel.kind.has_group_semantics());
    assert_eq!(channel.remote, "127.0.0.1:40123".parse().unwrap());
    assert_eq!(channel.local, "127.0.0.1:24325".parse().unwrap());
    let any = parse_as(ChannelRole::Subscription, "aeron:udp?control=[::1]:24325").expect("any port");
    assert_eq!(any.remote, "[::]:0".parse().unwrap());
    assert!(any.canonical_form.starts_with("UDP-[::1]:24325-[::]:0"));
}

#[test]
fn subscriptions_that_receive_through_destinations_are_shared_by_tag_alone() {
    let subscription = |text: &str, id| parse_with_id(ChannelRole::Subscription, text, id).expect(text);
    let manual = subscription("aeron:udp?control-mode=manual|endpoint=localhost:40123", 1);
    assert_eq!(manual.kind, UdpChannelKind::Manual);
    let again = subscription("aeron:udp?control-mode=manual|endpoint=localhost:40123", 2);
    let plain = subscription("aeron:udp?endpoint=localhost:40123", 3);
    for other in [&again, &plain] {
        assert!(!manual.matches_canonical_form(other) && !other.matches_canonical_form(&manual));
    }
    let tagged = subscription("aeron:udp?control-mode=manual|tags=5", 4);
    let by_tag = subscription("aeron:udp?tags=5", 5);
    assert_eq!(by_tag.matches_tag(&tagged, &[5]), Ok(true));
}

#[test]
fn equal_destinations_of_a_subscription_are_alike() {
    let destination = |text: &str, id| parse_with_id(ChannelRole::ReceiveDestination, text, id).expect(text);
    let any_port = "aeron:udp?endpoint=127.0.0.1:0|control-mode=manual|tags=7";
    let first = destination(any_port, 1);
    assert_eq!(first.kind, UdpChannelKind::Unicast, "a mode has no meaning here");
    assert_eq!(first.canonical_form, destination(any_port, 2).canonical_form);
    let dynamic = destination("aeron:udp?endpoint=localhost:0|control=localhost:24325", 3);
    assert_eq!(dynamic.kind, UdpChannelKind::Control);
    assert_ne!(dynamic.canonical_form, first.canonical_form);
}

#[test]
fn a_destination_whose_name_has_no_address_yet_is_taken() {
    let known = parse_as(ChannelRole::SendDestination, "aeron:udp?endpoint=localhost:5").unwrap();
    assert_eq!(known.remote, "127.0.0.1:5".parse().unwrap());
    let unknown = parse_as(ChannelRole::SendDestination, "aeron:udp?endpoint=no-such-host:5").unwrap();
    assert!(unknown.remote.ip().is_unspecified());
    assert_eq!(unknown.endpoint.as_deref(), Some("no-such-host:5"));
}

#[test]
fn tags_find_an_open_endpoint() {
    let existing = publication("aeron:udp?endpoint=localhost:40123|tags=5");
    let by_tag = publication("aeron:udp?tags=5");
    let same = publication("aeron:udp?endpoint=127.0.0.1:40123|tags=5");
    let other = publication("aeron:udp?endpoint=localhost:40123|tags=6");
    let untagged = publication("aeron:udp?endpoint=localhost:40123");
    let elsewhere = publication("aeron:udp?endpoint=localhost:40124|tags=5");
    assert_eq!(by_tag.matches_tag(&existing, &[5]), Ok(true));
    let why = "addresses are compared as they resolve";
    assert_eq!(same.matches_tag(&existing, &[5]), Ok(true), "{why}");
    assert_eq!(other.matches_tag(&existing, &[5]), Ok(false));
    assert_eq!(untagged.matches_tag(&existing, &[5]), Ok(false));
    let error = elsewhere.matches_tag(&existing, &[5]).expect_err("another port");
    assert!(
        error
            .message
            .contains("matching tag=5 has mismatched endpoint or control"),
        "{error}"
    );
    assert_eq!(by_tag.matches_tag(&untagged, &[4, 5]), Ok(true), "as it joined");
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

/// A channel to a group, its control address, and the address of its interface.
const GROUPS: &[[&str; 3]] = &[
    ["endpoint=224.0.1.1:40123", "224.0.1.2:40123", "10.1.2.5:0"],
    ["endpoint=a-group:40123", "224.0.1.2:40123", "10.1.2.5:0"],
    ["endpoint=239.0.1.255:7", "239.0.1.0:7", "10.1.2.5:0"],
    [
        "endpoint=224.0.1.1:40123|interface=127.0.0.1",
        "224.0.1.2:40123",
        "127.0.0.1:0",
    ],
    [
        "endpoint=224.0.1.1:40123|interface=localhost:24/32",
        "224.0.1.2:40123",
        "127.0.0.1:24",
    ],
    [
        "endpoint=224.0.1.1:40123|interface=10.1.2.0/28",
        "224.0.1.2:40123",
        "10.1.2.5:0",
    ],
    [
        "endpoint=224.0.1.1:40123|interface={eth0}",
        "224.0.1.2:40123",
        "10.1.2.3:0",
    ],
    [
        "endpoint=224.0.1.1:40123|interface=0.0.0.0",
        "224.0.1.2:40123",
        "10.1.2.5:0",
    ],
    // The group brings its own control address.
    [
        "endpoint=224.0.1.1:40123|control=nowhere.invalid:1",
        "224.0.1.2:40123",
        "10.1.2.5:0",
    ],
    ["endpoint=[ff02::1]:9", "[ff02::2]:9", "[fe80::5]:0"],
    ["endpoint=[ff02::1ff]:9", "[ff02::100]:9", "[fe80::5]:0"],
    [
        "endpoint=[ff02::1]:9|interface={v6only}",
        "[ff02::2]:9",
        "[fd00::1]:0",
    ],
];

#[test]
fn a_group_has_two_addresses_and_an_interface() {
    for [text, control, interface] in GROUPS {
        for role in [ChannelRole::Publication, ChannelRole::Subscription] {
            let channel = parse_as(role, &format!("aeron:udp?{text}")).expect(text);
            let group = channel.kind.group().expect(text);
            assert!(channel.kind.has_group_semantics(), "{text}");
            assert_eq!(group.control, address(control), "{text}");
            assert_eq!(channel.local, address(interface), "{text}");
            assert_eq!(group.interface_address, channel.local.ip(), "{text}");
            assert_ne!(group.interface_index, 0, "{text}");
            assert_eq!(group.ttl, None, "{text}");
            let canonical_form = format!("UDP-{interface}-{}", channel.remote);
            assert_eq!(channel.canonical_form, canonical_form, "{text}");
        }
    }
    let unicast = publication("aeron:udp?endpoint=localhost:40123");
    assert!(!unicast.kind.has_group_semantics() && unicast.kind.group().is_none());
}

#[test]
fn groups_that_cannot_be() {
    use ErrorCode::{GenericError, InvalidChannel};
    for role in [ChannelRole::Publication, ChannelRole::Subscription] {
        for (text, code, words) in [
            (
                "endpoint=224.0.1.2:40123",
                InvalidChannel,
                "Multicast data address must be odd",
            ),
            (
                "endpoint=an-even-group:40123",
                InvalidChannel,
                "Multicast data address must be odd",
            ),
            (
                "endpoint=[ff02::10]:40123",
                InvalidChannel,
                "Multicast data address must be odd",
            ),
            ("endpoint=224.0.1.1:0", GenericError, "endpoint has port=0 for"),
            (
                "endpoint=224.0.1.1:1|interface=10.2.0.0/16",
                InvalidChannel,
                "could not find matching interface=(10.2.0.0/16)",
            ),
            (
                "endpoint=[ff02::1]:1|interface=10.1.0.0/0",
                InvalidChannel,
                "could not find matching interface=(10.1.0.0/0)",
            ),
            (
                "endpoint=224.0.1.1:1|interface={does_not_exist}",
                InvalidChannel,
                "unknown interface does_not_exist",
            ),
            (
                "endpoint=224.0.1.1:1|interface={v6only}",
                InvalidChannel,
                "no INET addresses found on interface v6only",
            ),
            (
                "endpoint=224.0.1.1:1|ttl=256",
                GenericError,
                "ttl=256 is not in range 0 to 255",
            ),
            (
                "endpoint=224.0.1.1:1|ttl=-1",
                GenericError,
                "ttl=-1 is not in range 0 to 255",
            ),
            (
                "endpoint=localhost:1|ttl=x",
                GenericError,
                "could not parse ttl=x in URI",
            ),
        ] {
            refused(role, &format!("aeron:udp?{text}"), code, words);
        }
    }
}

#[test]
fn the_time_to_live_of_a_group_is_the_channels() {
    for ttl in [0, 1, 255] {
        let channel = publication(&format!("aeron:udp?endpoint=224.0.1.1:1|ttl={ttl}"));
        assert_eq!(channel.kind.group().and_then(|group| group.ttl), Some(ttl));
    }
    let unicast = publication("aeron:udp?endpoint=localhost:1|ttl=9");
    assert_eq!(unicast.kind, UdpChannelKind::Unicast);
}

#[test]
fn without_a_word_on_it_a_group_is_reached_through_the_best_interface() {
    let pick = |interfaces: &[Interface]| {
        let environment = UdpEnvironment {
            interfaces,
            resolver: &Names,
        };
        let uri = ChannelUri::parse("aeron:udp?endpoint=224.0.1.1:40123").expect("a channel");
        UdpChannel::parse(&uri, ChannelRole::Subscription, &environment, 1)
            .map(|channel| channel.local.ip().to_string())
    };
    let loopback = interface("lo", "127.0.0.1", 8);
    let tunnel = Interface {
        is_multicast: false,
        ..interface("tun0", "10.8.0.1", 24)
    };
    let down = Interface {
        is_up: false,
        ..interface("eth1", "10.2.0.1", 24)
    };
    let card = interface("eth0", "10.1.0.1", 8);
    assert_eq!(
        pick(&[loopback.clone(), tunnel.clone(), down.clone()]),
        Ok("127.0.0.1".to_owned()),
        "a tunnel carries no groups"
    );
    assert_eq!(pick(&[loopback, tunnel.clone(), card]), Ok("10.1.0.1".to_owned()));
    let error = pick(&[tunnel, down]).expect_err("none");
    assert!(
        error
            .message
            .contains("could not find matching interface=(any that is up"),
        "{error}"
    );
}

proptest::proptest! {
    #[test]
    fn the_control_address_of_a_group_differs_from_its_data_address_in_the_last_byte_alone(
        first in 224_u8..=239,
        middle in proptest::array::uniform2(proptest::num::u8::ANY),
        last in proptest::num::u8::ANY,
        port in 1_u16..,
    ) {
        let [second, third] = middle;
        let text = format!("aeron:udp?endpoint={first}.{second}.{third}.{last}:{port}");
        let parsed = parse_as(ChannelRole::Publication, &text);
        if last % 2 == 0 {
            proptest::prop_assert_eq!(parsed.expect_err("even").code, ErrorCode::InvalidChannel);
        } else {
            let channel = parsed.expect("odd");
            let control = channel.kind.group().expect("a group").control;
            let expected = SocketAddr::from(([first, second, third, last.wrapping_add(1)], port));
            proptest::prop_assert_eq!(control, expected);
            proptest::prop_assert_eq!(channel.remote, SocketAddr::from(([first, second, third, last], port)));
        }
    }
}
