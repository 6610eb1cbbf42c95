//! What a subscription sends to an address that a stranger writes into its packets: no more than came from there.

use headrace_protocol::frame::{ErrorFrame, FrameKind, RttMeasurement, StatusMessage, rtt};

use crate::common::peer::Peer;
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
        let heartbeat = heartbeat_of(session_id);
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

/// Status messages that need not be paid for go to the address that the subscription names, and not to one that speaks in
/// its place.
#[test]
fn greetings_of_a_named_sender_do_not_go_to_one_that_takes_its_place() {
    let channel = "aeron:udp?endpoint=right:40123|control=10.9.9.9:40123|control-mode=dynamic";
    let receiving = Receiving::on(channel, |_| {});
    let victim = Peer::at(&receiving.world, 8);
    for frame in [
        setup_of(SESSION),
        frame_at(JOIN, 1024, WHOLE),
        frame_at(JOIN + 1024, 1024, WHOLE),
    ] {
        receiving.send(&frame);
        receiving.world.run_for(2 * MILLISECOND);
    }
    receiving.world.run_for(5_100 * MILLISECOND);
    let heartbeat = heartbeat_at(JOIN + 2048, WHOLE);
    victim.send(receiving.socket, &heartbeat);
    receiving.world.run_for(3 * SECOND);
    let told: usize = victim.take().iter().map(Vec::len).sum();
    assert!(told <= heartbeat.len(), "{told} bytes for {}", heartbeat.len());
}

/// What lies outside the window may be of another publisher, which is asked for its SETUP.
#[test]
fn frames_outside_the_window_pay_once() {
    let receiving = Receiving::on("aeron:udp?control-mode=manual", |_| {});
    let path = "aeron:udp?endpoint=right:40123";
    receiving.reader.subscription.add_destination(path).unwrap();
    let (mut paid, mut told) = (0, 0);
    let mut each = |frame: &dyn Fn(i32) -> Vec<u8>, pause: i64| {
        for session_id in 1..=20 {
            let frame = frame(session_id);
            paid += frame.len();
            receiving.send(&frame);
            receiving.world.run_for(2 * MILLISECOND);
        }
        receiving.world.run_for(pause);
        told += sent_to(&receiving);
        assert!(told <= paid, "{told} bytes for {paid}");
    };
    let heartbeat = |session_id: i32, position| {
        let mut frame = heartbeat_at(position, WHOLE);
        frame[12..16].copy_from_slice(&session_id.to_le_bytes());
        frame
    };
    each(&setup_of, 5_100 * MILLISECOND);
    for _ in 0..4 {
        each(
            &|session_id| heartbeat(session_id, JOIN + i64::from(TERM_LENGTH)),
            SECOND,
        );
    }
    each(&|session_id| heartbeat(session_id, JOIN), 4 * SECOND);
}

/// A program closes its subscription: that is one status message for each image more.
#[test]
fn a_goodbye_is_not_followed_by_what_it_did_not_need() {
    let receiving = Receiving::silent();
    let mut paid = 0;
    for session_id in 1..=10 {
        for frame in [
            setup_of(session_id),
            heartbeat_of(session_id),
            heartbeat_of(session_id),
        ] {
            paid += frame.len();
            receiving.send(&frame);
            receiving.world.run_for(210 * MILLISECOND);
        }
    }
    receiving.reader.subscription.close();
    receiving.world.run_for(3 * SECOND);
    let told = sent_to(&receiving);
    assert!(
        told <= paid + 10 * StatusMessage::LENGTH,
        "{told} bytes for {paid}"
    );
}

fn heartbeat_of(session_id: i32) -> Vec<u8> {
    let mut frame = heartbeat_at(JOIN, WHOLE);
    frame[12..16].copy_from_slice(&session_id.to_le_bytes());
    frame
}

/// A publisher forgets a receiver that it has not heard for 5 s, and believes no rejection of it after that.
#[test]
fn a_long_rejection_is_sent_as_far_as_it_is_paid_for_and_in_time() {
    let receiving = Receiving::silent();
    receiving.join();
    let reason = "x".repeat(1_000);
    receiving.image().reject(&reason).unwrap();
    let mut texts = Vec::new();
    for _ in 0..40 {
        receiving.live_for(SECOND / 10, WHOLE);
        let frames = receiving.peer.take_frames(FrameKind::Error);
        texts.extend(
            frames
                .iter()
                .map(|frame| ErrorFrame::decode(frame).unwrap().text.to_string()),
        );
    }
    assert!(texts.len() >= 3, "in 4 s: {}", texts.len());
    assert!(
        texts
            .iter()
            .all(|text| text.len() >= 128 && reason.starts_with(text.as_str()))
    );
    // One that sends pays for all of it.
    receiving.send(&frame_at(JOIN, 1024, WHOLE));
    receiving.live_for(SECOND, WHOLE);
    let frames = receiving.peer.take_frames(FrameKind::Error);
    assert_eq!(ErrorFrame::decode(&frames[0]).unwrap().text, reason);
}
