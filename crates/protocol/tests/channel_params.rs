//! Typed parameters: defaults, rules, codes and words.

use headrace_protocol::ErrorCode;
use headrace_protocol::channel::{
    ChannelDefaults, ChannelError, ChannelUri, CongestionControlKind, ExistingPublication, FlowControlParam,
    FlowControlStrategy, GroupConsideration, InitialPosition, PublicationParams, ResponseCorrelation,
    SessionIdParam, SubscriptionParams, Tags, TimestampOffset,
};

const UDP: &str = "aeron:udp?endpoint=localhost:40123";

fn uri(text: &str) -> ChannelUri {
    ChannelUri::parse(text).expect(text)
}

fn publication(params: &str) -> Result<PublicationParams, ChannelError> {
    PublicationParams::from_uri(&uri(&format!("{UDP}|{params}")), &ChannelDefaults::default())
}

fn subscription(params: &str) -> Result<SubscriptionParams, ChannelError> {
    SubscriptionParams::from_uri(&uri(&format!("{UDP}|{params}")), &ChannelDefaults::default())
}

fn ipc_publication(params: &str) -> Result<PublicationParams, ChannelError> {
    PublicationParams::from_uri(&uri(&format!("aeron:ipc?{params}")), &ChannelDefaults::default())
}

#[test]
fn defaults_of_publications() {
    let params = publication("").expect("defaults");
    assert_eq!((params.mtu_length, params.term_length), (1408, 16 << 20));
    assert_eq!(params.publication_window_length, 8 << 20);
    assert!(!params.has_mtu_length && !params.has_term_length && params.session_id.is_none());
    assert!(params.is_sparse && params.signals_end_of_stream);
    assert_eq!((params.max_resend, params.linger_timeout_ns), (16, 5_000_000_000));
    assert_eq!(params.untethered_linger_timeout_ns, 5_000_000_000);
    let ipc = ipc_publication("").expect("defaults");
    assert_eq!((ipc.mtu_length, ipc.term_length), (1408, 64 << 20));
}

#[test]
fn every_built_parameter_of_publications() {
    let params = publication(
        "tags=5,7|session-id=-9|mtu=8k|term-length=128k|init-term-id=3|term-id=4|term-offset=64|pub-wnd=32k\
         |linger=1ms|sparse=false|eos=false|max-resend=256|stream-id=1001|so-sndbuf=2m|so-rcvbuf=0\
         |untethered-window-limit-timeout=1s|untethered-linger-timeout=2s|untethered-resting-timeout=3s\
         |response-endpoint=localhost:1|alias=prices|ttl=0|ssc=false|ats=false|response-correlation-id=-1\
         |channel-snd-ts-offset=-1|control-mode=none|interface=127.0.0.1|group=true|rejoin=false|cc=cubic",
    )
    .expect("all are built or off, or belong to subscriptions");
    assert_eq!(
        params.tags,
        Tags {
            channel: Some(5),
            entity: Some(7)
        }
    );
    assert_eq!(params.session_id, Some(SessionIdParam::Number(-9)));
    assert_eq!((params.mtu_length, params.term_length), (8192, 131_072));
    assert!(params.has_mtu_length && params.has_term_length);
    let start = InitialPosition {
        initial_term_id: 3,
        term_id: 4,
        term_offset: 64,
    };
    assert_eq!(params.initial_position, Some(start));
    assert_eq!(start.position(params.term_length), 131_072 + 64);
    assert_eq!(
        (params.publication_window_length, params.linger_timeout_ns),
        (32768, 1_000_000)
    );
    assert!(!params.is_sparse && !params.signals_end_of_stream);
    assert_eq!((params.max_resend, params.stream_id), (256, Some(1001)));
    assert_eq!(
        (
            params.untethered_window_limit_timeout_ns,
            params.untethered_linger_timeout_ns,
            params.untethered_resting_timeout_ns
        ),
        (1_000_000_000, 2_000_000_000, 3_000_000_000)
    );
    assert_eq!(params.response_endpoint.as_deref(), Some("localhost:1"));
    assert_eq!(params.alias.as_deref(), Some("prices"));
    assert_eq!(params.check_stream_id(1001), Ok(()));
    assert!(
        params
            .check_stream_id(1002)
            .expect_err("another stream")
            .message
            .contains("does not match provided")
    );
}

