//! Round trips with one busy thread a side: the client's thread invokes the client conductor and the driver.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use headrace_client::{Client, ClientConfig, Offer, Publication, Subscription, SubscriptionHandlers};
use headrace_driver::config::{DriverConfig, ThreadingMode};
use headrace_driver::{Invoker, MediaDriver};

const PING_STREAM_ID: i32 = 1002;
const PONG_STREAM_ID: i32 = 1003;
const LENGTH: usize = 32;

struct Side {
    client: Client,
    invoker: Invoker,
    // Closes the driver when the side is dropped; the invoker does its work until then.
    _driver: MediaDriver,
}

impl Side {
    fn start(dir: &str) -> Result<Self, Box<dyn Error>> {
        let config = DriverConfig {
            directory: dir.into(),
            threading_mode: Some(ThreadingMode::Invoker),
            dir_delete_on_start: true,
            dir_delete_on_shutdown: true,
            ..DriverConfig::default()
        };
        let driver = MediaDriver::launch(config)?;
        let invoker = driver.invoker().ok_or("the driver has no invoker")?;
        let driving = invoker.clone();
        let client = Client::connect(ClientConfig {
            directory: dir.into(),
            use_invoker: true,
            driver_invoker: Some(Arc::new(move || {
                driving.invoke();
            })),
            ..ClientConfig::default()
        })?;
        Ok(Self {
            client,
            invoker,
            _driver: driver,
        })
    }

    fn work(&self) -> Result<(), Box<dyn Error>> {
        self.client.invoke()?;
        self.invoker.invoke();
        Ok(())
    }

    fn send(&self, publication: &Publication, message: &[u8]) -> Result<(), Box<dyn Error>> {
        while !matches!(publication.offer(message)?, Offer::Position(_)) {
            self.work()?;
        }
        Ok(())
    }

    fn receive(&self, subscription: &Subscription, message: &mut [u8; LENGTH]) -> Result<(), Box<dyn Error>> {
        // What was offered leaves first, what has arrived is read at once, and the client's housekeeping comes last.
        loop {
            self.invoker.invoke();
            if subscription.poll(|payload, _| message.copy_from_slice(payload), 1)? > 0 {
                return Ok(());
            }
            self.client.invoke()?;
        }
    }
}

pub(crate) fn ping(dir: &str, ping: &str, pong: &str, samples: &str) -> Result<(), Box<dyn Error>> {
    let samples: usize = samples.parse()?;
    let side = Side::start(dir)?;
    let subscription = side
        .client
        .add_subscription(pong, PONG_STREAM_ID, SubscriptionHandlers::default())?;
    let publication = side.client.add_publication(ping, PING_STREAM_ID)?;
    while !(publication.is_connected() && subscription.is_connected()) {
        side.work()?;
    }
    let mut message: [u8; LENGTH] = std::array::from_fn(|index| index as u8);
    let sent = message;
    let mut durations_ns = Vec::with_capacity(samples);
    for sample in 0..samples + samples / 10 {
        let start = Instant::now();
        side.send(&publication, &message)?;
        side.receive(&subscription, &mut message)?;
        if sample >= samples / 10 {
            durations_ns.push(start.elapsed().as_nanos());
        }
    }
    if message != sent {
        return Err(format!("{sent:?} came back as {message:?}").into());
    }
    durations_ns.iter().for_each(|duration| println!("{duration}"));
    Ok(())
}

pub(crate) fn pong(dir: &str, ping: &str, pong: &str) -> Result<(), Box<dyn Error>> {
    let side = Side::start(dir)?;
    let subscription = side
        .client
        .add_subscription(ping, PING_STREAM_ID, SubscriptionHandlers::default())?;
    let publication = side.client.add_publication(pong, PONG_STREAM_ID)?;
    println!("READY");
    let mut message = [0u8; LENGTH];
    loop {
        side.receive(&subscription, &mut message)?;
        side.send(&publication, &message)?;
    }
}
