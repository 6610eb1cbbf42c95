//! One-way latency of a stream at a modest rate: publisher and subscriber thread, drivers in other processes.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headrace_client::{Offer, Publication, Subscription, SubscriptionHandlers};
use headrace_sys::idle::IdleStrategy;

use crate::clients::Clients;
use crate::stamp;

const FRAGMENT_LIMIT: usize = 256;
// With what the kernel adds, about ten thousand messages a second.
const PAUSE: Duration = Duration::from_micros(50);

/// `subscribers` are pairs of a driver's directory and a channel; none is one subscriber beside the publisher.
pub(crate) fn run(
    dir: &str,
    channel: &str,
    [stream_id, samples]: [&str; 2],
    subscribers: &[&str],
) -> Result<(), Box<dyn Error>> {
    let (stream_id, samples) = (stream_id.parse()?, samples.parse()?);
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
        subscriptions.push(client.add_subscription(pair[1], stream_id, SubscriptionHandlers::default())?);
    }
    let publication = clients.of(dir)?.add_publication(channel, stream_id)?;
    let (epoch, running) = (Instant::now(), AtomicBool::new(true));
    let durations_ns = std::thread::scope(|scope| -> Result<Vec<u64>, Box<dyn Error>> {
        let publisher = scope.spawn(|| publish(&publication, epoch, &running));
        let measured = measure(&subscriptions, epoch, samples);
        running.store(false, Ordering::Relaxed);
        publisher.join().map_err(|_| "the publisher thread panicked")??;
        measured
    })?;
    durations_ns.iter().for_each(|duration| println!("{duration}"));
    Ok(())
}

fn publish(publication: &Publication, epoch: Instant, running: &AtomicBool) -> Result<(), String> {
    while running.load(Ordering::Relaxed) {
        // Nothing waits for room: a message that finds none is not a sample.
        let _: Offer = publication
            .offer(&stamp::message(epoch))
            .map_err(|error| error.to_string())?;
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Durations from offer to handler, of all subscribers together; the first tenth warms up.
fn measure(
    subscriptions: &[Subscription],
    epoch: Instant,
    samples: usize,
) -> Result<Vec<u64>, Box<dyn Error>> {
    let mut idle = IdleStrategy::default();
    let mut durations_ns = Vec::with_capacity(samples + samples / 10 + FRAGMENT_LIMIT);
    let mut wrong = None;
    while durations_ns.len() < samples + samples / 10 {
        let mut taken = 0;
        for subscription in subscriptions {
            taken += subscription.poll(
                |payload, _| {
                    let age_ns = stamp::age_ns(payload, epoch);
                    age_ns.map_or_else(|text| wrong = Some(text), |age_ns| durations_ns.push(age_ns));
                },
                FRAGMENT_LIMIT,
            )?;
        }
        if let Some(text) = wrong {
            return Err(text.into());
        }
        idle.idle(taken);
    }
    Ok(durations_ns.split_off(samples / 10))
}
