//! What a subscription sends to an address that a stranger writes into its packets: no more than came from there.

use headrace_protocol::frame::{RttMeasurement, StatusMessage, rtt};

use crate::common::{MILLISECOND, SECOND, STREAM};
use crate::receiving::{JOIN, Receiving, WHOLE, frame_at, heartbeat_at, setup_of};
use crate::{SESSION, TERM_LENGTH};

/// Measures round trips for all that it does, which costs packets too.
const CHANNEL: &str = "aeron:udp?endpoint=right:40123|rcv-wnd=16k|cc=cubic|gtag=7";
/// What each frame pays for at least.
const ANSWER: usize = StatusMessage::LENGTH_WITH_GROUP_TAG;

/// Bytes that were sent to the address since the last look.
fn sent_to(receiving: &Receiving) -> usize {
    receiving.peer.take().iter().map(Vec::len).sum()
}

#[test]
fn a_forged_setup_and_a_packet_after_a_gap_bring_no_more_than_themselves() {
    let receiving = Receiving::on(CHANNEL, |_| {});
    let setup = setup_of(SESSION);
    receiving.send(&setup);
    receiving.world.run_for(9 * SECOND);
    assert_eq!(sent_to(&receiving), ANSWER, "one status message for the SETUP");
    let data = frame_at(JOIN + 4096, 1024, WHOLE);
    receiving.send(&data);
    receiving.world.run_for(60 * SECOND);
    let sent = sent_to(&receiving);
    assert!(
        (28..=data.len()).contains(&sent),
        "{sent} bytes for {}",
        data.len()
    );
}

/// A stranger that sends on and on, whatever it sends.
#[test]
fn frames_of_all_kinds_bring_no_more_than_they_pay_for() {
    for seed in 0..40 {
        let receiving = Receiving::on(CHANNEL, |config| config.cubic_measure_rtt = seed % 2 == 0);
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut paid, mut sent) = (0, 0);
        for _ in 0..200 {
            let position = JOIN + random.i64(0..256) * 32;
            let frame = match random.u8(0..5) {
                0 => {
                    paid += ANSWER; // a goodbye
                    setup_of(SESSION)
                }
                1 => heartbeat_at(position, WHOLE),
                2 => probe(),
                _ => frame_at(position, random.i32(32..256) & !31, WHOLE),
            };
            paid += frame.len().max(ANSWER);
            receiving.send(&frame);
            receiving.world.run_for(random.i64(0..400) * MILLISECOND);
            sent += sent_to(&receiving);
            assert!(sent <= paid, "{sent} bytes for {paid}, seed={seed}");
        }
        receiving.world.run_for(20 * SECOND);
        sent += sent_to(&receiving);
        assert!(
            sent > 100 * 28 && sent <= paid,
            "{sent} bytes for {paid}, seed={seed}"
        );
    }
}

fn probe() -> Vec<u8> {
    let probe = RttMeasurement {
        flags: rtt::FLAG_REPLY,
        session_id: SESSION,
        stream_id: STREAM,
        echo_timestamp_ns: 1,
        reception_delta_ns: 0,
        receiver_id: 0,
    };
    let mut frame = vec![0; RttMeasurement::LENGTH];
    probe.encode(&mut frame);
    frame
}

/// The publisher of a stream that has a gap says on and on that it lives, and never answers.
#[test]
fn a_publisher_that_never_repairs_is_asked_ever_more_rarely() {
    let receiving = Receiving::on(CHANNEL, |_| {});
    receiving.join();
    for part in 2..TERM_LENGTH / 8192 {
        receiving.send(&frame_at(JOIN + i64::from(part) * 1024, 1024, WHOLE));
    }
    let mut naks = Vec::new();
    for _ in 0..8 {
        let before = receiving.naks_sent();
        receiving.live_for(SECOND, WHOLE);
        naks.push(receiving.naks_sent() - before);
    }
    assert!(naks[0] > 20 && naks.iter().sum::<i64>() < 150, "{naks:?}");
    assert!(naks[7] >= 1, "it is asked as long as it lives: {naks:?}");
}
