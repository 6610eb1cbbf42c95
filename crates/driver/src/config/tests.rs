use std::collections::HashSet;

use headrace_protocol::settings::Kind;
use headrace_sys::idle::Control;

use super::settings::{MICROSECOND, MILLISECOND, SECOND};
use super::*;

fn config_of(pairs: &[(&str, &str)]) -> Result<DriverConfig, ConfigError> {
    let mut sources = Sources::default();
    for (name, value) in pairs {
        sources.put(name, value);
    }
    sources.into_config()
}

#[test]
fn the_defaults_are_valid() {
    DriverConfig::default().validate().unwrap();
}

#[test]
fn a_setting_answers_to_both_of_its_names() {
    let mut config = DriverConfig::default();
    config.set("aeron.mtu.length", "8k").unwrap();
    assert_eq!(config.mtu_length, 8192);
    config.set("AERON_MTU_LENGTH", "1408").unwrap();
    assert_eq!(config.mtu_length, 1408);
    config.set("aeron.name.resolver.threshold", "1s").unwrap();
    config.set("AERON_DRIVER_NAME_RESOLVER_THRESHOLD", "2s").unwrap();
    assert_eq!(config.name_resolver_threshold_ns, 2 * SECOND);
}

#[test]
fn every_shown_setting_can_be_set_to_what_is_shown() {
    let mut config = DriverConfig::default();
    let entries = config.entries();
    assert!(entries.len() > 70);
    for (name, value) in entries {
        if !value.is_empty() {
            config.set(name, &value).unwrap();
        }
    }
    assert_eq!(config, DriverConfig::default());
}

#[test]
fn the_error_log_takes_what_the_other_parts_of_the_cnc_file_leave() {
    let mut config = DriverConfig::default();
    for (length, rule) in [
        ("4194305", "must be a multiple of 8, and at most 2103442424"),
        (
            "2147483640",
            "at most 2103442424: cnc.dat, 44041216 bytes without it, must be shorter than 2 GiB",
        ),
    ] {
        config.set("aeron.error.buffer.length", length).unwrap();
        let error = config.validate().unwrap_err().to_string();
        assert!(error.contains(rule), "{error}");
    }
    config.set("aeron.error.buffer.length", "4194312").unwrap();
    config.validate().unwrap();
}

#[test]
fn an_error_names_setting_value_and_rule() {
    for (name, value, rule) in [
        ("aeron.mtu.length", "1400", "multiple of 32"),
        ("aeron.mtu.length", "65536", "at most 65504"),
        ("aeron.term.buffer.length", "100k", "power of two"),
        ("aeron.term.buffer.length", "2g", "from 64k to 1g"),
        (
            "aeron.threading.mode",
            "dedicated",
            "DEDICATED, SHARED_NETWORK, SHARED, INVOKER",
        ),
        ("aeron.conductor.buffer.length", "1048576", "size from"),
        (
            "aeron.conductor.buffer.length",
            "1500000",
            "power of two plus 768",
        ),
        ("aeron.timer.interval", "soon", "suffixes s, ms, us, ns"),
        ("aeron.receiver.wildcard.port.range", "20 10", "low <= high"),
        ("aeron.dir.delete.on.start", "maybe", "true or false"),
        ("aeron.conductor.cpu.affinity", "300", "from -1 to 255"),
    ] {
        let error = DriverConfig::default().set(name, value).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(&format!("{name}={value}")) && text.contains(rule),
            "{text}"
        );
    }
}

#[test]
fn an_unknown_setting_is_refused_when_set_and_left_alone_in_the_environment() {
    let error = DriverConfig::default().set("aeron.colour", "blue").unwrap_err();
    assert!(error.to_string().contains("is not a setting"));
    assert_eq!(
        config_of(&[("AERON_COLOUR", "blue")]).unwrap(),
        DriverConfig::default()
    );
}

