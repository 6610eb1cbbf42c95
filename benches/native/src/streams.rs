//! Many slow streams: one-way latency of messages that go around them at a modest rate.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headrace_client::{Client, ClientConfig, Offer, Publication, Subscription, SubscriptionHandlers};
use headrace_sys::idle::IdleStrategy;

use crate::stamp;

const FIRST_STREAM_ID: i32 = 1001;
const FRAGMENT_LIMIT: usize = 256;
// With what the kernel adds, some three thousand messages a second over all streams.
const PAUSE: Duration = Duration::from_micros(250);
const CONNECTION_MAX: Duration = Duration::from_secs(30);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(1);

/// Prints `READY` once all streams are connected, and then, after `samples` messages, each one's latency.
pub(crate) fn run(dir: &str, channel: &str, count: &str, samples: &str) -> Result<(), Box<dyn Error>> {
    let samples: usize = samples.parse()?;
    let client = Client::connect(ClientConfig {
        directory: dir.into(),
        ..ClientConfig::default()
    })?;
    let stream_ids = FIRST_STREAM_ID..FIRST_STREAM_ID + count.parse::<i32>()?;
    let subscriptions = stream_ids
        .clone()
        .map(|id| client.add_subscription(channel, id, SubscriptionHandlers::default()))
        .collect::<Result<Vec<Subscription>, _>>()?;
    let publications = stream_ids
        .map(|id| client.add_publication(channel, id))
        .collect::<Result<Vec<Publication>, _>>()?;
    let begun = Instant::now();
    while !(subscriptions.iter().all(Subscription::is_connected)
        && publications.iter().all(|publication| publication.is_connected()))
    {
        if begun.elapsed() > CONNECTION_MAX {
            let count = publications
                .iter()
                .filter(|publication| publication.is_connected())
                .count();
            return Err(format!(
                "{count} of {} streams connected in {CONNECTION_MAX:?}",
                publications.len()
            )
            .into());
        }
        std::thread::sleep(LOOK_AGAIN_AFTER);
    }
    println!("READY");
    let (epoch, running) = (Instant::now(), AtomicBool::new(true));
    let durations_ns = std::thread::scope(|scope| -> Result<Vec<u64>, Box<dyn Error>> {
        let publisher = scope.spawn(|| publish(&publications, epoch, &running));
        let measured = measure(&subscriptions, epoch, samples, &running);
        running.store(false, Ordering::Relaxed);
        publisher.join().map_err(|_| "the publisher thread panicked")??;
        measured
    })?;
    durations_ns.iter().for_each(|duration| println!("{duration}"));
    Ok(())
}

fn publish(publications: &[Publication], epoch: Instant, running: &AtomicBool) -> Result<(), String> {
    for publication in publications.iter().cycle() {
        if !running.load(Ordering::Relaxed) {
            break;
        }
        match publication.offer(&stamp::message(epoch)) {
            // At the end of a term the message is left out.
            Ok(Offer::Position(_) | Offer::AdminAction) => {}
            refused => {
                running.store(false, Ordering::Relaxed);
                return Err(format!("an offer to a slow stream gave {refused:?}"));
            }
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Durations from offer to handler; the first tenth warms up.
fn measure(
    subscriptions: &[Subscription],
    epoch: Instant,
    samples: usize,
    running: &AtomicBool,
) -> Result<Vec<u64>, Box<dyn Error>> {
    let mut idle = IdleStrategy::default();
    let mut durations_ns = Vec::with_capacity(samples + samples / 10 + FRAGMENT_LIMIT);
    let mut wrong = None;
    while running.load(Ordering::Relaxed) && durations_ns.len() < samples + samples / 10 {
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
    Ok(durations_ns.split_off(durations_ns.len().min(samples / 10)))
}
