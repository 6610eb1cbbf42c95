//! One-way latency of a stream at a modest rate: publisher and subscriber thread, a driver in another process.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headrace_client::{Client, ClientConfig, Offer, Publication, Subscription, SubscriptionHandlers};
use headrace_sys::idle::IdleStrategy;

const LENGTH: usize = 32;
const FRAGMENT_LIMIT: usize = 256;
// With what the kernel adds, about ten thousand messages a second.
const PAUSE: Duration = Duration::from_micros(50);

pub(crate) fn run(dir: &str, channel: &str, stream_id: &str, samples: &str) -> Result<(), Box<dyn Error>> {
    let samples: usize = samples.parse()?;
    let client = Client::connect(ClientConfig {
        directory: dir.into(),
        ..ClientConfig::default()
    })?;
    let stream_id = stream_id.parse()?;
    let subscription = client.add_subscription(channel, stream_id, SubscriptionHandlers::default())?;
    let publication = client.add_publication(channel, stream_id)?;
    let (epoch, running) = (Instant::now(), AtomicBool::new(true));
    let durations_ns = std::thread::scope(|scope| -> Result<Vec<u64>, Box<dyn Error>> {
        let publisher = scope.spawn(|| publish(&publication, epoch, &running));
        let measured = measure(&subscription, epoch, samples);
        running.store(false, Ordering::Relaxed);
        publisher.join().map_err(|_| "the publisher thread panicked")??;
        measured
    })?;
    durations_ns.iter().for_each(|duration| println!("{duration}"));
    Ok(())
}

fn since(epoch: Instant) -> u64 {
    u64::try_from(epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn publish(publication: &Publication, epoch: Instant, running: &AtomicBool) -> Result<(), String> {
    let mut message = [0u8; LENGTH];
    while running.load(Ordering::Relaxed) {
        message[..8].copy_from_slice(&since(epoch).to_le_bytes());
        // Nothing waits for room: a message that finds none is not a sample.
        let _: Offer = publication.offer(&message).map_err(|error| error.to_string())?;
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Durations from offer to handler; the first tenth warms up.
fn measure(subscription: &Subscription, epoch: Instant, samples: usize) -> Result<Vec<u64>, Box<dyn Error>> {
    let mut idle = IdleStrategy::default();
    let mut durations_ns = Vec::with_capacity(samples + samples / 10 + FRAGMENT_LIMIT);
    while durations_ns.len() < samples + samples / 10 {
        let taken = subscription.poll(
            |payload, _| {
                if let Some(sent) = payload.first_chunk() {
                    durations_ns.push(since(epoch).saturating_sub(u64::from_le_bytes(*sent)));
                }
            },
            FRAGMENT_LIMIT,
        )?;
        idle.idle(taken);
    }
    Ok(durations_ns.split_off(samples / 10))
}
