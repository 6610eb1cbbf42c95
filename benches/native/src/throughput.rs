//! One publisher thread, one thread that polls every subscriber, drivers in other processes.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headrace_client::{Offer, Publication, Subscription, SubscriptionHandlers};
use headrace_sys::idle::IdleStrategy;

use crate::clients::Clients;

const STREAM_ID: i32 = 1001;
const LENGTH_COUNT: usize = 1 << 16;
const FRAGMENT_LIMIT: usize = 256;
const CHECKED_COUNT: usize = 100_000;

/// `subscribers` are pairs of a driver's directory and a channel; none is one subscriber beside the publisher.
pub(crate) fn run(
    [dir, channel]: [&str; 2],
    lengths: [&str; 2],
    windows: [&str; 2],
    subscribers: &[&str],
) -> Result<(), Box<dyn Error>> {
    let [min_length, max_length] = [lengths[0].parse::<usize>()?, lengths[1].parse::<usize>()?];
    let window_count: usize = windows[0].parse()?;
    let window = Duration::from_millis(windows[1].parse()?);
    let beside = [dir, channel];
    let subscribers = if subscribers.is_empty() {
        &beside
    } else {
        subscribers
    };
    let mut clients = Clients::default();
    let mut subscriptions = Vec::new();
    for pair in subscribers.chunks_exact(2) {
        let client = clients.of(pair[0])?;
        subscriptions.push(client.add_subscription(pair[1], STREAM_ID, SubscriptionHandlers::default())?);
    }
    let publication = clients.of(dir)?.add_publication(channel, STREAM_ID)?;
    // A subscriber that comes to a stream that flows misses what was before it.
    while !subscriptions.iter().all(Subscription::is_connected) {
        std::thread::yield_now();
    }
    let running = AtomicBool::new(true);
    std::thread::scope(|scope| -> Result<(), Box<dyn Error>> {
        let publisher = scope.spawn(|| publish(&publication, min_length, max_length, &running));
        let measured = check(&subscriptions, min_length, max_length)
            .and_then(|()| measure(&subscriptions, window_count, window));
        running.store(false, Ordering::Relaxed);
        publisher.join().map_err(|_| "the publisher thread panicked")??;
        measured
    })
}

fn publish(
    publication: &Publication,
    min_length: usize,
    max_length: usize,
    running: &AtomicBool,
) -> Result<(), String> {
    let lengths = lengths(min_length, max_length);
    let mut message = vec![0u8; max_length];
    let mut idle = IdleStrategy::default();
    let mut next = 0usize;
    while running.load(Ordering::Relaxed) {
        let length = lengths[next & (LENGTH_COUNT - 1)];
        next += 1;
        message[..8].copy_from_slice(&next.to_le_bytes());
        while !matches!(
            publication
                .offer(&message[..length])
                .map_err(|error| error.to_string())?,
            Offer::Position(_)
        ) {
            if !running.load(Ordering::Relaxed) {
                return Ok(());
            }
            idle.idle(0);
        }
        idle.reset();
    }
    Ok(())
}

/// The lengths of the messages, in turn; the publisher and the check draw the same.
pub(crate) fn lengths(min_length: usize, max_length: usize) -> Vec<usize> {
    let mut random = fastrand::Rng::with_seed(7);
    (0..LENGTH_COUNT)
        .map(|_| random.usize(min_length..=max_length))
        .collect()
}

/// Reads the first messages of each subscriber before anything is measured: each must have its number and its length.
fn check(subscriptions: &[Subscription], min_length: usize, max_length: usize) -> Result<(), Box<dyn Error>> {
    let lengths = lengths(min_length, max_length);
    let mut idle = IdleStrategy::default();
    let mut checked = vec![0usize; subscriptions.len()];
    let mut wrong = None;
    while wrong.is_none() && checked.iter().any(|count| *count < CHECKED_COUNT) {
        let mut taken = 0;
        for (subscription, checked) in subscriptions.iter().zip(&mut checked) {
            taken += subscription.poll(
                |payload, _| {
                    let length = lengths[*checked & (LENGTH_COUNT - 1)];
                    *checked += 1;
                    let number = payload.first_chunk().map(|bytes| usize::from_le_bytes(*bytes));
                    if wrong.is_none() && (payload.len() != length || number != Some(*checked)) {
                        wrong = Some(format!(
                            "message {checked} has number {number:?} and length {}, not length {length}",
                            payload.len()
                        ));
                    }
                },
                FRAGMENT_LIMIT,
            )?;
        }
        idle.idle(taken);
    }
    wrong.map_or(Ok(()), |text| Err(text.into()))
}

/// Prints what all subscribers took together.
fn measure(
    subscriptions: &[Subscription],
    window_count: usize,
    window: Duration,
) -> Result<(), Box<dyn Error>> {
    let mut idle = IdleStrategy::default();
    for _ in 0..window_count {
        let mut count = 0u64;
        let start = Instant::now();
        let mut polls = 0u32;
        loop {
            let mut taken = 0;
            for subscription in subscriptions {
                taken += subscription.poll(|_, _| count += 1, FRAGMENT_LIMIT)?;
            }
            match subscriptions {
                [only] => only.idle_after_poll(&mut idle, taken, FRAGMENT_LIMIT),
                _ => idle.idle(taken),
            }
            polls += 1;
            if polls & 63 == 0 && start.elapsed() >= window {
                break;
            }
        }
        println!("{count} {}", start.elapsed().as_nanos());
    }
    Ok(())
}
