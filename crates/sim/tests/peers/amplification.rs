//! What a subscription sends to an address that a stranger writes into its packets.

use headrace_protocol::frame::StatusMessage;

use crate::common::{MILLISECOND, SECOND};
use crate::receiving::{JOIN, Receiving, WHOLE, frame_at, setup_of};
use crate::{SESSION, TERM_LENGTH};

/// Measures round trips, which costs packets too.
const CHANNEL: &str = "aeron:udp?endpoint=right:40123|rcv-wnd=16k|cc=cubic|gtag=7";

/// Nothing of the stream comes after it.
#[test]
fn a_forged_setup_brings_at_most_three_times_itself() {
    let receiving = Receiving::on(CHANNEL, |config| config.cubic_measure_rtt = true);
    let setup = setup_of(SESSION);
    receiving.send(&setup);
    receiving.world.run_for(20 * SECOND);
    let sent: Vec<_> = receiving.peer.take().iter().map(Vec::len).collect();
    assert_eq!(sent, [StatusMessage::LENGTH_WITH_GROUP_TAG; 2]);
    assert!(sent.iter().sum::<usize>() <= 3 * setup.len());
}

/// The publisher of a stream that has a gap says on and on that it lives, and never answers.
#[test]
fn a_publisher_that_never_repairs_is_asked_ever_more_rarely() {
    let receiving = Receiving::on(CHANNEL, |_| {});
    receiving.send(&setup_of(SESSION));
    receiving.world.run_for(2 * MILLISECOND);
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