#[test]
fn what_cannot_have_an_effect_is_refused_with_the_reason() {
    for (name, value, rule) in [
        (
            "aeron.driver.dynamic.libraries",
            "libx.so",
            "must be left out: the driver loads no libraries",
        ),
        (
            "aeron.SendChannelEndpoint.supplier",
            "com.example.Mine",
            "must be one of io.aeron.driver.DefaultSendChannelEndpointSupplier, io.aeron.driver.ext.Debug",
        ),
        (
            "aeron.unicast.FlowControl.supplier",
            "com.example.Mine",
            "one of unicast_max, multicast_max, multicast_min, multicast_tagged, or a name that Aeron has for it",
        ),
        ("aeron.enable.experimental.features", "maybe", "must be true"),
        (
            "aeron.multicast.FlowControl.supplier",
            "com.example.Mine",
            "one of multicast_max, multicast_min, multicast_tagged, or a name that Aeron has for it",
        ),
        (
            "aeron.multicast.flow.control.strategy",
            "io.aeron.driver.UnicastFlowControl",
            "io.aeron.driver.TaggedMulticastFlowControl; aeron.multicast.FlowControl.supplier is the newer setting",
        ),
    ] {
        let error = config_of(&[(name, value)]).unwrap_err().to_string();
        assert!(
            error.contains(&format!("{name}={value}")) && error.contains(rule),
            "{error}"
        );
    }
}

#[test]
fn what_test_harnesses_set_is_accepted_without_a_word() {
    let config = config_of(&[
        ("AERON_FLOW_CONTROL_GROUP_TAG", "-1"),
        ("AERON_FLOW_CONTROL_GROUP_MIN_SIZE", "0"),
        (
            "AERON_UNICAST_FLOWCONTROL_SUPPLIER",
            "aeron_unicast_flow_control_strategy_supplier",
        ),
        ("AERON_EVENT_LOG_DISABLE", ""),
        ("AERON_ENABLE_EXPERIMENTAL_FEATURES", "true"),
    ])
    .unwrap();
    assert_eq!((config.doubts().len(), config), (0, DriverConfig::default()));
}

#[test]
fn what_a_logger_or_a_debugger_sets_is_noted() {
    let mut config = config_of(&[
        ("AERON_EVENT_LOG", "all"),
        ("AERON_DEBUG_SEND_DATA_LOSS_RATE", "0.1"),
        ("AERON_DEBUG_SEND_DATA_LOSS_SEED", "-1"),
    ])
    .unwrap();
    let doubts = config.doubts();
    assert_eq!(doubts.len(), 2, "{doubts:?}");
    assert_eq!(
        doubts[1],
        "aeron.debug.send.data.loss.rate=0.1 has no effect: it is for the class for debugging of \
         aeron.SendChannelEndpoint.supplier"
    );
    assert!(
        doubts[0].starts_with("aeron.event.log=all has no effect: "),
        "{doubts:?}"
    );
    config.set("aeron.event.log", "0").unwrap();
    assert_eq!(config.doubts().len(), 1);
    let lost = |config: &DriverConfig| {
        let rules = config.interceptors(0).unwrap();
        (rules.incoming.len(), rules.outgoing.len())
    };
    assert_eq!(lost(&config), (0, 0));
    let supplier = "io.aeron.driver.ext.DebugSendChannelEndpointSupplier";
    config
        .set("aeron.SendChannelEndpoint.supplier", supplier)
        .unwrap();
    assert_eq!((lost(&config), config.doubts().len()), ((0, 1), 0));
    config.set("aeron.debug.send.control.loss.rate", "1").unwrap();
    assert_eq!(lost(&config), (1, 1));
    for wrong in ["1.1", "-0.1", "a lot", "NaN"] {
        config.set("aeron.debug.receive.data.loss.rate", wrong).unwrap();
        let error = config.validate().unwrap_err().to_string();
        assert!(error.contains("must be a number from 0.0 to 1.0"), "{error}");
    }
}

