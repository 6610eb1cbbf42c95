//! Round trips: probes of an image, and echoes of the publisher that the test plays.

use headrace_buffers::counters::system_counter;
use headrace_protocol::frame::{FrameKind, RttMeasurement, rtt};

use crate::SESSION;
use crate::common::{self, MILLISECOND, SECOND, STREAM};
use crate::receiving::{JOIN, Receiving, WHOLE, heartbeat_at};

/// The round trip that is assumed until one is measured.
const INITIAL_NS: i64 = MILLISECOND;

/// A subscription with its image, which measures round trips or does not.
fn joined(measures: bool, initial_rtt_ns: i64) -> Receiving {
    let channel = "aeron:udp?endpoint=right:40123|rcv-wnd=16k|cc=cubic";
    let receiving = Receiving::on(channel, |config| {
        config.cubic_measure_rtt = measures;
        config.adaptive_loss = false;
        config.cubic_initial_rtt_ns = initial_rtt_ns;
    });
    receiving.join();
    receiving
}

impl Receiving {
    fn take_probes(&self) -> Vec<RttMeasurement> {
        let frames = self.peer.take_frames(FrameKind::RttMeasurement).into_iter();
        frames
            .map(|frame| RttMeasurement::decode(&frame).unwrap())
            .collect()
    }

    fn send_measurement(&self, measurement: &RttMeasurement) {
        let mut frame = [0; RttMeasurement::LENGTH];
        measurement.encode(&mut frame);
        self.send(&frame);
    }

    /// What the driver tells of the round trip.
    fn shown_ns(&self) -> i64 {
        let counters = common::counters(&self.node);
        let mut shown = counters
            .into_iter()
            .filter(|(label, _)| label.starts_with("rcv-cc-cubic-rtt: "));
        shown.next().unwrap().1
    }
}

#[test]
fn an_image_measures_the_round_trip_again_and_again_when_asked_to() {
    let receiving = joined(true, INITIAL_NS);
    let own = receiving.receiver_id();
    let mut count = 0;
    for _ in 0..200 {
        receiving.send(&heartbeat_at(JOIN, WHOLE));
        receiving.world.run_for(MILLISECOND);
        for probe in receiving.take_probes() {
            assert_eq!((probe.flags, probe.receiver_id), (rtt::FLAG_REPLY, own));
            receiving.world.run_for(3 * MILLISECOND);
            receiving.send_measurement(&probe.echo());
            count += 1;
        }
    }
    assert!(count > 5, "{count} probes");
    let shown_ns = receiving.shown_ns();
    assert!(
        (3 * MILLISECOND..5 * MILLISECOND).contains(&shown_ns),
        "{shown_ns}"
    );
    assert_eq!(receiving.system(system_counter::INVALID_PACKETS), 0);
}

#[test]
fn an_image_that_was_not_asked_to_sends_no_probe() {
    let receiving = joined(false, INITIAL_NS);
    receiving.world.run_for(SECOND);
    assert_eq!(receiving.take_probes(), []);
}

#[test]
fn echoes_that_answer_no_probe_are_counted_and_measure_nothing() {
    for measures in [false, true] {
        let receiving = joined(measures, 10 * SECOND);
        let own = receiving.receiver_id();
        for receiver_id in [own, own ^ 1] {
            receiving.send_measurement(&RttMeasurement {
                flags: 0,
                session_id: SESSION,
                stream_id: STREAM,
                echo_timestamp_ns: 1,
                reception_delta_ns: 0,
                receiver_id,
            });
        }
        receiving.world.run_for(2 * MILLISECOND);
        assert_eq!(receiving.shown_ns(), 0, "measures={measures}");
        assert_eq!(
            receiving.system(system_counter::INVALID_PACKETS),
            1,
            "one for another receiver of the group is no error, measures={measures}"
        );
    }
}
