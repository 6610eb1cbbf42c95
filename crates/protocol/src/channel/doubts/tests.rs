use super::*;

fn doubts_of(channel: &str) -> Vec<String> {
    doubts(&ChannelUri::parse(channel).unwrap(), ChannelRole::Publication)
}

#[test]
fn a_misspelt_key_is_told_with_the_nearest_one() {
    for (given, meant) in [
        ("term-lenght=64k", "term-length"),
        ("relaible=false", "reliable"),
        ("Endpoint=localhost:1", "endpoint"),
        ("linger-timeout=1s", ""),
        ("tethr=false", "tether"),
        ("rcvwnd=1m", "rcv-wnd"),
        ("media-rcv-ts=8", "media-rcv-ts-offset"),
    ] {
        let doubts = doubts_of(&format!("aeron:ipc?{given}"));
        let text = &doubts[0];
        assert!(text.contains(given) && doubts.len() == 1, "{doubts:?}");
        let ending = format!("did you mean {meant}?");
        assert!(meant.is_empty() || text.ends_with(&ending), "{text}");
    }
}

#[test]
fn values_that_are_no_boolean_are_told() {
    assert!(doubts_of("aeron:ipc?eos=yes")[0].ends_with("eos=yes is neither true nor false"));
    assert!(doubts_of("aeron:ipc?eos=True")[0].ends_with("is neither true nor false, did you mean true?"));
    assert!(doubts_of("aeron:udp?endpoint=localhost:1|group=yes")[0].contains("counts as false"));
}

#[test]
fn parameters_joined_as_in_a_web_address_are_told() {
    let told = "channel parameter endpoint=localhost:1&mtu=1408 has another parameter in its value: put | and not & before \
                mtu=1408";
    assert_eq!(doubts_of("aeron:udp?endpoint=localhost:1&mtu=1408"), [told]);
    assert_eq!(doubts_of("aeron:ipc?alias=a&b=c"), [""; 0], "no parameter");
}

#[test]
fn a_value_that_is_not_of_its_list_is_told_with_the_nearest_one() {
    let udp = "aeron:udp?endpoint=localhost:1|control=localhost:2";
    for (given, told) in [
        (
            "control-mode=dynamc",
            "is none of manual, dynamic and response, and has no effect, did you mean dynamic?",
        ),
        ("cc=cubik", "is none of static and cubic, did you mean cubic?"),
        (
            "fc=taged,t:5s",
            "is none of max, min and tagged, did you mean tagged?",
        ),
        (
            "group=flase",
            "is none of true, false and infer, and counts as false, did you mean false?",
        ),
    ] {
        let doubts = doubts_of(&format!("{udp}|{given}"));
        assert_eq!(doubts, [format!("channel parameter {given} {told}")]);
    }
    for right in [
        "control-mode=dynamic",
        "cc=cubic",
        "fc=tagged,g:1/2",
        "group=infer",
    ] {
        assert_eq!(doubts_of(&format!("{udp}|{right}")), [""; 0]);
    }
}

#[test]
fn a_number_that_probably_lacks_its_unit_is_told() {
    let udp = "aeron:udp?endpoint=localhost:1";
    for (given, told) in [
        ("linger=5", "means 5 nanoseconds: give a unit, as in 5ms or 5s"),
        (
            "nak-delay=999999",
            "means 999999 nanoseconds: give a unit, as in 999999ms or 999999s",
        ),
        (
            "untethered-resting-timeout=10",
            "means 10 nanoseconds: give a unit, as in 10ms or 10s",
        ),
        (
            "fc=min,g:/2,t:10",
            "means 10 nanoseconds: give a unit, as in t:10ms or t:10s",
        ),
        (
            "rcv-wnd=128",
            "means 128 bytes, less than a usual datagram, so that most publishers cannot send: give a unit, as in \
             128k or 128m",
        ),
    ] {
        let uri = ChannelUri::parse(&format!("{udp}|{given}")).unwrap();
        let is_of_receivers = given.starts_with("nak-delay") || given.starts_with("rcv-wnd");
        let [role, other] = if is_of_receivers {
            [ChannelRole::Subscription, ChannelRole::Publication]
        } else {
            [ChannelRole::Publication, ChannelRole::Subscription]
        };
        assert_eq!(doubts(&uri, role), [format!("channel parameter {given} {told}")]);
        let is_of_both = given.starts_with("untethered");
        assert_eq!(doubts(&uri, other).len(), usize::from(is_of_both), "{given}");
    }
    for right in [
        "linger=+5",
        "linger=0",
        "linger=5000000000",
        "nak-delay=100ns",
        "fc=min,t:10ms",
        "fc=tagged,g:10",
        "rcv-wnd=1408",
    ] {
        assert_eq!(doubts_of(&format!("{udp}|{right}")), [""; 0]);
    }
}