#[test]
fn every_built_parameter_of_subscriptions() {
    let params = subscription(
        "tags=5|session-id=9|reliable=false|sparse=false|tether=false|group=true|rejoin=false|rcv-wnd=256k\
         |nak-delay=10us|stream-id=7|cc=static|untethered-window-limit-timeout=1s|mtu=1|fc=max|ssc=true",
    )
    .expect("all are built, or belong to publications");
    assert_eq!((params.session_id, params.stream_id), (Some(9), Some(7)));
    assert!(!params.is_reliable && !params.is_sparse && !params.is_tethered && !params.is_rejoin);
    assert_eq!(params.group, GroupConsideration::ForceTrue);
    assert_eq!(
        (params.receiver_window_length, params.nak_delay_ns),
        (262_144, Some(10_000))
    );
    assert_eq!(
        params.untethered_linger_timeout_ns, 1_000_000_000,
        "follows the window limit timeout"
    );
    let group = |text: &str| subscription(text).expect(text).group;
    assert_eq!(group("group=infer"), GroupConsideration::Infer);
    assert_eq!(group("group=perhaps"), GroupConsideration::ForceFalse);
    assert!(GroupConsideration::Infer.is_group(true) && !GroupConsideration::Infer.is_group(false));
}

use ErrorCode::{GenericError, InvalidChannel};

/// Parameters, the code they are refused with, and words of the message.
const REFUSED_PUBLICATIONS: &[(&str, ErrorCode, &str)] = &[
    ("mtu=32", GenericError, "mtuLength=32 <= HEADER_LENGTH"),
    ("mtu=65536", GenericError, "> MAX_UDP_PAYLOAD_LENGTH"),
    ("mtu=1400", GenericError, "not a multiple of FRAME_ALIGNMENT"),
    (
        "mtu=60000|mtu=59968|term-length=64k",
        InvalidChannel,
        "max message length",
    ),
    ("mtu=x", GenericError, "could not parse mtu=x in URI"),
    (
        "term-length=32k",
        GenericError,
        "term length less than min length of 65536",
    ),
    (
        "term-length=2g",
        GenericError,
        "term length more than max length of 1073741824",
    ),
    ("term-length=65537", GenericError, "not a power of 2"),
    ("term-id=1", GenericError, "params must be used as a complete set"),
    (
        "term-id=1|init-term-id=2|term-offset=0",
        GenericError,
        "comes before",
    ),
    (
        "term-id=1|init-term-id=1|term-offset=33",
        GenericError,
        "not a multiple of FRAME_ALIGNMENT",
    ),
    (
        "term-id=1|init-term-id=1|term-offset=-32",
        GenericError,
        "out of range",
    ),
    (
        "term-id=1|init-term-id=1|term-offset=131072|term-length=64k",
        GenericError,
        "> term-length",
    ),
    (
        "pub-wnd=1024",
        GenericError,
        "pub-wnd=1024 cannot be less than the mtu=1408",
    ),
    (
        "pub-wnd=64k|term-length=64k",
        GenericError,
        "must not exceed half the term-length=65536",
    ),
    (
        "max-resend=0",
        GenericError,
        "invalid max-resend=0, must be > 0 and <= 256",
    ),
    ("max-resend=257", GenericError, "invalid max-resend=257"),
    ("eos=yes", GenericError, "could not parse eos=yes"),
    ("linger=5m", GenericError, "should end with: s, ms, us, or ns."),
    ("session-id=0x10", GenericError, "could not parse session-id=0x10"),
    (
        "session-id=tag:x",
        GenericError,
        "could not parse session-id=tag:x",
    ),
    ("tags=x", InvalidChannel, "could not parse channel tag string"),
    ("tags=1,-1", InvalidChannel, "reserved"),
    ("tags=1,x", GenericError, "could not parse tags=1,x"),
    (
        "response-correlation-id=-2",
        GenericError,
        "must be a number greater than or equal to -1, or 'prototype'",
    ),
    ("stream-id=x", GenericError, "could not parse stream-id=x"),
];

