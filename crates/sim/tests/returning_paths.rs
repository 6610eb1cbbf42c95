//! A subscription with destinations that is closed and comes back at once, while its image is still there.

mod common;

use common::{CHANNEL, MILLISECOND, Reader, SECOND, STREAM, World, errors_of, is_accepted};
use headrace_client::{ClientError, Subscription};
use headrace_protocol::ErrorCode;

/// Longer than the agents take to close a socket, and shorter than the next look of the conductor at images.
const A_MOMENT: i64 = 50 * MILLISECOND;

/// Adds the destination as soon as the driver has closed what held its port.
fn add_destination(world: &World, subscription: &Subscription) {
    world.run_until(A_MOMENT, "the port is free", || {
        match subscription.destinations().add(CHANNEL) {
            Err(ClientError::Registration { code, .. }) => {
                assert_eq!(code, ErrorCode::ResourceTemporarilyUnavailable);
                false
            }
            other => other.is_ok(),
        }
    });
}

#[test]
fn its_port_is_free_its_publisher_knows_and_it_begins_without_destinations() {
    for manual in [
        "aeron:udp?control-mode=manual",
        "aeron:udp?control-mode=manual|tags=81",
    ] {
        let world = World::new(1);
        let [left, right] = world.pair();
        let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
        let publication = publisher.add_publication(CHANNEL, STREAM).unwrap();
        for turn in 0..3 {
            let mut reader = Reader::subscribe(&subscriber, manual, STREAM);
            assert!(
                reader.subscription.status().local_socket_addresses().is_empty(),
                "{manual}"
            );
            add_destination(&world, &reader.subscription);
            world.run_until(12 * SECOND, "a connection", || {
                publication.is_connected() && reader.subscription.is_connected()
            });
            world.run_until(SECOND, "room", || is_accepted(publication.offer(&[turn; 100])));
            world.run_until(SECOND, "the message", || reader.poll().len() == 1);
            assert_eq!(reader.messages, [[turn; 100]]);
            drop(reader);
            world.run_until(A_MOMENT, "the publisher knows that it left", || {
                !publication.is_connected()
            });
        }
        assert_eq!(errors_of(&left), [""; 0]);
    }
}

/// The receiver says goodbye to some senders a turn, and closes the socket in the next one.
#[test]
fn each_of_many_publishers_knows_that_it_left() {
    let world = World::new(2);
    let [left, right] = world.pair();
    let (publisher, subscriber) = (left.connect().unwrap(), right.connect().unwrap());
    let reader = Reader::subscribe(&subscriber, "aeron:udp?control-mode=manual", STREAM);
    reader.subscription.destinations().add(CHANNEL).unwrap();
    let publications: Vec<_> = (0..150)
        .map(|_| publisher.add_exclusive_publication(CHANNEL, STREAM).unwrap())
        .collect();
    world.run_until(12 * SECOND, "connections", || {
        publications.iter().all(|each| each.is_connected())
    });
    drop(reader);
    world.run_until(A_MOMENT, "each knows", || {
        publications.iter().all(|each| !each.is_connected())
    });
}
