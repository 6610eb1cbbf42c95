//! The far ends of an archive: a publisher that waits until it is recorded, and the subscriber of a replay.

use std::error::Error;
use std::time::{Duration, Instant};

use headrace_client::{Client, Offer, SubscriptionHandlers};
use headrace_sys::idle::IdleStrategy;

use crate::clients::Clients;

const RECORDING_POSITION_TYPE_ID: i32 = 100;
const FRAGMENT_LIMIT: usize = 256;
const CHECKED_COUNT: u64 = 1_000;
/// What messages are made of.
const FILL: u8 = b'x';
const POLL_INTERVAL: Duration = Duration::from_micros(100);
const TIMEOUT: Duration = Duration::from_secs(30);

/// The recording of a session: its counter and its id.
fn recording_of(client: &Client, session_id: i32) -> Option<(i32, i64)> {
    let mut found = None;
    client.counters_reader().for_each(|record| {
        // Key: recording id, session id.
        let recorded = i32::from_le_bytes([record.key[8], record.key[9], record.key[10], record.key[11]]);
        if record.type_id == RECORDING_POSITION_TYPE_ID && recorded == session_id {
            let id = record.key.first_chunk().map_or(-1, |id| i64::from_le_bytes(*id));
            found = Some((record.id, id));
        }
    });
    found
}

fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, String> {
    let start = Instant::now();
    loop {
        if let Some(seen) = look() {
            return Ok(seen);
        }
        if start.elapsed() > TIMEOUT {
            return Err(format!("waited {TIMEOUT:?} for {what}"));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Publishes until the stream is `bytes` long and prints how many messages were recorded in how many nanoseconds,
/// and the recording's id and length.
pub(crate) fn record(
    dir: &str,
    channel: &str,
    stream_id: &str,
    length: &str,
    bytes: &str,
) -> Result<(), Box<dyn Error>> {
    let bytes: i64 = bytes.parse()?;
    let message = vec![FILL; length.parse()?];
    let client = Clients::connected(dir)?;
    let publication = client.add_publication(channel, stream_id.parse()?)?;
    let (counter_id, recording_id) = wait("the recording", || {
        recording_of(&client, publication.session_id())
    })?;
    let mut idle = IdleStrategy::default();
    let mut position = 0;
    let mut count = 0u64;
    let start = Instant::now();
    while position < bytes {
        match publication.offer(&message)? {
            Offer::Position(next) => {
                position = next;
                count += 1;
                idle.reset();
            }
            _ => idle.idle(0),
        }
    }
    wait("the end to be recorded", || {
        (client.counters_reader().value(counter_id)? >= position).then_some(())
    })?;
    println!("{count} {} {recording_id} {position}", start.elapsed().as_nanos());
    Ok(())
}

/// Takes a replay up to a position and prints how many messages came in how many nanoseconds.
pub(crate) fn receive(dir: &str, channel: &str, stream_id: &str, end: &str) -> Result<(), Box<dyn Error>> {
    let end: i64 = end.parse()?;
    let client = Clients::connected(dir)?;
    let subscription =
        client.add_subscription(channel, stream_id.parse()?, SubscriptionHandlers::default())?;
    println!("READY");
    let mut idle = IdleStrategy::default();
    let (mut count, mut position) = (0u64, 0);
    let mut start = None;
    let mut wrong = None;
    while position < end {
        let taken = subscription.poll(
            |payload, header| {
                // The first messages are compared; comparing all would be what is measured.
                if count < CHECKED_COUNT && payload.iter().any(|byte| *byte != FILL) {
                    wrong = Some(count);
                }
                count += 1;
                position = header.position();
            },
            FRAGMENT_LIMIT,
        )?;
        if taken > 0 && start.is_none() {
            start = Some(Instant::now());
        }
        idle.idle(taken);
    }
    println!("{count} {}", start.map_or(0, |start| start.elapsed().as_nanos()));
    wrong.map_or(Ok(()), |number| {
        Err(format!("message {number} of the replay differs from what was recorded").into())
    })
}