#[test]
fn values_out_of_range_are_refused_with_the_words_peers_know() {
    for &(params, code, words) in REFUSED_PUBLICATIONS {
        let error = publication(params).expect_err(params);
        assert_eq!(error.code, code, "{params}: {error}");
        assert!(error.message.contains(words), "{params}: {error}");
        assert!(
            error.message.contains("aeron:udp?endpoint="),
            "the channel is named: {error}"
        );
    }
    for (params, words) in [
        ("rcv-wnd=4g", "out of range"),
        ("nak-delay=x", "could not parse nak-delay=x"),
        ("tether=maybe", "must be true or false"),
        ("session-id=tag:7", "could not parse session-id"),
        (
            "cc=fast",
            "unsupported congestion control : cc=fast, must be static or cubic",
        ),
        ("gtag=1.5", "could not parse gtag=1.5"),
    ] {
        let error = subscription(params).expect_err(params);
        assert_eq!(error.code, ErrorCode::GenericError, "{params}: {error}");
        assert!(error.message.contains(words), "{params}: {error}");
    }
}

#[test]
fn what_is_no_number_is_refused_with_the_rule() {
    for (param, rule) in [
        (
            "session-id=x",
            "must be a whole number from -2147483648 to 2147483647",
        ),
        (
            "session-id=2147483648",
            "must be a whole number from -2147483648 to 2147483647",
        ),
        (
            "session-id=tag:x",
            "must be a whole number, or tag: and the entity tag of a publication",
        ),
        ("stream-id=x", "must be a whole number from -2147483648 to"),
        ("max-resend=x", "must be a whole number from 1 to 256"),
        (
            "init-term-id=1|term-id=1|term-offset=x",
            "must be a multiple of 32 from 0 to the term length",
        ),
        (
            "init-term-id=x|term-id=2|term-offset=0",
            "must be a whole number from -2147483648 to",
        ),
        (
            "channel-snd-ts-offset=x",
            "must be reserved, or a number of bytes from the start of the payload",
        ),
        (
            "init-term-id=1|term-id=1|term-offset=5",
            "not a multiple of FRAME_ALIGNMENT=32",
        ),
    ] {
        let error = publication(param).expect_err(param);
        assert!(error.message.contains(rule), "{param}: {error}");
    }
    let error = subscription("gtag=x").expect_err("gtag");
    let rule = "must be a whole number of at most 63 bits and a sign";
    assert!(error.message.contains(rule), "{error}");
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    let param = "ats=true";
    let check = |param: &str, error: ChannelError| {
        assert_eq!(error.code, ErrorCode::GenericError, "{param}: {error}");
        let what = format!("channel parameter '{param}' is not supported by this version of Headrace: ");
        assert!(error.message.starts_with(&what), "{error}");
        assert!(
            error.message.contains(" not built yet; ") && error.message.contains("channel=aeron:"),
            "{error}"
        );
    };
    check(param, publication(param).expect_err(param));
    check(param, subscription(param).expect_err(param));
    let spy = uri("aeron-spy:aeron:udp?endpoint=localhost:40123");
    let error = PublicationParams::from_uri(&spy, &ChannelDefaults::default()).expect_err("a spy");
    assert_eq!(error.code, ErrorCode::InvalidChannel);
    assert!(error.message.contains("spies are invalid"));
}

