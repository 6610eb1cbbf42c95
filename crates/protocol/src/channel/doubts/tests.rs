use super::*;

fn doubts_of(channel: &str, role: ChannelRole) -> Vec<String> {
    doubts(&ChannelUri::parse(channel).unwrap(), role)
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
        let doubts = doubts_of(&format!("aeron:ipc?{given}"), ChannelRole::Publication);
        let text = &doubts[0];
        assert!(text.contains(given) && doubts.len() == 1, "{doubts:?}");
        let ending = format!("did you mean {meant}?");
        assert!(meant.is_empty() || text.ends_with(&ending), "{text}");
    }
}

#[test]
fn slips_after_which_a_stream_stalls_or_loses_data_are_told() {
    let udp = "aeron:udp?endpoint=localhost:1";
    for (role, given, told) in [
        (ChannelRole::Publication, "linger=5", "means 5 nanoseconds"),
        (
            ChannelRole::Subscription,
            "nak-delay=999999",
            "as in 999999ms or 999999s",
        ),
        (
            ChannelRole::Subscription,
            "rcv-wnd=128",
            "most publishers cannot send",
        ),
        (
            ChannelRole::Subscription,
            "control-mode=dynamic",
            "the receiver reports to no publisher",
        ),
        (
            ChannelRole::ReceiveDestination,
            "control-mode=dynamic",
            "the receiver reports to no publisher",
        ),
    ] {
        let doubts = doubts_of(&format!("{udp}|{given}"), role);
        assert!(doubts.len() == 1 && doubts[0].contains(told), "{doubts:?}");
    }
    let manual = doubts_of(&format!("{udp}|control-mode=manual"), ChannelRole::Publication);
    assert!(manual.len() == 1 && manual[0].contains("endpoint=localhost:1 has no effect"));
    for right in [
        "linger=+5",
        "linger=0",
        "linger=5000000000",
        "nak-delay=100ns",
        "rcv-wnd=1408",
        "control=localhost:2|control-mode=dynamic",
    ] {
        let channel = format!("{udp}|{right}");
        assert_eq!(doubts_of(&channel, ChannelRole::Subscription), [""; 0]);
    }
    let spy = format!("aeron-spy:{udp}|control-mode=dynamic");
    assert_eq!(doubts_of(&spy, ChannelRole::Subscription), [""; 0]);
}

#[test]
fn no_known_key_is_doubted() {
    let all: Vec<String> = known_keys().map(|key| format!("{key}=1us")).collect();
    let channel = format!("aeron:udp?{}", all.join("|"));
    assert_eq!(doubts_of(&channel, ChannelRole::Publication), [""; 0]);
}

#[test]
fn there_is_an_end_to_telling() {
    let many: Vec<String> = (0..100).map(|index| format!("x{index}=1")).collect();
    let told = doubts_of(&format!("aeron:ipc?{}", many.join("|")), ChannelRole::Publication);
    assert_eq!(told.len(), DOUBTS_MAX);
    let long = format!("aeron:ipc?{}=1", "k".repeat(4000));
    assert_eq!(doubts_of(&long, ChannelRole::Publication).len(), 1);
}