#[test]
fn at_most_half_of_all_session_ids_are_reserved() {
    let validated = |low: i32, high: i32| {
        let config = DriverConfig {
            publication_reserved_session_id_low: low,
            publication_reserved_session_id_high: high,
            ..DriverConfig::default()
        };
        config.validate().map_err(|error| error.to_string())
    };
    for (low, high) in [(i32::MIN, -1), (0, i32::MAX), (-5, i32::MAX - 5), (7, 7)] {
        assert_eq!(validated(low, high), Ok(()), "{low} {high}");
    }
    for (low, high) in [(i32::MIN, i32::MAX), (i32::MIN, 0), (-5, i32::MAX - 4)] {
        let error = validated(low, high).unwrap_err();
        let rule =
            format!("must be at most 2147483647 above aeron.publication.reserved.session.id.low={low},");
        let is_named = error.contains("aeron.publication.reserved.session.id.high") && error.contains(&rule);
        assert!(is_named, "{error}");
    }
    let error = validated(8, 7).unwrap_err();
    assert!(
        error.contains("must not be above aeron.publication.reserved.session.id.high=7"),
        "{error}"
    );
}

#[test]
fn with_a_debugger_attached_what_lives_may_be_silent_for_long() {
    let hour_ns = 3_600_000_000_000;
    let mut config = config_of(&[("aeron.debug.timeout", "3600s")]).unwrap();
    let before = config.clone();
    config.mind_debugger(false);
    assert_eq!(config, before);
    config.mind_debugger(true);
    assert_eq!(config.client_liveness_timeout_ns, hour_ns);
    assert_eq!(config.image_liveness_timeout_ns, hour_ns);
    assert_eq!(config.publication_connection_timeout_ns, hour_ns);
    assert_eq!(config.publication_unblock_timeout_ns, hour_ns * 3 / 2);
    config.validate().unwrap();
}

#[test]
fn the_length_of_the_event_buffer_is_that_of_the_event_log() {
    for (length, limit) in [("8m", 32_768), ("0", 0), ("1g", 1 << 20)] {
        let config = config_of(&[("aeron.event.buffer.length", length)]).unwrap();
        assert_eq!(config.event_limit, limit, "{length}");
    }
    let error = config_of(&[("aeron.event.buffer.length", "long")]).unwrap_err();
    assert!(
        error
            .rule
            .contains("must be a size, of which an event takes 256 bytes"),
        "{error}"
    );
}

#[test]
fn names_that_other_drivers_load_a_strategy_by_choose_it_here() {
    use headrace_protocol::channel::{CongestionControlKind, FlowControlStrategy};
    for (name, value, expected) in [
        (
            "aeron.multicast.FlowControl.supplier",
            "aeron_min_flow_control_strategy_supplier",
            FlowControlStrategy::Min,
        ),
        (
            "aeron.multicast.FlowControl.supplier",
            "io.aeron.driver.TaggedMulticastFlowControlSupplier",
            FlowControlStrategy::Tagged,
        ),
        (
            "aeron.multicast.flow.control.strategy",
            "io.aeron.driver.MinMulticastFlowControl",
            FlowControlStrategy::Min,
        ),
    ] {
        let config = config_of(&[(name, value)]).unwrap();
        assert_eq!(config.multicast_flow_control, expected, "{name}={value}");
    }
    let both = config_of(&[
        ("aeron.multicast.FlowControl.supplier", "multicast_tagged"),
        (
            "aeron.multicast.flow.control.strategy",
            "io.aeron.driver.MinMulticastFlowControl",
        ),
    ]);
    assert_eq!(
        both.unwrap().multicast_flow_control,
        FlowControlStrategy::Tagged,
        "the newer setting wins"
    );
    let cubic = "io.aeron.driver.ext.CubicCongestionControlSupplier";
    let config = config_of(&[("aeron.CongestionControl.supplier", cubic)]).unwrap();
    assert_eq!(config.congestion_control, Some(CongestionControlKind::Cubic));
}

#[test]
fn older_settings_have_group_tags_as_bytes() {
    let config = config_of(&[
        ("aeron.PreferredMulticastFlowControl.asf", "FFFFFFFFFFFFFFFF"),
        (
            "aeron.flow.control.sm.applicationSpecificFeedback",
            "2a00000000000000",
        ),
    ])
    .unwrap();
    assert_eq!(
        (config.flow_control_group_tag, config.receiver_group_tag),
        (-1, Some(42))
    );
    for wrong in ["2a", "+a00000000000000", "2a000000000000000", "zz00000000000000"] {
        let error = config_of(&[("aeron.PreferredMulticastFlowControl.asf", wrong)]).unwrap_err();
        assert!(error.rule.contains("16 hexadecimal digits"), "{error}");
    }
}

