//! What a subscription sends to an address that a stranger writes into its packets: no more than came from there.

use headrace_protocol::frame::{RttMeasurement, StatusMessage, rtt};

use crate::common::{MILLISECOND, SECOND, STREAM};
use crate::receiving::{JOIN, Receiving, WHOLE, frame_at, heartbeat_at, setup_of};
use crate::{SESSION, TERM_LENGTH};

/// Measures round trips for all that it does, which costs packets too.
const CHANNEL: &str = "aeron:udp?endpoint=right:40123|rcv-wnd=16k|cc=cubic|gtag=7";

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
    let told = sent_to(&receiving);
    assert_eq!(told, 0, "a status message with a tag is longer than the SETUP");
    let data = frame_at(JOIN + 4096, 1024, WHOLE);
    receiving.send(&data);
    receiving.world.run_for(60 * SECOND);
    let (sent, paid) = (told + sent_to(&receiving), setup.len() + data.len());
    assert!(
        (StatusMessage::LENGTH_WITH_GROUP_TAG + 28..=paid).contains(&sent),
        "{sent} bytes for {paid}"
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
                0 => setup_of(SESSION),
                1 => heartbeat_at(position, WHOLE),
                2 => probe(),
                _ => frame_at(position, random.i32(32..256) & !31, WHOLE),
            };
            paid += frame.len();
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

/// A request for a SETUP is longer than the heartbeat that brings it about.
#[test]
fn heartbeats_of_unknown_sessions_bring_no_more_than_themselves() {
    let receiving = Receiving::on(CHANNEL, |_| {});
    let (mut paid, mut sent) = (0, 0);
    let heard = |session_id: i32| {
        let mut heartbeat = heartbeat_at(JOIN, WHOLE);
        heartbeat[12..16].copy_from_slice(&session_id.to_le_bytes());
        receiving.send(&heartbeat);
        receiving.world.run_for(MILLISECOND / 2);
        (heartbeat.len(), sent_to(&receiving))
    };
    for session_id in 0..2_000 {
        let (length, told) = heard(session_id);
        paid += length;
        sent += told;
    }
    assert!(
        paid - StatusMessage::LENGTH_WITH_GROUP_TAG < sent && sent <= paid,
        "{sent} bytes for {paid}"
    );
    // One that goes on is asked all the same.
    assert!((0..2).any(|_| heard(-1).1 > 0));
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
    receiving.send(&setup_of(SESSION)); // pays for a part of the first answer, which has a tag
    receiving.world.run_for(2 * MILLISECOND);
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
