//! Channels as text: what parses, what is refused and with which words.

use headrace_protocol::ErrorCode;
use headrace_protocol::channel::{CHANNEL_LENGTH_MAX, ChannelUri, ChannelUriBuilder, Media, keys};
use proptest::prelude::*;

fn refusal(text: &str) -> String {
    let error = ChannelUri::parse(text).expect_err(text);
    assert_eq!(error.code, ErrorCode::InvalidChannel, "{text}");
    error.to_string()
}

#[test]
fn parts_of_a_channel() {
    let text = "aeron:udp?endpoint=localhost:40123|alias=what=is?this:|unknown-key=kept";
    let uri = ChannelUri::parse(text).expect("a channel");
    assert_eq!(uri.media(), Media::Udp);
    assert_eq!(uri.get(keys::ENDPOINT), Some("localhost:40123"));
    assert_eq!(uri.get(keys::ALIAS), Some("what=is?this:"));
    assert_eq!(uri.get("unknown-key"), Some("kept"));
    assert_eq!(uri.get("Endpoint"), None);
    assert_eq!(uri.to_string(), text);
    assert_eq!(
        ChannelUri::parse("aeron:ipc").expect("a channel").media(),
        Media::Ipc
    );
    assert!(
        ChannelUri::parse("aeron-spy:aeron:udp?tags=5")
            .expect("a channel")
            .is_spy()
    );
}

#[test]
fn last_of_several_values_wins_and_empty_is_absent() {
    let uri = ChannelUri::parse("aeron:udp?mtu=1k|endpoint=|mtu=2k|linger=").expect("a channel");
    assert_eq!(uri.to_string(), "aeron:udp?mtu=2k");
    for tolerated in ["aeron:udp?", "aeron:ipc?", "aeron:udp?mtu=2k|"] {
        assert!(ChannelUri::parse(tolerated).is_ok(), "{tolerated}");
    }
}

#[test]
fn grammar_failures_name_the_channel() {
    for text in [
        "",
        "udp?endpoint=x:1",
        "AERON:udp",
        "aeron-spy:udp",
        "aeron-spy:aeron-spy:aeron:udp",
    ] {
        let message = refusal(text);
        assert!(
            message.contains("Aeron URIs must start with 'aeron:'") && message.contains(text),
            "{message}"
        );
        assert!(message.starts_with("(-1) invalid channel: "), "{message}");
    }
    for text in [
        "aeron:",
        "aeron:UDP",
        "aeron:tcp?endpoint=a:1",
        "aeron:udp|endpoint=a:1",
    ] {
        let message = refusal(text);
        assert!(
            message.contains("unknown media") && message.contains("in lower case"),
            "{message}"
        );
    }
    assert!(refusal("aeron:udp?=x").contains("empty key not allowed"));
    for text in [
        "aeron:udp?endpoint|x=1",
        "aeron:udp?endpoint",
        "aeron:udp?a=1||b=2",
    ] {
        let message = refusal(text);
        assert!(
            message.contains("invalid end of key at") && message.contains("key=value"),
            "{message}"
        );
    }
    assert!(refusal("aeron-spy:aeron:ipc").contains("only support UDP media"));
}

#[test]
fn longest_channel() {
    let prefix = "aeron:udp?alias=";
    let longest = format!("{prefix}{}", "x".repeat(CHANNEL_LENGTH_MAX - prefix.len()));
    assert!(ChannelUri::parse(&longest).is_ok());
    let too_long = format!("{longest}y");
    let message = refusal(&too_long);
    assert!(message.contains(&longest) && !message.contains(&too_long));
}

#[test]
fn changing_a_channel() {
    let mut uri = ChannelUri::parse("aeron:udp?endpoint=[::1]:0|session-id=tag:7").expect("a channel");
    assert!(uri.has_session_id_tag());
    assert_eq!(uri.remove(keys::SESSION_ID).as_deref(), Some("tag:7"));
    assert!(!uri.has_session_id_tag());
    uri.replace_wildcard_port("[::1]:40123");
    assert_eq!(uri.get(keys::ENDPOINT), Some("[::1]:40123"));
    uri.replace_wildcard_port("[::1]:1");
    assert_eq!(
        uri.get(keys::ENDPOINT),
        Some("[::1]:40123"),
        "the port was explicit"
    );
    uri.put(keys::MTU, "8k").expect("a value");
    uri.put(keys::MTU, "").expect("a value");
    assert!(!uri.contains(keys::MTU));
    for (key, value) in [("", "x"), ("a=b", "x"), ("a|b", "x"), ("a", "x|mtu=1")] {
        assert!(uri.put(key, value).is_err(), "{key}={value}");
    }
}

