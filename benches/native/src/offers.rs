//! What an offer costs its publisher while a number of subscribers reads the stream.

use std::error::Error;
use std::time::Instant;

use headrace_client::{Client, ClientConfig, Offer, Publication, Subscription, SubscriptionHandlers};

const STREAM_ID: i32 = 1001;
const LENGTH: usize = 32;
// A burst fits in the window of a term of 64 KiB, so that no timed offer finds it full.
const BURST: usize = 256;
const FRAGMENT_LIMIT: usize = 2 * BURST;
const CLOSED: &str = "the publication is closed";

/// Prints nanoseconds an offer, one burst a line. One thread publishes and reads, and times the offers alone.
pub(crate) fn run(dir: &str, channel: &str, subscribers: &str, bursts: &str) -> Result<(), Box<dyn Error>> {
    let bursts: usize = bursts.parse()?;
    let client = Client::connect(ClientConfig {
        directory: dir.into(),
        ..ClientConfig::default()
    })?;
    let subscriptions = (0..subscribers.parse()?)
        .map(|_| client.add_subscription(channel, STREAM_ID, SubscriptionHandlers::default()))
        .collect::<Result<Vec<Subscription>, _>>()?;
    let publication = client.add_publication(channel, STREAM_ID)?;
    while !subscriptions.iter().all(Subscription::is_connected) {
        std::thread::yield_now();
    }
    let message = [7u8; LENGTH];
    for burst in 0..bursts + bursts / 10 {
        let wanted = publication.position().ok_or(CLOSED)? + (BURST * 2 * LENGTH) as i64;
        while publication.position_limit().ok_or(CLOSED)? < wanted {
            std::thread::yield_now();
        }
        let start = Instant::now();
        for _ in 0..BURST {
            offer(&publication, &message)?;
        }
        let elapsed_ns = start.elapsed().as_nanos() as f64;
        for subscription in &subscriptions {
            read(subscription)?;
        }
        if burst >= bursts / 10 {
            println!("{}", elapsed_ns / BURST as f64);
        }
    }
    Ok(())
}

fn offer(publication: &Publication, message: &[u8]) -> Result<(), Box<dyn Error>> {
    loop {
        match publication.offer(message)? {
            Offer::Position(_) => return Ok(()),
            // The stream moves on to its next term.
            Offer::AdminAction => {}
            refused => return Err(format!("an offer found no room: {refused:?}").into()),
        }
    }
}

/// Reads one burst, and finds that it is what was offered.
fn read(subscription: &Subscription) -> Result<(), Box<dyn Error>> {
    let (mut count, mut is_whole) = (0, true);
    while count < BURST {
        count += subscription.poll(|payload, _| is_whole &= payload == [7; LENGTH], FRAGMENT_LIMIT)?;
    }
    if count == BURST && is_whole {
        Ok(())
    } else {
        Err(format!("{count} messages came for {BURST}, as they were sent: {is_whole}").into())
    }
}
