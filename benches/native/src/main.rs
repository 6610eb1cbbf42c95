//! Native rigs: `throughput`, `ping`, `pong`, the raw UDP loops they are compared with, `latency` of a paced stream and of
//! many slow `streams`, what `offers` cost, how near the `cores` are, at what
//! `pace` one computes, the publisher and subscriber at an archive's ends, and a cluster's client.
//!
//! Each prints plain numbers for `benches/run.py`: `count nanoseconds` per window, or one duration a line.

mod archive;
mod clients;
mod cluster;
mod cores;
mod datagrams;
mod echo;
mod latency;
mod offers;
mod pace;
mod rtt;
mod stamp;
mod streams;
mod throughput;

use std::process::ExitCode;

const USAGE: &str = "usage:
  headrace-bench throughput DIR CHANNEL MIN_LENGTH MAX_LENGTH WINDOWS WINDOW_MS [SUBSCRIBER_DIR SUBSCRIBER_CHANNEL ...]
  headrace-bench ping DIR PING_CHANNEL PONG_CHANNEL SAMPLES
  headrace-bench pong DIR PING_CHANNEL PONG_CHANNEL
  headrace-bench datagrams MIN_LENGTH MAX_LENGTH WINDOWS WINDOW_MS
  headrace-bench echo-ping REMOTE SAMPLES
  headrace-bench echo-pong LOCAL
  headrace-bench record DIR CHANNEL STREAM LENGTH BYTES
  headrace-bench receive DIR CHANNEL STREAM END_POSITION
  headrace-bench latency DIR CHANNEL STREAM SAMPLES [SUBSCRIBER_DIR SUBSCRIBER_CHANNEL ...]
  headrace-bench offers DIR CHANNEL SUBSCRIBERS BURSTS
  headrace-bench cores ROUND_TRIPS
  headrace-bench pace WINDOWS WINDOW_MS
  headrace-bench streams DIR CHANNEL STREAMS SAMPLES
  headrace-bench cluster-paced DIR INGRESS EGRESS RATE SAMPLES
  headrace-bench cluster-throughput DIR INGRESS EGRESS IN_FLIGHT WINDOWS WINDOW_MS";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        [
            "throughput",
            dir,
            channel,
            min_length,
            max_length,
            windows,
            window_ms,
            subscribers @ ..,
        ] if subscribers.len() % 2 == 0 => {
            let lengths = [*min_length, *max_length];
            throughput::run([dir, channel], lengths, [*windows, *window_ms], subscribers)
        }
        ["ping", dir, ping, pong, samples] => rtt::ping(dir, ping, pong, samples),
        ["pong", dir, ping, pong] => rtt::pong(dir, ping, pong),
        ["datagrams", min_length, max_length, windows, window_ms] => {
            datagrams::run([*min_length, *max_length], [*windows, *window_ms])
        }
        ["echo-ping", remote, samples] => echo::ping(remote, samples),
        ["echo-pong", local] => echo::pong(local),
        ["record", dir, channel, stream_id, length, bytes] => {
            archive::record(dir, channel, stream_id, length, bytes)
        }
        ["receive", dir, channel, stream_id, end] => archive::receive(dir, channel, stream_id, end),
        ["latency", dir, channel, stream_id, samples, subscribers @ ..] if subscribers.len() % 2 == 0 => {
            latency::run(dir, channel, [*stream_id, *samples], subscribers)
        }
        ["offers", dir, channel, subscribers, bursts] => offers::run(dir, channel, subscribers, bursts),
        ["cores", round_trips] => cores::run(round_trips),
        ["pace", windows, window_ms] => pace::run(windows, window_ms),
        ["streams", dir, channel, count, samples] => streams::run(dir, channel, count, samples),
        ["cluster-paced", dir, ingress, egress, rate, samples] => {
            cluster::paced(dir, [ingress, egress], [*rate, *samples])
        }
        [
            "cluster-throughput",
            dir,
            ingress,
            egress,
            in_flight,
            windows,
            window_ms,
        ] => cluster::throughput(dir, [ingress, egress], [*in_flight, *windows, *window_ms]),
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