#[test]
fn initial_position() {
    let mut uri = ChannelUri::new(Media::Ipc);
    uri.set_initial_position(3 * 65536 + 64, i32::MAX, 65536)
        .expect("a position");
    assert_eq!(
        uri.to_string(),
        "aeron:ipc?init-term-id=2147483647|term-id=-2147483646|term-offset=64|term-length=64k"
    );
    for (position, term_length) in [
        (-32, 65536),
        (33, 65536),
        (65536 << 31, 65536),
        (0, 65537),
        (0, -1),
    ] {
        assert!(
            uri.set_initial_position(position, 0, term_length).is_err(),
            "{position} {term_length}"
        );
    }
}

#[test]
fn builder_writes_in_the_usual_order() {
    let uri = ChannelUriBuilder::new(Media::Udp)
        .param(keys::LINGER, "0")
        .size(keys::PUBLICATION_WINDOW, 65536)
        .duration(keys::NAK_DELAY, 1_000)
        .term_length(65536)
        .mtu_length(1408)
        .endpoint("localhost:40123")
        .tags(5, Some(7))
        .initial_position(0, 5, 65536)
        .tagged_session_id(9)
        .ttl(4)
        .control_mode("manual")
        .param("own-key", true)
        .build()
        .expect("a channel");
    assert_eq!(
        uri.to_string(),
        "aeron:udp?tags=5,7|endpoint=localhost:40123|control-mode=manual|mtu=1408|term-length=64k|init-term-id=5\
         |term-id=5|term-offset=0|session-id=tag:9|ttl=4|linger=0|nak-delay=1us|pub-wnd=64k|own-key=true"
    );
}

#[test]
fn builder_refuses_before_a_driver_is_asked() {
    let udp = || ChannelUriBuilder::new(Media::Udp);
    let refused = [
        udp().mtu_length(1409),
        udp().mtu_length(32),
        udp().mtu_length(65536),
        udp().term_length(65535),
        udp().term_length(2 << 30),
        udp().ttl(256),
        udp().ttl(-1),
        udp().control_mode("multi"),
        udp().duration(keys::LINGER, -1),
        udp().param(keys::ALIAS, "a|b"),
        udp().param(keys::TERM_ID, 1),
        udp()
            .param(keys::TERM_ID, 1)
            .param(keys::INITIAL_TERM_ID, 2)
            .param(keys::TERM_OFFSET, 0),
        udp()
            .param(keys::TERM_ID, 2)
            .param(keys::INITIAL_TERM_ID, 2)
            .param(keys::TERM_OFFSET, 33),
        udp().initial_position(33, 0, 65536),
        ChannelUriBuilder::new(Media::Ipc).spy(),
    ];
    for builder in refused {
        assert!(builder.clone().build().is_err(), "{builder:?}");
    }
    assert!(ChannelUriBuilder::with_media_name("tcp").is_err());
    let first = udp().ttl(256).mtu_length(1).build().expect_err("two faults");
    assert!(first.message.contains("ttl"), "the first fault is told: {first}");
}

#[test]
fn the_reference_page_lists_every_key() {
    let page = include_str!("../../../docs/reference/channels.md");
    let listed = |key: &str| page.contains(&format!("`{key}`")) || page.contains(&format!("`{key}="));
    for key in keys::BUILDER_ORDER.into_iter().chain([keys::TRANSPORT_SECURITY]) {
        assert!(listed(key), "{key}");
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC{0,64}") {
        let _ = ChannelUri::parse(&text);
        let _ = ChannelUri::parse(&format!("aeron:udp?{text}"));
    }

    #[test]
    fn what_is_printed_parses_to_the_same(
        is_udp in any::<bool>(),
        params in proptest::collection::vec(("[^=|]{1,12}", "[^|]{1,12}"), 0..8),
    ) {
        let mut uri = ChannelUri::new(if is_udp { Media::Udp } else { Media::Ipc });
        for (key, value) in params {
            uri.put(&key, value).expect("neither holds a separator");
        }
        prop_assert_eq!(ChannelUri::parse(&uri.to_string()), Ok(uri));
    }
}
