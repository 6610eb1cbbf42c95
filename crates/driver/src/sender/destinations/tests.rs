//! Who is on the list, who leaves it, and whom it serves.

use headrace_buffers::AtomicBuffer;
use headrace_buffers::counters::Counter;

use super::*;
use crate::endpoint::{AddedDestination, DestinationChange};
use crate::names::Following;

const S: i64 = 1_000_000_000;

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn reached(destinations: &Destinations) -> Vec<String> {
    let mut reached = Vec::new();
    destinations.send_to_each(1, |route| {
        reached.push(route.to.map_or("peer".to_owned(), |address| address.to_string()));
        Some(1)
    });
    reached
}

impl Destinations {
    /// One of a stream, at a position that fits.
    fn status_message(&mut self, receiver_id: i64, source: SocketAddr, now_ns: i64) -> Heard {
        let heard = self.speaker(receiver_id, source, now_ns);
        if heard == Heard::Known {
            self.on_status_message(receiver_id, source, now_ns);
        }
        heard
    }

    fn manual(&mut self) -> &mut ManualDestinations {
        match self {
            Self::Manual(manual) => manual,
            _ => panic!("clients add nothing to this channel"),
        }
    }

    fn add(&mut self, registration_id: i64, name: &str) {
        let added = AddedDestination {
            registration_id,
            name: name.to_owned(),
            address: name.parse().ok(),
            group: None,
        };
        self.change(DestinationChange::Add(added));
    }

    fn change(&mut self, change: DestinationChange) -> Changed {
        self.manual().change(change, 0)
    }

    fn remove(&mut self, name: &str, address: &str) -> Changed {
        self.change(DestinationChange::Remove {
            name: name.to_owned(),
            address: at(address),
            interface: None,
        })
    }
}

fn counter() -> Counter {
    Counter::new(AtomicBuffer::allocate(128), 0).unwrap()
}

#[test]
fn a_connected_socket_has_its_peer_and_learns_no_other() {
    let mut destinations = Destinations::new(&SendDestinations::Connected);
    assert_eq!(destinations.status_message(1, at("10.0.0.2:5"), 0), Heard::Known);
    assert_eq!(reached(&destinations), ["peer"]);
    assert_eq!(destinations.send_to_each(8, |_| Some(3)), 3);
    assert_eq!(destinations.send_to_each(8, |_| None), 0);
}

#[test]
fn a_stream_of_responses_that_no_receiver_asked_for_goes_nowhere() {
    let mut destinations = Destinations::new(&SendDestinations::Response);
    assert_eq!(destinations.status_message(1, at("10.0.0.2:5"), 0), Heard::Known);
    assert_eq!(reached(&destinations), [""; 0]);
    assert_eq!(destinations.send_to_each(8, |_| Some(8)), 0);
    let answered = destinations.answer_to(at("10.0.0.2:5"), None);
    assert_eq!(answered.to, Some(at("10.0.0.2:5")));
}

#[test]
fn receivers_are_learnt_once_they_have_the_stream_and_forgotten_in_silence() {
    let count = counter();
    let mut destinations = Destinations::new(&SendDestinations::Dynamic(count.clone()));
    assert_eq!(
        destinations.send_to_each(8, |_| Some(0)),
        8,
        "none there: all is sent"
    );
    for _ in 0..2 {
        assert_eq!(
            destinations.status_message(1, at("10.0.0.2:5"), 0),
            Heard::Newcomer
        );
    }
    assert_eq!((reached(&destinations).len(), count.get()), (0, 0));
    assert!(destinations.admit(1, at("10.0.0.2:5"), 0));
    assert_eq!(
        destinations.status_message(2, at("10.0.0.3:5"), S),
        Heard::Newcomer
    );
    assert!(destinations.admit(2, at("10.0.0.3:5"), S));
    assert_eq!(count.get(), 2);
    // Behind a translation of addresses only the port stays.
    assert_eq!(
        destinations.status_message(1, at("10.0.0.9:5"), 4 * S),
        Heard::Known
    );
    destinations.begin_turn(6 * S + 1);
    assert_eq!(
        (reached(&destinations), count.get()),
        (vec!["10.0.0.2:5".to_owned()], 1)
    );
    destinations.begin_turn(9 * S + 1);
    assert_eq!((reached(&destinations).len(), count.get()), (0, 0));
}

