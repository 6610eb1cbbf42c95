//! Images that come and go, and what polling them does to their position.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use headrace_client::{
    Action, Client, ClientError, Offer, PollError, PollLimit, Publication, Subscription, SubscriptionHandlers,
};
use headrace_protocol::command::Command;

use common::{FakeDriver, connect, driver, service_until_idle, undelivered};

const CHANNEL: &str = "aeron:ipc";

/// One publication and a subscription linked to it.
struct Linked {
    fake: Arc<Mutex<FakeDriver>>,
    client: Client,
    errors: common::Errors,
    publication: Publication,
    subscription: Subscription,
    position: headrace_buffers::counters::Counter,
    seen: Arc<Mutex<Vec<String>>>,
}

fn linked() -> Linked {
    let fake = FakeDriver::start();
    let (client, errors) = connect(&fake);
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let (came, went) = (Arc::clone(&seen), Arc::clone(&seen));
    let handlers = SubscriptionHandlers {
        available_image: Some(Arc::new(move |image| {
            came.lock().unwrap().push(format!("+{}", image.correlation_id()));
        })),
        unavailable_image: Some(Arc::new(move |image| {
            assert!(image.is_closed());
            went.lock()
                .unwrap()
                .push(format!("-{} at {}", image.correlation_id(), image.position()));
        })),
    };
    let publication = client.add_publication(CHANNEL, 10).unwrap();
    let subscription = client.add_subscription(CHANNEL, 10, handlers).unwrap();
    driver(&fake).connect(publication.registration_id(), 1 << 40);
    let position = driver(&fake).link(publication.registration_id(), subscription.registration_id());
    service_until_idle(&client);
    Linked {
        fake,
        client,
        errors,
        publication,
        subscription,
        position,
        seen,
    }
}

fn send(publication: &Publication, text: &str) {
    assert!(matches!(
        publication.offer(text.as_bytes()),
        Ok(Offer::Position(_))
    ));
}

/// Polls everything as text.
fn drain(subscription: &Subscription, limit: usize) -> Vec<String> {
    let mut texts = Vec::new();
    subscription
        .poll(
            |payload, _| texts.push(String::from_utf8(payload.to_vec()).unwrap()),
            limit,
        )
        .unwrap();
    texts
}

#[test]
fn an_image_comes_delivers_and_goes() {
    let it = linked();
    let id = it.publication.registration_id();
    assert_eq!(*it.seen.lock().unwrap(), [format!("+{id}")]);
    assert!(it.subscription.is_connected());
    let image = it
        .subscription
        .image_by_session_id(it.publication.session_id())
        .unwrap();
    assert_eq!(
        (image.source_identity(), image.stream_id(), image.join_position()),
        ("aeron:ipc", 10, 0)
    );
    assert_eq!(image.subscriber_position_id(), it.position.id());

    for text in ["one", "two", "three"] {
        send(&it.publication, text);
    }
    assert_eq!(drain(&it.subscription, 2), ["one", "two"]);
    assert_eq!((image.position(), it.position.get()), (128, 128));

    it.fake.lock().unwrap().logs[&id]
        .log
        .metadata()
        .put_end_of_stream_position_release(192);
    assert!(!image.is_end_of_stream());
    assert_eq!(drain(&it.subscription, 10), ["three"]);
    assert!(image.is_end_of_stream());

    driver(&it.fake).unlink(id, it.subscription.registration_id());
    service_until_idle(&it.client);
    assert_eq!(
        *it.seen.lock().unwrap(),
        [format!("+{id}"), format!("-{id} at 192")]
    );
    assert!(!it.subscription.is_connected());
    // The driver reuses the counter; the closed image keeps its own values and leaves the counter alone.
    it.position.set(7);
    send(&it.publication, "late");
    assert_eq!(image.poll(undelivered, 10), Ok(0));
    assert_eq!(
        (image.position(), image.is_end_of_stream(), it.position.get()),
        (192, true, 7)
    );
    assert_eq!(
        (image.active_transport_count(), image.is_publication_revoked()),
        (0, false)
    );
}