#[test]
fn timestamps_have_a_place_in_the_payload_or_in_the_reserved_value() {
    let in_frame = |offset: Option<TimestampOffset>| offset.map(TimestampOffset::in_frame);
    for (value, expected) in [
        ("reserved", Some(24)),
        ("-8", Some(24)),
        ("0", Some(32)),
        ("13", Some(45)),
        ("2147483647", Some(32 + 2_147_483_647)),
        ("-1", None),
        ("-16", None),
        ("-2147483648", None),
    ] {
        let sent = publication(&format!("channel-snd-ts-offset={value}")).expect(value);
        assert_eq!(in_frame(sent.send_timestamp), expected, "{value}");
        let received = subscription(&format!("channel-rcv-ts-offset={value}")).expect(value);
        let stamps = received.receive_timestamps;
        assert_eq!(
            (in_frame(stamps.channel), stamps.media),
            (expected, None),
            "{value}"
        );
        let received = subscription(&format!("media-rcv-ts-offset={value}")).expect(value);
        assert_eq!(in_frame(received.receive_timestamps.media), expected, "{value}");
    }
    for value in ["Reserved", "8k", "2147483648", "1.5"] {
        for key in [
            "channel-snd-ts-offset",
            "channel-rcv-ts-offset",
            "media-rcv-ts-offset",
        ] {
            let param = format!("{key}={value}");
            // Of the other side, too: one channel serves both.
            for error in [
                publication(&param).expect_err(&param),
                subscription(&param).expect_err(&param),
            ] {
                assert_eq!(error.code, ErrorCode::GenericError, "{error}");
                assert!(
                    error.message.contains(&format!("could not parse {param}")),
                    "{error}"
                );
            }
        }
    }
    let both = "channel-snd-ts-offset=reserved|channel-rcv-ts-offset=reserved";
    assert!(publication(both).is_ok() && subscription(both).is_ok());
}

#[test]
fn timestamps_of_one_subscription_do_not_overlap() {
    for (media, channel, is_right) in [
        ("0", "8", true),
        ("8", "0", true),
        ("reserved", "0", true),
        ("0", "7", false),
        ("7", "0", false),
        ("reserved", "reserved", false),
        ("-1", "-1", true),
    ] {
        let params = format!("media-rcv-ts-offset={media}|channel-rcv-ts-offset={channel}");
        match subscription(&params) {
            Ok(_) => assert!(is_right, "{params}"),
            Err(error) => {
                assert!(!is_right, "{error}");
                assert_eq!(error.code, ErrorCode::GenericError);
                let told = format!("media-rcv-ts-offset={media} and channel-rcv-ts-offset={channel} overlap");
                assert!(error.message.contains(&told), "{error}");
            }
        }
    }
}

#[test]
fn spies_have_the_parameters_of_ipc_subscriptions_and_leave_the_rest_to_the_channel_they_watch() {
    let spy = uri(
        "aeron-spy:aeron:udp?endpoint=localhost:40123|control=localhost:40124|session-id=9|tether=false\
         |rejoin=false|ttl=8|gtag=7|cc=cubic|fc=min|media-rcv-ts-offset=0|ssc=true|ats=true",
    );
    let params = SubscriptionParams::from_uri(&spy, &ChannelDefaults::default()).expect("a spy");
    assert_eq!(params.session_id, Some(9));
    assert!(!params.is_tethered && !params.is_rejoin);
}

#[test]
fn spies_simulate_a_connection_if_the_channel_or_else_the_setting_says_so() {
    let said_by_setting = ChannelDefaults {
        spies_simulate_connection: true,
        ..ChannelDefaults::default()
    };
    for (params, defaults, expected) in [
        ("ssc=true", ChannelDefaults::default(), true),
        ("alias=a", ChannelDefaults::default(), false),
        ("alias=a", said_by_setting.clone(), true),
        ("ssc=false", said_by_setting.clone(), false),
    ] {
        let udp = uri(&format!("aeron:udp?endpoint=localhost:40123|{params}"));
        let found = PublicationParams::from_uri(&udp, &defaults).expect(params);
        assert_eq!(found.spies_simulate_connection, expected, "{params}");
    }
    let ipc = PublicationParams::from_uri(&uri("aeron:ipc?ssc=true"), &said_by_setting).expect("ignored");
    assert!(!ipc.spies_simulate_connection);
    let error = publication("ssc=yes").expect_err("not a boolean");
    assert!(error.message.contains("ssc=yes"), "{}", error.message);
}