#[test]
fn the_list_does_not_grow_without_end() {
    let mut destinations = Destinations::new(&SendDestinations::Dynamic(counter()));
    let from = |port| SocketAddr::from(([10, 0, 0, 2], port));
    for port in 0..LEARNT_MAX as u16 {
        assert!(destinations.admit(i64::from(port), from(port), 0));
    }
    assert!(!destinations.admit(-1, from(u16::MAX), 0));
    assert_eq!(destinations.status_message(0, from(0), 0), Heard::Known);
}

#[test]
fn an_added_destination_may_speak_from_another_of_its_addresses_until_it_is_heard() {
    let mut destinations = Destinations::new(&SendDestinations::Manual(counter()));
    destinations.add(1, "10.0.0.1:5");
    destinations.add(2, "10.0.0.2:5");
    let mut hear = |receiver_id, source, now_ns| destinations.status_message(receiver_id, at(source), now_ns);
    assert_eq!(hear(1, "10.0.0.1:5", 0), Heard::Known);
    assert_eq!(hear(2, "10.0.1.2:6", 0), Heard::Stranger, "another port");
    assert_eq!(hear(2, "10.0.1.2:5", 0), Heard::Possible);
    assert!(destinations.admit(2, at("10.0.1.2:5"), 0));
    let mut hear = |receiver_id, source, now_ns| destinations.status_message(receiver_id, at(source), now_ns);
    assert_eq!(hear(2, "10.0.1.2:5", S), Heard::Known);
    assert_eq!(hear(3, "10.0.1.3:5", S), Heard::Stranger, "each has been heard");
    assert_eq!(hear(4, "10.0.0.1:5", S), Heard::Known, "the first began again");
    assert_eq!(hear(5, "10.0.1.2:5", 6 * S), Heard::Stranger);
    assert_eq!(
        hear(5, "10.0.1.2:5", 6 * S + 1),
        Heard::Possible,
        "the second may have"
    );
    assert_eq!(reached(&destinations).len(), 2);
}

#[test]
fn added_destinations_stay_until_they_are_removed() {
    let count = counter();
    let mut destinations = Destinations::new(&SendDestinations::Manual(count.clone()));
    for (registration_id, name) in [
        (1, "10.0.0.2:5"),
        (2, "10.0.0.3:5"),
        (3, "10.0.0.2:5"),
        (4, "host:5"),
    ] {
        destinations.add(registration_id, name);
    }
    destinations.begin_turn(100 * S);
    assert_eq!(reached(&destinations), ["10.0.0.3:5", "10.0.0.2:5", "10.0.0.2:5"]);
    destinations.remove("10.0.0.2:5", "10.0.0.2:5");
    destinations.change(DestinationChange::RemoveById(2));
    destinations.change(DestinationChange::RemoveById(77));
    destinations.remove("other:5", "10.0.0.8:5");
    assert_eq!(
        (reached(&destinations), count.get()),
        (vec!["10.0.0.2:5".to_owned()], 2)
    );
}

#[test]
fn the_least_that_any_took_counts_but_one_that_cannot_be_reached_holds_no_other() {
    let mut destinations = Destinations::new(&SendDestinations::Manual(counter()));
    for (registration_id, name) in [(1, "10.0.0.1:5"), (2, "10.0.0.2:5"), (3, "10.0.0.3:5")] {
        destinations.add(registration_id, name);
    }
    let mut taken = [Some(8), None, Some(5)].into_iter();
    assert_eq!(destinations.send_to_each(8, |_| taken.next().flatten()), 5);
    assert_eq!(destinations.send_to_each(8, |_| None), 8);
    let mut calls = 0;
    let least = destinations.send_to_each(8, |_| {
        calls += 1;
        Some(0)
    });
    assert_eq!((least, calls), (0, 1), "the others have no room either");
}