#[test]
fn a_header_tells_where_its_fragment_is() {
    let it = linked();
    send(&it.publication, "some text of thirty-three bytes..");
    let count = it.subscription.poll(
        |payload, header| {
            assert_eq!(payload.len(), 33);
            assert_eq!(
                (header.frame_length(), header.term_offset(), header.position()),
                (65, 0, 96)
            );
            assert_eq!((header.term_id(), header.initial_term_id()), (7, 7));
            assert_eq!(
                (header.session_id(), header.stream_id()),
                (it.publication.session_id(), 10)
            );
            assert_eq!((header.flags(), header.reserved_value()), (0xC0, 0));
        },
        1,
    );
    assert_eq!(count, Ok(1));
}

#[test]
fn the_same_image_can_come_again() {
    let it = linked();
    let (id, subscription_id) = (
        it.publication.registration_id(),
        it.subscription.registration_id(),
    );
    driver(&it.fake).unlink(id, subscription_id);
    service_until_idle(&it.client);
    assert_eq!(it.subscription.image_count(), 0);
    driver(&it.fake).announce(id, subscription_id, it.position.id());
    // Said twice, it is still one image.
    driver(&it.fake).announce(id, subscription_id, it.position.id());
    service_until_idle(&it.client);
    assert_eq!(it.subscription.image_count(), 1);
    send(&it.publication, "again");
    assert_eq!(drain(&it.subscription, 10), ["again"]);
}

#[test]
fn images_of_a_closed_subscription_go_with_it() {
    let it = linked();
    let id = it.publication.registration_id();
    let image = it.subscription.images().remove(0);
    it.subscription.close();
    it.subscription.close();
    assert_eq!(it.seen.lock().unwrap()[1..], [format!("-{id} at 0")]);
    assert!(image.is_closed() && it.subscription.is_closed());
    assert_eq!(it.subscription.poll(|_, _| {}, 1), Err(PollError::Closed));
    assert_eq!(
        image.reject("too late"),
        Err(ClientError::Closed { what: "image" })
    );
    // No handler gets what the driver says of it from here on.
    driver(&it.fake).unlink(id, it.subscription.registration_id());
    driver(&it.fake).announce(id, it.subscription.registration_id(), it.position.id());
    service_until_idle(&it.client);
    assert_eq!(it.seen.lock().unwrap().len(), 2);
}

#[test]
fn an_image_whose_log_is_missing_is_reported() {
    let it = linked();
    driver(&it.fake).make_log(5000, 10, common::TERM_LENGTH);
    let path = driver(&it.fake).logs[&5000].path.clone();
    std::fs::remove_file(&path).unwrap();
    driver(&it.fake).announce(5000, it.subscription.registration_id(), it.position.id());
    driver(&it.fake).make_log(5001, 10, common::TERM_LENGTH);
    driver(&it.fake).announce(5001, it.subscription.registration_id(), i32::MAX);
    service_until_idle(&it.client);
    let errors = it.errors.lock().unwrap();
    assert_eq!(errors.len(), 2);
    assert!(errors[0].to_string().contains(&path), "{}", errors[0]);
    assert!(
        errors[1].to_string().contains("counter_id=2147483647"),
        "{}",
        errors[1]
    );
    assert_eq!(it.subscription.image_count(), 1);
}