#[test]
fn publications_that_treat_spies_differently_do_not_share() {
    let existing = ExistingPublication {
        spies_simulate_connection: true,
        ..existing()
    };
    let error = publication("alias=a")
        .expect("alike but for spies")
        .check_matches(&existing, "aeron:udp")
        .expect_err("not given, and different");
    assert!(
        error.message.contains("different spiesSimulateConnection"),
        "{}",
        error.message
    );
    publication("ssc=true")
        .expect("alike")
        .check_matches(&existing, "aeron:udp")
        .expect("they share");
}

fn existing() -> ExistingPublication {
    ExistingPublication {
        session_id: 9,
        mtu_length: 1408,
        term_length: 65536,
        start: InitialPosition {
            initial_term_id: 3,
            term_id: 4,
            term_offset: 64,
        },
        spies_simulate_connection: false,
    }
}

#[test]
fn sharing_compares_what_the_channel_gives() {
    let check = |params: &str| publication(params).expect(params).check_matches(&existing(), UDP);
    assert_eq!(check(""), Ok(()));
    let same = "session-id=9|mtu=1408|term-length=64k|init-term-id=3|term-id=4|term-offset=64";
    assert_eq!(check(same), Ok(()));
    for (params, key) in [
        ("mtu=4k", "mtu"),
        ("term-length=128k", "term-length"),
        ("session-id=8", "session-id"),
        ("init-term-id=2|term-id=4|term-offset=64", "init-term-id"),
        ("init-term-id=3|term-id=5|term-offset=64", "term-id"),
        ("init-term-id=3|term-id=4|term-offset=96", "term-offset"),
    ] {
        let error = check(params).expect_err(params);
        assert_eq!(error.code, ErrorCode::GenericError);
        assert!(
            error
                .message
                .contains(&format!("existing publication has different '{key}'")),
            "{error}"
        );
    }
}

#[test]
fn a_tagged_session_id_brings_the_lengths_along() {
    let defaults = ChannelDefaults::default();
    let channel = uri(&format!("{UDP}|session-id=tag:7"));
    let mut params = PublicationParams::from_uri(&channel, &defaults).expect("a tag");
    assert_eq!(params.session_id, Some(SessionIdParam::Tag(7)));
    params
        .adopt_tagged(&channel, &defaults, &existing())
        .expect("nothing contradicts it");
    assert_eq!(params.session_id, Some(SessionIdParam::Number(9)));
    assert_eq!((params.mtu_length, params.term_length), (1408, 65536));
    assert_eq!(params.publication_window_length, 32768);
    for (extra, words) in [
        ("mtu=4k", "does not match session-id tag value"),
        ("term-length=128k", "does not match session-id tag value"),
        ("pub-wnd=64k", "must not exceed half the term-length=65536"),
    ] {
        let channel = uri(&format!("{UDP}|session-id=tag:7|{extra}"));
        let mut params = PublicationParams::from_uri(&channel, &defaults).expect("a tag");
        let error = params
            .adopt_tagged(&channel, &defaults, &existing())
            .expect_err(extra);
        assert!(error.message.contains(words), "{error}");
    }
}

#[test]
fn subscriptions_that_share_a_stream_agree() {
    let plain = subscription("").expect("defaults");
    for (params, words) in [
        ("reliable=false", "reliable=false"),
        ("rejoin=false", "rejoin=false"),
    ] {
        let other = subscription(params).expect(params);
        let error = other.check_matches("new", &plain, "old").expect_err(params);
        let expected =
            format!("option conflicts with existing subscription: {words} existingChannel=old channel=new");
        assert_eq!(error.message, expected);
    }
    assert_eq!(
        subscription("tether=false")
            .expect("tether")
            .check_matches("new", &plain, "old"),
        Ok(())
    );
}