#[test]
fn an_error_is_told_of_the_destination_that_was_added_for_its_receiver() {
    let mut destinations = Destinations::new(&SendDestinations::Manual(counter()));
    destinations.add(7, "10.0.0.1:5");
    let mut registration_id_of = |receiver_id, source, group| {
        let manual = destinations.manual();
        manual.registration_id_of(receiver_id, at(source), group)
    };
    assert_eq!(registration_id_of(9, "10.0.0.1:5", None), Some(7));
    assert_eq!(registration_id_of(8, "10.0.0.2:5", None), None);
    assert_eq!(
        registration_id_of(8, "10.0.0.2:5", Some(0)),
        Some(7),
        "through its sockets"
    );
    assert_eq!(registration_id_of(8, "10.0.0.2:5", Some(1)), None);
    assert_eq!(destinations.status_message(9, at("10.0.0.1:5"), 0), Heard::Known);
    let manual = destinations.manual();
    assert_eq!(manual.registration_id_of(9, at("192.168.0.1:5"), None), Some(7));
    assert_eq!(
        destinations.status_message(8, at("10.0.0.4:5"), 0),
        Heard::Stranger
    );
}

#[test]
fn a_silent_name_is_looked_up_again_once_in_a_while() {
    let mut destinations = Destinations::new(&SendDestinations::Manual(counter()));
    destinations.add(1, "host:5");
    destinations.add(2, "host:5");
    destinations.add(3, "10.0.0.1:5");
    let following = Following::within(S).unwrap();
    let mut take = |now_ns| destinations.manual().take_silent_name(following, now_ns);
    assert_eq!(take(S / 2), None);
    assert_eq!(take(S / 2 + 1).as_deref(), Some("host:5"));
    assert_eq!(take(S / 2 + 2), None);
    assert_eq!(take(S + 2).as_deref(), Some("host:5"));
    let mut move_it = || {
        destinations.change(DestinationChange::Move {
            name: "host:5".to_owned(),
            address: at("10.0.0.4:5"),
        })
    };
    assert_eq!((move_it(), move_it()), (Changed::Moved, Changed::NoReceiver));
    assert_eq!(reached(&destinations).len(), 3);
    destinations.status_message(1, at("10.0.0.4:5"), 9 * S);
    assert_eq!(
        destinations
            .manual()
            .take_silent_name(following, 9 * S + 1)
            .as_deref(),
        Some("host:5"),
        "the second is silent"
    );
}

#[test]
fn of_many_silent_names_each_has_its_turn() {
    let mut destinations = Destinations::new(&SendDestinations::Manual(counter()));
    for id in 0..100 {
        destinations.add(id, &format!("host-{id}:5"));
    }
    let following = Following::within(S).unwrap();
    let mut asked = std::collections::HashSet::new();
    for check in 0..10 {
        for _ in 0..10 {
            asked.extend(destinations.manual().take_silent_name(following, S + check * S));
        }
    }
    assert_eq!(asked.len(), 100);
}

#[test]
fn what_is_not_believed_changes_nothing() {
    let mut destinations = Destinations::new(&SendDestinations::Manual(counter()));
    destinations.add(1, "10.0.0.2:5");
    // Its receiver sends feedback from another address.
    assert_eq!(destinations.speaker(7, at("10.0.0.3:5"), 0), Heard::Possible);
    assert!(destinations.admit(7, at("10.0.0.3:5"), 0));
    for second in 1..10 {
        assert_eq!(
            destinations.speaker(666, at("10.0.0.2:5"), second * S),
            Heard::Known
        );
        assert_eq!(
            destinations.speaker(7, at("10.0.0.3:5"), second * S),
            Heard::Known
        );
    }
    assert_eq!(
        destinations.speaker(8, at("10.0.0.3:5"), 9 * S),
        Heard::Possible,
        "silent"
    );
}

#[test]
fn an_address_has_one_receiver() {
    let mut destinations = Destinations::new(&SendDestinations::Dynamic(counter()));
    for receiver_id in 0..100 {
        assert!(destinations.admit(receiver_id, at("10.0.0.2:5"), receiver_id));
    }
    assert_eq!(reached(&destinations), ["10.0.0.2:5"]);
    assert_eq!(destinations.speaker(99, at("10.0.0.2:5"), 100), Heard::Known);
}