#[test]
fn what_has_no_effect_where_it_stands_is_told() {
    let told = |channel: &str, role| doubts(&ChannelUri::parse(channel).unwrap(), role).join("; ");
    for role in [ChannelRole::Publication, ChannelRole::Subscription] {
        let text = told("aeron:ipc?control-mode=manual|endpoint=a:1|mtu=4k", role);
        assert_eq!(
            text,
            "channel parameter control-mode=manual has no effect here: an IPC channel has no network; \
             channel parameter endpoint=a:1 has no effect here: an IPC channel has no network"
        );
    }
    let manual = "aeron:udp?control-mode=manual|control=a:2|endpoint=a:1";
    assert_eq!(
        told(manual, ChannelRole::Publication),
        "channel parameter endpoint=a:1 has no effect here: with control-mode=manual a publication sends to the \
         destinations that are added"
    );
    assert_eq!(told(manual, ChannelRole::Subscription), "");
    assert_eq!(
        told(
            "aeron:udp?endpoint=a:1|term-length=64k",
            ChannelRole::SendDestination
        ),
        "channel parameter term-length=64k has no effect here: it belongs to the channel that the destination \
         is added to"
    );
}

#[test]
fn what_has_no_effect_in_a_destination_is_told() {
    let told = |channel: &str| {
        doubts(
            &ChannelUri::parse(channel).unwrap(),
            ChannelRole::ReceiveDestination,
        )
        .join("; ")
    };
    for (given, reason) in [
        (
            "session-id=5",
            "it belongs to the channel that the destination is added to",
        ),
        (
            "tether=false",
            "it belongs to the channel that the destination is added to",
        ),
        (
            "control-mode=manual",
            "a destination has no destinations of its own",
        ),
        (
            "control-mode=dynamic",
            "without control no publisher is told of the receiver",
        ),
    ] {
        assert_eq!(
            told(&format!("aeron:udp?endpoint=a:1|{given}")),
            format!("channel parameter {given} has no effect here: {reason}")
        );
    }
    for right in [
        "aeron:udp?endpoint=a:1|control=a:2|control-mode=dynamic",
        "aeron:ipc?session-id=5|tether=false",
        "aeron-spy:aeron:udp?endpoint=a:1|session-id=5|rejoin=false",
    ] {
        assert_eq!(told(right), "");
    }
}

#[test]
fn a_receiver_in_dynamic_mode_without_a_control_address_is_told_of() {
    let told =
        |channel: &str| doubts(&ChannelUri::parse(channel).unwrap(), ChannelRole::Subscription).join("; ");
    assert_eq!(
        told("aeron:udp?endpoint=a:1|control-mode=dynamic"),
        "channel parameter control-mode=dynamic has no effect here: without control no publisher is told of the \
         receiver"
    );
    assert_eq!(
        told("aeron:udp?endpoint=a:1|control=a:2|control-mode=dynamic"),
        ""
    );
    assert_eq!(told("aeron-spy:aeron:udp?endpoint=a:1|control-mode=dynamic"), "");
}

#[test]
fn a_channel_that_is_right_leaves_no_doubt() {
    let all: Vec<String> = known_keys()
        .map(|key| {
            let value = match key {
                keys::CONTROL_MODE => "dynamic",
                keys::CONGESTION_CONTROL => "static",
                keys::FLOW_CONTROL => "min",
                keys::RECEIVER_WINDOW => "128k",
                _ if BOOLEANS.contains(&key) || key == keys::GROUP => "true",
                _ if DURATIONS.contains(&key) => "1us",
                _ => "1",
            };
            format!("{key}={value}")
        })
        .collect();
    assert_eq!(doubts_of(&format!("aeron:udp?{}", all.join("|"))), [""; 0]);
}

#[test]
fn there_is_an_end_to_telling() {
    let many: Vec<String> = (0..100).map(|index| format!("x{index}=1")).collect();
    let doubts = doubts_of(&format!("aeron:ipc?{}", many.join("|")));
    assert_eq!(doubts.len(), DOUBTS_MAX);
    assert_eq!(doubts_of(&format!("aeron:ipc?{}=1", "k".repeat(4000))).len(), 1);
}