#[test]
fn values_at_their_edges_are_accepted() {
    let window = |params: &str| publication(params).expect(params).publication_window_length;
    assert_eq!(window("pub-wnd=32k|term-length=64k"), 32768, "half the term");
    assert_eq!(window("pub-wnd=1408"), 1408, "one frame");
    let start =
        publication("term-id=1|init-term-id=1|term-offset=65536|term-length=64k").expect("the term's end");
    assert_eq!(
        start.initial_position.map(|start| start.position(65536)),
        Some(65536)
    );
    assert_eq!(publication("max-resend=1").expect("one").max_resend, 1);
}

#[test]
fn settings_stand_in_for_what_channels_leave_out() {
    let defaults = ChannelDefaults {
        publication_window_length: 1 << 20,
        ipc_publication_window_length: 4096,
        untethered_linger_timeout_ns: Some(7),
        ..ChannelDefaults::default()
    };
    let params = |text: &str| PublicationParams::from_uri(&uri(text), &defaults).expect(text);
    let udp = params(&format!("{UDP}|untethered-linger-timeout=0"));
    assert_eq!(
        (udp.publication_window_length, udp.untethered_linger_timeout_ns),
        (1 << 20, 7)
    );
    let small = params(&format!("{UDP}|term-length=64k"));
    assert_eq!(
        small.publication_window_length, 32768,
        "a setting is cut to half the term"
    );
    assert_eq!(params("aeron:ipc").publication_window_length, 4096);
}

/// Strategy, tag, size, time-out and windows.
fn flow(
    strategy: FlowControlStrategy,
    group_tag: i64,
    group_min_size: usize,
    receiver_timeout_ns: i64,
    retransmit_window_multiple: i32,
) -> FlowControlParam {
    FlowControlParam {
        strategy,
        group_tag,
        group_min_size,
        receiver_timeout_ns,
        retransmit_window_multiple,
    }
}

#[test]
fn flow_control_with_its_options_and_the_settings_for_the_rest() {
    use FlowControlStrategy::{Max, Min, Tagged};
    let settings = flow(Min, 7, 2, 9, 3);
    let defaults = ChannelDefaults {
        flow_control: settings,
        ..ChannelDefaults::default()
    };
    let params =
        |text: &str| PublicationParams::from_uri(&uri(&format!("{UDP}{text}")), &defaults).expect(text);
    let unsaid = params("");
    assert_eq!((unsaid.flow_control, unsaid.has_flow_control), (settings, false));
    for (text, expected) in [
        ("max", flow(Max, 7, 2, 9, 3)),
        ("max,rrwm:8", flow(Max, 7, 2, 9, 8)),
        ("min", settings),
        ("min,t:10s", flow(Min, 7, 2, 10_000_000_000, 3)),
        ("min,t:5", flow(Min, 7, 2, 5, 3)),
        ("min,g:/0", flow(Min, 7, 0, 9, 3)),
        ("tagged,g:-1", flow(Tagged, -1, 2, 9, 3)),
        ("tagged,g:/2147483647", flow(Tagged, 7, 2_147_483_647, 9, 3)),
        (
            "tagged,t:1us,rrwm:1,g:-9223372036854775808/3",
            flow(Tagged, i64::MIN, 3, 1_000, 1),
        ),
    ] {
        let found = params(&format!("|fc={text}"));
        assert_eq!(
            (found.flow_control, found.has_flow_control),
            (expected, true),
            "{text}"
        );
    }
    let ipc = PublicationParams::from_uri(&uri("aeron:ipc?fc=nonsense"), &defaults).expect("not of IPC");
    assert!(!ipc.has_flow_control);
}