#[test]
fn times_in_plain_nanoseconds_and_a_zero_nak_delay_are_what_harnesses_pass() {
    let config = config_of(&[
        ("AERON_NAK_UNICAST_DELAY", "0"),
        ("AERON_TIMER_INTERVAL", "100000000"),
        ("AERON_DRIVER_TERMINATION_VALIDATOR", "allow"),
    ])
    .unwrap();
    assert_eq!(config.nak_unicast_delay_ns, MICROSECOND);
    assert_eq!(config.timer_interval_ns, 100 * MILLISECOND);
    assert_eq!(config.termination_validator, TerminationValidator::Allow);
}

#[test]
fn durations_below_their_minimum_are_raised_to_it_as_the_reference_does() {
    let config = config_of(&[
        ("AERON_PUBLICATION_LINGER_TIMEOUT", "0"),
        ("AERON_PUBLICATION_CONNECTION_TIMEOUT", "0"),
        ("AERON_IMAGE_LIVENESS_TIMEOUT", "0"),
        ("AERON_RCV_STATUS_MESSAGE_TIMEOUT", "1ns"),
        ("AERON_RETRANSMIT_UNICAST_LINGER", "0"),
        ("AERON_NAK_MULTICAST_MAX_BACKOFF", "0"),
        ("AERON_TIMER_INTERVAL", "0"),
        ("AERON_UNTETHERED_LINGER_TIMEOUT", "0"),
    ])
    .unwrap();
    config.validate().unwrap();
    for raised_ns in [
        config.publication_linger_timeout_ns,
        config.publication_connection_timeout_ns,
        config.image_liveness_timeout_ns,
        config.receiver_status_message_timeout_ns,
        config.retransmit_unicast_linger_ns,
        config.nak_multicast_max_backoff_ns,
        config.timer_interval_ns,
    ] {
        assert_eq!(raised_ns, MICROSECOND);
    }
    assert_eq!(config.untethered_linger_timeout_ns, None);
}

#[test]
fn timeouts_must_be_in_order() {
    for (pairs, setting) in [
        (
            &[("aeron.timer.interval", "10s")][..],
            "aeron.client.liveness.timeout",
        ),
        (
            &[("aeron.publication.unblock.timeout", "10s")][..],
            "aeron.publication.unblock.timeout",
        ),
        (
            &[("aeron.untethered.linger.timeout", "1s")][..],
            "aeron.untethered.linger.timeout",
        ),
        (
            &[("aeron.untethered.resting.timeout", "1s")][..],
            "aeron.untethered.resting.timeout",
        ),
        (
            &[("aeron.rcv.initial.window.length", "256k")][..],
            "aeron.rcv.initial.window.length",
        ),
        (
            &[("aeron.conductor.idle.strategy", "doze")][..],
            "aeron.conductor.idle.strategy",
        ),
    ] {
        let error = config_of(pairs).unwrap().validate().unwrap_err();
        assert_eq!(error.setting, setting);
    }
}

#[test]
fn a_declaration_says_all_of_a_setting() {
    let declared = declarations();
    let names: HashSet<_> = declared.iter().filter_map(|setting| setting.property).collect();
    assert_eq!(names.len(), declared.len());
    assert!(
        ineffective()
            .iter()
            .all(|setting| !names.contains(setting.property))
    );
    for setting in &declared {
        let has_unit = match setting.kind {
            Kind::Nanoseconds => setting.keyword.ends_with("_ns"),
            Kind::Milliseconds => setting.keyword.ends_with("_ms"),
            _ => !setting.keyword.ends_with("_ns") && !setting.keyword.ends_with("_ms"),
        };
        assert!(has_unit, "the unit of a duration is in its name: {setting:?}");
        assert!(setting.rule.starts_with("must be "), "{setting:?}");
        assert!(
            setting.meaning.ends_with('.') && !setting.meaning.contains("  "),
            "{setting:?}"
        );
    }
    let directory = &declared[0];
    assert_eq!(directory.environment.as_deref(), Some("AERON_DIR"));
    assert!(directory.default.ends_with("aeron-USER"));
    let mtu = declared
        .iter()
        .find(|setting| setting.keyword == "mtu_length")
        .unwrap();
    assert_eq!((mtu.kind, mtu.default.as_str()), (Kind::Bytes, "1408"));
    assert!(mtu.rule.contains("at most 65504"));
}