#[derive(Debug, PartialEq)]
enum Failure {
    Poll(PollError),
    Handler(&'static str),
}

impl From<PollError> for Failure {
    fn from(error: PollError) -> Self {
        Self::Poll(error)
    }
}

#[test]
fn an_error_in_a_handler_stops_the_poll_behind_the_fragment() {
    let it = linked();
    for text in ["one", "two", "three"] {
        send(&it.publication, text);
    }
    let mut count = 0;
    let result = it.subscription.poll(
        |_, _| {
            count += 1;
            if count == 2 {
                Err(Failure::Handler("second"))
            } else {
                Ok(())
            }
        },
        10,
    );
    assert_eq!(result, Err(Failure::Handler("second")));
    assert_eq!((count, it.position.get()), (2, 128));
    assert_eq!(drain(&it.subscription, 10), ["three"]);
}

#[test]
fn a_panic_in_a_handler_loses_nothing_either() {
    let it = linked();
    send(&it.publication, "one");
    send(&it.publication, "two");
    let panic = catch_unwind(AssertUnwindSafe(|| it.subscription.poll(undelivered, 10)));
    assert!(panic.is_err());
    assert_eq!(it.position.get(), 64);
    assert_eq!(drain(&it.subscription, 10), ["two"]);
}

#[test]
fn polling_inside_a_handler_is_refused() {
    let it = linked();
    send(&it.publication, "one");
    let image = it.subscription.images().remove(0);
    let mut refusals = Vec::new();
    it.subscription
        .poll(
            |_, _| {
                refusals.push(it.subscription.poll(|_, _| {}, 1));
                refusals.push(image.poll(|_, _| {}, 1));
            },
            1,
        )
        .unwrap();
    assert_eq!(
        refusals,
        [
            Err(PollError::Busy { what: "subscription" }),
            Err(PollError::Busy { what: "image" })
        ]
    );
}

#[test]
fn a_second_polling_thread_is_refused_and_may_go_on_later() {
    let it = linked();
    let poller = it.subscription.poll_guard().unwrap();
    let elsewhere =
        || std::thread::scope(|scope| scope.spawn(|| it.subscription.poll(|_, _| {}, 1)).join().unwrap());
    assert_eq!(elsewhere(), Err(PollError::Busy { what: "subscription" }));
    drop(poller);
    assert_eq!(elsewhere(), Ok(0));
}

#[test]
fn a_controlled_handler_steers() {
    let it = linked();
    for text in ["a", "b", "c", "d"] {
        send(&it.publication, text);
    }
    let mut actions = [Action::Continue, Action::Abort].into_iter();
    let count = it.subscription.poll(|_, _| actions.next().unwrap(), 10);
    assert_eq!((count, it.position.get()), (Ok(1), 64));
    let count = it.subscription.poll(
        |payload, _| {
            assert_eq!(payload, b"b", "the aborted fragment comes again");
            Action::Break
        },
        10,
    );
    assert_eq!((count, it.position.get()), (Ok(1), 128));
    let mut positions = Vec::new();
    let count = it.subscription.poll(
        |_, _| {
            positions.push(it.position.get());
            Action::Commit
        },
        10,
    );
    assert_eq!((count, positions), (Ok(2), vec![128, 192]));
}

#[test]
fn a_bounded_poll_stops_at_its_limit() {
    let it = linked();
    for text in ["a", "b", "c"] {
        send(&it.publication, text);
    }
    let image = it.subscription.images().remove(0);
    assert_eq!(image.poll(|_, _| {}, PollLimit::fragments(10).before(0)), Ok(0));
    // A fragment that begins before the limit is delivered whole.
    assert_eq!(image.poll(|_, _| {}, PollLimit::fragments(10).before(65)), Ok(2));
    assert_eq!(image.poll(|_, _| {}, PollLimit::fragments(10).before(100)), Ok(0));
    assert_eq!(
        image.poll(|_, _| Action::Abort, PollLimit::fragments(10).before(i64::MAX)),
        Ok(0)
    );
    assert_eq!(
        image.poll(|_, _| Action::Continue, PollLimit::fragments(10).before(i64::MAX)),
        Ok(1)
    );
    assert_eq!(it.position.get(), 192);
}

#[test]
fn a_block_is_a_run_of_whole_frames() {
    let it = linked();
    for text in ["a", "b", "c"] {
        send(&it.publication, text);
    }
    let mut blocks = Vec::new();
    for _ in 0..3 {
        it.subscription
            .block_poll(
                |block| blocks.push((block.bytes.len(), block.term_offset, block.term_id)),
                130,
            )
            .unwrap();
    }
    assert_eq!(blocks, [(128, 0, 7), (64, 128, 7)]);
    assert_eq!(it.position.get(), 192);
}

#[test]
fn padding_at_the_end_of_a_term_is_passed_over_unseen() {
    let it = linked();
    let message = vec![9; 1000];
    let mut delivered = 0;
    let mut accepted = 0;
    // More than one term of messages that do not divide it.
    while accepted < 100 {
        match it.publication.offer(&message).unwrap() {
            Offer::Position(_) => accepted += 1,
            other => assert_eq!(other, Offer::AdminAction),
        }
        delivered += it
            .subscription
            .poll(|payload, _| assert_eq!(payload, message), 10)
            .unwrap();
    }
    delivered += it.subscription.poll(|_, _| {}, 10).unwrap();
    assert_eq!(delivered, 100);
    assert_eq!(it.position.get(), it.publication.position().unwrap());
}

#[test]
fn images_take_turns() {
    let it = linked();
    let second = it.client.add_exclusive_publication(CHANNEL, 10).unwrap();
    driver(&it.fake).connect(second.registration_id(), 1 << 40);
    driver(&it.fake).link(second.registration_id(), it.subscription.registration_id());
    service_until_idle(&it.client);
    for _ in 0..4 {
        send(&it.publication, "first");
        second.offer(b"second").unwrap();
    }
    let turns: Vec<_> = (0..4).map(|_| drain(&it.subscription, 1).remove(0)).collect();
    assert_eq!(turns, ["first", "second", "first", "second"]);
    // What one image leaves of the limit is for the next.
    assert_eq!(drain(&it.subscription, 10).len(), 4);
}

#[test]
fn closing_inside_a_handler_ends_the_poll() {
    let it = linked();
    send(&it.publication, "one");
    send(&it.publication, "two");
    let image = it.subscription.images().remove(0);
    let count = it.subscription.poll(|_, _| it.subscription.close(), 10);
    assert_eq!((count, it.position.get()), (Ok(1), 0));
    assert_eq!(image.position(), 64, "the handler got it");
}

#[test]
fn rejecting_names_the_image_and_where_it_stands() {
    let it = linked();
    send(&it.publication, "bad");
    drain(&it.subscription, 1);
    let image = it.subscription.images().remove(0);
    image.reject("not understood").unwrap();
    match driver(&it.fake).last_command() {
        Command::RejectImage {
            image_correlation_id,
            position,
            reason,
            ..
        } => {
            assert_eq!((image_correlation_id, position), (image.correlation_id(), 64));
            assert_eq!(reason, "not understood");
        }
        other => panic!("{other:?}"),
    }
    let error = image.reject(&"x".repeat(1024)).unwrap_err();
    assert!(error.to_string().contains("reason_length=1024"), "{error}");
}

#[test]
fn a_spy_may_not_reject() {
    let it = linked();
    let spy = it
        .client
        .add_subscription("aeron-spy:aeron:udp?endpoint=a:1", 10, Default::default())
        .unwrap();
    driver(&it.fake).link(it.publication.registration_id(), spy.registration_id());
    service_until_idle(&it.client);
    let error = spy.images()[0].reject("no").unwrap_err();
    assert!(error.to_string().contains("spy"), "{error}");
}

#[test]
fn an_exclusive_publication_has_one_writer() {
    let it = linked();
    let publication = it.client.add_exclusive_publication(CHANNEL, 11).unwrap();
    driver(&it.fake).connect(publication.registration_id(), 1 << 40);
    let writer = publication.writer().unwrap();
    let elsewhere = || std::thread::scope(|scope| scope.spawn(|| publication.offer(b"x")).join().unwrap());
    assert_eq!(elsewhere(), Err(headrace_client::OfferError::Busy));
    drop(writer);
    assert_eq!(elsewhere(), Ok(Offer::Position(64)));
    assert_eq!(publication.append_padding(32), Ok(Offer::Position(128)));
    assert_eq!(publication.position(), Some(128));
    publication.close();
    assert_eq!(publication.offer(b"x"), Ok(Offer::Closed));
    assert_eq!(publication.append_padding(32), Ok(Offer::Closed));
    assert_eq!(publication.offer_block(&[0; 64]), Ok(Offer::Closed));
}

#[test]
fn a_claim_is_seen_when_committed_and_skipped_when_aborted() {
    let it = linked();
    let claim = |length| match it.publication.try_claim(length) {
        Ok(headrace_client::ClaimResult::Claimed(claim)) => claim,
        other => panic!("{other:?}"),
    };
    let mut first = claim(5);
    claim(40).abort();
    drop(claim(8));
    send(&it.publication, "after");
    assert!(
        drain(&it.subscription, 10).is_empty(),
        "nothing is read past an open claim"
    );
    first.buffer_mut().copy_from_slice(b"first");
    first.set_reserved_value(77);
    assert!(first.commit());
    let mut reserved = 0;
    it.subscription
        .poll(|_, header| reserved = header.reserved_value(), 1)
        .unwrap();
    assert_eq!(reserved, 77);
    assert_eq!(drain(&it.subscription, 10), ["after"]);
    let error = it.publication.try_claim(1377).unwrap_err();
    assert!(error.to_string().contains("max_payload_length=1376"), "{error}");
}

#[test]
fn a_position_that_another_process_spoiled_does_not_panic() {
    let it = linked();
    // Full terms, so that a frame is at each position.
    for _ in 0..3 {
        while it.publication.offer(&[]).unwrap() != Offer::AdminAction {}
    }
    for position in [-1, -32, i64::MIN, i64::MAX, i64::MAX & !31, 5, 1 << 46] {
        for way in 0..4 {
            let counter = driver(&it.fake).link(
                it.publication.registration_id(),
                it.subscription.registration_id(),
            );
            service_until_idle(&it.client);
            let image = it.subscription.images().pop().unwrap();
            counter.set(position);
            let outcome = match way {
                0 => image.poll(|_, _| {}, 10),
                1 => image.poll(|_, _| Action::Commit, 10),
                2 => image.block_poll(|_| {}, 1000),
                _ => image.poll(undelivered, PollLimit::fragments(10).before(i64::MIN)),
            };
            assert!(
                matches!(outcome, Ok(_) | Err(PollError::Overtaken { .. })),
                "{outcome:?}"
            );
        }
    }
}

/// A second publisher's image on the subscription of [`linked`].
fn link_another(it: &Linked) -> headrace_client::ExclusivePublication {
    let publication = it.client.add_exclusive_publication(CHANNEL, 10).unwrap();
    driver(&it.fake).connect(publication.registration_id(), 1 << 40);
    driver(&it.fake).link(publication.registration_id(), it.subscription.registration_id());
    service_until_idle(&it.client);
    publication
}

#[test]
fn a_poll_that_is_told_to_stop_takes_nothing_of_other_images() {
    let it = linked();
    let others = [link_another(&it), link_another(&it)];
    let mut sent = Vec::new();
    for number in 0..4 {
        send(&it.publication, &format!("0-{number}"));
        sent.push(format!("0-{number}"));
        for (index, other) in others.iter().enumerate() {
            let text = format!("{}-{number}", index + 1);
            assert!(matches!(other.offer(text.as_bytes()), Ok(Offer::Position(_))));
            sent.push(text);
        }
    }
    let mut came = Vec::new();
    loop {
        let before = came.len();
        let count = it.subscription.poll_while(
            |payload, _| {
                came.push(String::from_utf8(payload.to_vec()).unwrap());
                Ok::<_, PollError>(false)
            },
            usize::MAX,
        );
        assert_eq!(count, Ok(came.len() - before));
        if came.len() == before {
            break;
        }
        assert_eq!(came.len(), before + 1, "one message for each poll");
    }
    came.sort_unstable();
    sent.sort_unstable();
    assert_eq!(came, sent);
}

#[test]
fn a_break_stops_one_image_and_the_poll_goes_on_with_the_next() {
    let it = linked();
    let other = link_another(&it);
    for _ in 0..2 {
        send(&it.publication, "a");
        assert!(matches!(other.offer(b"b"), Ok(Offer::Position(_))));
    }
    let mut came = Vec::new();
    let mut poll = |action| {
        it.subscription
            .poll(
                |payload, _| {
                    came.push(payload[0]);
                    action
                },
                10,
            )
            .unwrap()
    };
    assert_eq!(
        (poll(Action::Break), poll(Action::Abort), poll(Action::Break)),
        (2, 0, 2)
    );
    for turn in came.chunks_mut(2) {
        turn.sort_unstable();
        assert_eq!(turn, b"ab");
    }
}

#[test]
fn a_poll_that_meets_only_padding_looks_into_the_next_term() {
    let it = linked();
    let length = it.publication.limits().max_message_length;
    let mut sent = 0;
    // Until padding ends the first term: messages of an eighth of a term do not fill it.
    while it.publication.position() < Some(common::TERM_LENGTH as i64) {
        match it.publication.offer(&vec![1; length]) {
            Ok(Offer::Position(_)) => sent += 1,
            other => assert!(matches!(other, Ok(Offer::AdminAction)), "{other:?}"),
        }
    }
    let take = || {
        let mut whole = None;
        let mut assembler = headrace_client::FragmentAssembler::new();
        it.subscription
            .poll_while(
                |payload, header| {
                    whole = assembler.on_fragment(payload, header, |message, _| message.len());
                    Ok::<_, PollError>(whole.is_none())
                },
                usize::MAX,
            )
            .unwrap();
        whole
    };
    for number in 0..sent {
        assert_eq!(take(), Some(length), "message {number} of {sent}");
    }
    assert_eq!(take(), None);
}