#[test]
fn flow_control_that_cannot_be_is_refused_with_what_is_wrong() {
    let long = format!("min,g:{}", "1".repeat(64));
    for (text, words) in [
        (
            "fast",
            "Invalid flow control strategy name 'fast', must be max, min or tagged",
        ),
        ("Max", "Invalid flow control strategy name 'Max'"),
        ("max,t:5s", "unrecognised option 't:5s', this strategy has rrwm"),
        ("max,g:1", "unrecognised option 'g:1'"),
        (
            "min,x:1",
            "unrecognised option 'x:1', this strategy has g, t and rrwm",
        ),
        ("min,", "unrecognised option ''"),
        ("tagged,g:", "invalid group ''"),
        ("tagged,g", "invalid group ''"),
        ("tagged,g:x", "invalid group 'x'"),
        ("min,g:x/1", "invalid group 'x/1'"),
        ("tagged,g:9223372036854775808", "invalid group"),
        ("tagged,g:1/", "Group count invalid ''"),
        ("tagged,g:1/-1", "Group count invalid '-1'"),
        (
            "min,g:/2147483648",
            "Group count invalid '2147483648', must be from 0 to 2147483647",
        ),
        ("min,t:", "invalid timeout ''"),
        (
            "min,t:5m",
            "invalid timeout '5m', a duration should end with: s, ms, us, or ns.",
        ),
        ("min,rrwm:0", "invalid rrwm '0', must be a number of at least 1"),
        ("max,rrwm:x", "invalid rrwm 'x'"),
        (long.as_str(), "option 'g' is longer than 63 characters"),
    ] {
        let error = publication(&format!("fc={text}")).expect_err(text);
        assert_eq!(error.code, ErrorCode::GenericError, "{text}: {error}");
        assert!(error.message.contains(words), "{text}: {error}");
        assert!(
            error.message.contains(&format!("fc={text}, channel=aeron:udp?")),
            "{error}"
        );
    }
}

#[test]
fn congestion_control_and_group_tag_of_subscriptions() {
    let plain = subscription("").expect("defaults");
    assert_eq!(
        (plain.congestion_control, plain.group_tag),
        (CongestionControlKind::Static, None)
    );
    let given = subscription("cc=cubic|gtag=-1").expect("both");
    assert_eq!(
        (given.congestion_control, given.group_tag),
        (CongestionControlKind::Cubic, Some(-1))
    );
}

#[test]
fn publications_say_what_they_respond_to_or_who_reads_the_responses() {
    let correlation = |params: &str| {
        let params = ipc_publication(params).expect(params);
        (params.is_response, params.response_correlation)
    };
    assert_eq!(correlation("eos=true"), (false, ResponseCorrelation::None));
    assert_eq!(
        correlation("response-correlation-id=-1"),
        (false, ResponseCorrelation::None)
    );
    assert_eq!(
        correlation("response-correlation-id=7"),
        (false, ResponseCorrelation::Id(7))
    );
    assert_eq!(
        correlation("control-mode=response|response-correlation-id=0"),
        (true, ResponseCorrelation::Id(0))
    );
    let prototype = "control-mode=response|response-correlation-id=prototype|term-length=1m";
    assert_eq!(correlation(prototype), (true, ResponseCorrelation::Prototype));
    assert_eq!(
        ipc_publication(prototype).expect(prototype).term_length,
        64 * 1024
    );
    let raw = [
        ResponseCorrelation::None,
        ResponseCorrelation::Id(7),
        ResponseCorrelation::Prototype,
    ]
    .map(ResponseCorrelation::raw);
    assert_eq!(raw, [-1, 7, -2]);
    for params in [
        "control-mode=response",
        "control-mode=response|response-correlation-id=-1",
    ] {
        let error = ipc_publication(params).expect_err(params);
        assert_eq!(error.code, GenericError);
        assert!(
            error.message.contains("no response-correlation-id set"),
            "{error}"
        );
    }
}