#[test]
fn the_arguments_of_an_idle_strategy_may_be_set_before_it() {
    let mut config = DriverConfig::default();
    config
        .set(
            "aeron.driver.native.resource.agent.idle.strategy.init.args",
            "1ms",
        )
        .unwrap();
    config
        .set("aeron.driver.native.resource.agent.idle.strategy", "sleep-ns")
        .unwrap();
    let expected = headrace_sys::idle::IdleStrategy::Sleep(std::time::Duration::from_millis(1));
    assert_eq!(
        format!(
            "{:?}",
            config
                .resource_agent_idle()
                .strategy(&Control::default())
                .unwrap()
        ),
        format!("{expected:?}")
    );
}

#[test]
fn a_misspelt_setting_is_told_with_the_nearest_one() {
    let mut config = DriverConfig::default();
    let error = config.set("aeron.thredaing.mode", "SHARED").unwrap_err();
    assert!(
        error.rule.ends_with("did you mean aeron.threading.mode?"),
        "{error}"
    );
    let error = config.set("AERON_MTU_LENGHT", "8k").unwrap_err();
    assert!(error.rule.ends_with("did you mean AERON_MTU_LENGTH?"), "{error}");
    let error = config.set("aeron.nothing.like.it", "1").unwrap_err();
    assert!(!error.rule.contains("did you mean"), "{error}");
    let error = config.set(&"x".repeat(10_000), &"y".repeat(10_000)).unwrap_err();
    assert!(error.to_string().len() < 500);
}

#[test]
fn arguments_of_an_idle_strategy_that_takes_none_are_ignored() {
    let config = config_of(&[
        ("aeron.sender.idle.strategy", "sleep-ms"),
        ("aeron.sender.idle.strategy.init.args", "3ms"),
    ]);
    config.unwrap().validate().unwrap();
}

/// As the harness of the reference sets it.
#[test]
fn a_group_of_less_than_none_is_one_of_none() {
    let name = "aeron.flow.control.group.min.size";
    for (text, size) in [("-1", 0), ("0", 0), ("2", 2)] {
        assert_eq!(
            config_of(&[(name, text)]).unwrap().flow_control_group_min_size,
            size
        );
    }
    for text in ["", "two", "2147483648", "99999999999999999999"] {
        assert!(DriverConfig::default().set(name, text).is_err(), "{text}");
    }
}

#[test]
fn there_is_memory_for_one_image_at_least() {
    let error = config_of(&[("aeron.headrace.image.memory.limit", "0")]).unwrap_err();
    assert!(error.rule.contains("from 196k"), "{error}");
    let config = config_of(&[("aeron.headrace.image.memory.limit", "196k")]).unwrap();
    assert_eq!(config.image_memory_limit, 200_704);
}

