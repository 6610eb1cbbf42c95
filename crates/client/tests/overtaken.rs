//! Readers whose process did not run for so long that the driver gave their place away.

mod common;

use std::sync::{Arc, Mutex};

use headrace_buffers::Memory;
use headrace_client::{
    Action, Block, Client, Header, Offer, PollError, Publication, Subscription, SubscriptionHandlers,
};

use common::{FakeDriver, connect, driver, service_until_idle, undelivered};

/// One publication and a subscription linked to it.
struct Linked {
    fake: Arc<Mutex<FakeDriver>>,
    _client: Client,
    publication: Publication,
    subscription: Subscription,
    position: headrace_buffers::counters::Counter,
}

fn linked() -> Linked {
    let fake = FakeDriver::start();
    let (client, _) = connect(&fake);
    let publication = client.add_publication("aeron:ipc", 10).unwrap();
    let subscription = client
        .add_subscription("aeron:ipc", 10, SubscriptionHandlers::default())
        .unwrap();
    driver(&fake).connect(publication.registration_id(), 1 << 40);
    let position = driver(&fake).link(publication.registration_id(), subscription.registration_id());
    service_until_idle(&client);
    Linked {
        fake,
        _client: client,
        publication,
        subscription,
        position,
    }
}

fn send(it: &Linked, text: &str) {
    assert!(matches!(
        it.publication.offer(text.as_bytes()),
        Ok(Offer::Position(_))
    ));
}

/// What a poll says.
fn overtaken(it: &Linked, position: i64) -> Result<usize, PollError> {
    let session_id = it.publication.session_id();
    Err(PollError::Overtaken {
        session_id,
        stream_id: 10,
        position,
    })
}

fn undelivered_block(_: Block<'_>) {
    panic!("delivered");
}

#[test]
fn a_reader_whose_counter_is_another_ones_ends_and_leaves_it_alone() {
    let it = linked();
    send(&it, "one");
    assert_eq!(it.subscription.poll(|_, _| {}, 1), Ok(1));
    send(&it, "two");
    let image = it.subscription.images().remove(0);
    driver(&it.fake)
        .counters
        .set_registration_id(it.position.id(), 4711);
    assert_eq!(image.poll(undelivered, 10), overtaken(&it, 64));
    assert_eq!(it.position.get(), 64);
    assert!(image.is_closed());
    assert_eq!(image.poll(undelivered, 10), Ok(0));
}

#[test]
fn a_poll_that_loses_its_counter_stores_nothing() {
    for is_same_position in [true, false] {
        let it = linked();
        send(&it, "one");
        let image = it.subscription.images().remove(0);
        let steal = |_: &[u8], _: &Header<'_>| {
            if is_same_position {
                driver(&it.fake)
                    .counters
                    .set_registration_id(it.position.id(), 4711);
            } else {
                it.position.set(960);
            }
            Action::Commit
        };
        image.poll(steal, 10).unwrap();
        assert_eq!(it.position.get(), if is_same_position { 0 } else { 960 });
    }
}

#[test]
fn frames_of_a_later_lap_are_not_delivered() {
    for way in 0..3 {
        let it = linked();
        send(&it, "one");
        send(&it, "two");
        let image = it.subscription.images().remove(0);
        let id = it.publication.registration_id();
        // The log went on three terms and is where it was.
        let begin_lap = |offset: usize| {
            let term = it.fake.lock().unwrap().logs[&id].log.term(0).clone();
            term.put_i32(offset + 20, image.initial_term_id() + 3);
        };
        begin_lap(64);
        let mut texts = Vec::new();
        let outcome = image.poll(|payload, _| texts.push(payload.to_vec()), 10);
        assert_eq!(outcome, overtaken(&it, 0));
        assert_eq!(texts, [b"one"], "the first was still there");
        assert_eq!(it.position.get(), 0);

        let it = linked();
        send(&it, "one");
        let image = it.subscription.images().remove(0);
        let term = driver(&it.fake).logs[&it.publication.registration_id()]
            .log
            .term(0)
            .clone();
        term.put_i32(20, image.initial_term_id() + 3);
        let outcome = match way {
            0 => image.poll(undelivered, 10),
            1 => image.poll(undelivered, 10),
            _ => image.block_poll(undelivered_block, 1000),
        };
        assert_eq!(outcome, overtaken(&it, 0));
        assert!(image.is_closed());
    }
}