#[test]
fn the_settings_of_name_resolution_belong_together() {
    const NAME: (&str, &str) = ("AERON_DRIVER_RESOLVER_NAME", "a");
    const INTERFACE: (&str, &str) = ("AERON_DRIVER_RESOLVER_INTERFACE", "127.0.0.1:0");
    let long_name = "x".repeat(513);
    let many_neighbors = "a:1,".repeat(21);
    for (settings, expected) in [
        (
            vec![INTERFACE],
            "`resolverName` is required when `resolverInterface` is set",
        ),
        (
            vec![("AERON_NAME_RESOLVER_SUPPLIER", "driver")],
            "needs aeron.driver.resolver.interface",
        ),
        (
            vec![("AERON_NAME_RESOLVER_SUPPLIER", "csv_table")],
            "needs aeron.name.resolver.init.args",
        ),
        (
            vec![NAME, INTERFACE, ("AERON_NAME_RESOLVER_SUPPLIER", "csv_table")],
            "cannot stand beside",
        ),
        (vec![("AERON_DRIVER_RESOLVER_NAME", "a b")], "printable ASCII"),
        (
            vec![("AERON_DRIVER_RESOLVER_NAME", "LocalHost")],
            "nor for localhost",
        ),
        (
            vec![("AERON_DRIVER_RESOLVER_NAME", "10.0.0.7")],
            "never ask for an address",
        ),
        (
            vec![
                ("AERON_NAME_RESOLVER_SUPPLIER", "csv_table"),
                ("AERON_NAME_RESOLVER_INIT_ARGS", "garbage|a,b"),
            ],
            "1 to 1024 rows of name,host,other host separated by bars; it has 0",
        ),
        (vec![("AERON_DRIVER_RESOLVER_NAME", &long_name)], "1 to 512"),
        (
            vec![
                NAME,
                INTERFACE,
                ("AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR", &many_neighbors),
            ],
            "at most 20 neighbors, not 21",
        ),
    ] {
        let error = config_of(&settings)
            .and_then(|config| config.validate())
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{settings:?}: {error}");
    }
    let bootstrap = ("AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR", " b:1, c:2,");
    let config = config_of(&[NAME, INTERFACE, bootstrap]).unwrap();
    config.validate().unwrap();
    assert_eq!(config.gossip_interface(), Some("127.0.0.1:0"));
    assert_eq!(config.bootstrap_neighbors(), ["b:1", "c:2"]);
    assert_eq!(config.doubts(), [""; 0]);
    let config = config_of(&[NAME, bootstrap]).unwrap();
    config.validate().unwrap();
    assert!(config.doubts()[0].contains("has no effect without aeron.driver.resolver.interface"));
}

#[test]
fn settings_of_names_that_are_of_no_use_are_told() {
    let config = config_of(&[
        ("AERON_NAME_RESOLVER_SUPPLIER", "csv_table"),
        ("AERON_NAME_RESOLVER_INIT_ARGS", "a,b,c|too,few|"),
    ])
    .unwrap();
    config.validate().unwrap();
    assert_eq!(
        config.doubts(),
        ["too,few of aeron.name.resolver.init.args is no row of three columns, and has no effect"]
    );
    let config = config_of(&[
        ("AERON_DRIVER_RESOLVER_NAME", "a"),
        ("AERON_DRIVER_RESOLVER_INTERFACE", "127.0.0.1:0"),
        ("AERON_DRIVER_RESOLVER_NEIGHBOR_TIMEOUT", "0"),
    ])
    .unwrap();
    let told = "aeron.driver.resolver.neighbor.timeout=1ms is not above \
                aeron.driver.resolver.self.resolution.interval=1s";
    assert!(config.doubts()[0].starts_with(told), "{:?}", config.doubts());
}

#[test]
fn interceptors_are_named_and_get_their_arguments() {
    const INCOMING: &str = "AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS";
    const LOSS_ARGS: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS";
    let symbol = "aeron_udp_channel_interceptor_loss_load";
    for (settings, expected) in [
        (vec![(INCOMING, "loss,magic")], "loss, fixed-loss, multi-gap-loss"),
        (
            vec![("AERON_UDP_CHANNEL_OUTGOING_INTERCEPTORS", "magic")],
            "aeron.udp.channel.outgoing.interceptors=magic",
        ),
        (vec![(INCOMING, "fixed-loss")], "it has no arguments"),
    ] {
        let error = config_of(&settings)
            .and_then(|config| config.validate())
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{settings:?}: {error}");
    }
    let config = config_of(&[(INCOMING, symbol), (LOSS_ARGS, "rate=0.1|recv-msg-mask=2")]).unwrap();
    config.validate().unwrap();
    assert_eq!(
        (
            config.interceptors(0).unwrap().incoming.len(),
            config.doubts().len()
        ),
        (1, 0)
    );
    let config = config_of(&[(INCOMING, "loss, multi-gap-loss")]).unwrap();
    assert_eq!(
        config.doubts(),
        [
            "the interceptor loss drops nothing: it has no arguments",
            "the interceptor multi-gap-loss drops nothing: it has no arguments"
        ]
    );
}
