//! A counter for each destination of a channel, for operators.
//!
//! The sender reports the destinations of a send channel, and each report replaces the last one. The conductor knows
//! those of a receive channel itself.

use headrace_buffers::counters::Counter;

use crate::conductor::counters::Counters;
use crate::endpoint::ShownDestination;

/// A destination of a send channel: 1, or 0 while its name has no address. An id of this driver's own, in the range that
/// applications use.
const SEND_DESTINATION: i32 = 2105;
/// A destination of a receive channel: 1 while it brings something, else 0. An id of this driver's own as well.
const RECEIVE_DESTINATION: i32 = 2107;
/// Registration id of a destination that no command added.
const NO_COMMAND: i64 = 0;

/// The counters of one channel.
#[derive(Debug)]
pub(crate) struct DestinationCounters {
    type_id: i32,
    label: &'static str,
    shown: Vec<(ShownDestination, Counter)>,
}

impl DestinationCounters {
    /// Of a send channel.
    pub(crate) fn of_sends() -> Self {
        Self::new(SEND_DESTINATION, "snd-destination")
    }

    /// Of a receive channel.
    pub(crate) fn of_receives() -> Self {
        Self::new(RECEIVE_DESTINATION, "rcv-destination")
    }

    fn new(type_id: i32, label: &'static str) -> Self {
        Self {
            type_id,
            label,
            shown: Vec::new(),
        }
    }

    /// Shows these and no others. Those for which no counter can be had are not shown.
    pub(crate) fn show(
        &mut self,
        counters: &mut Counters,
        status_id: i32,
        destinations: &[ShownDestination],
    ) {
        let mut before = std::mem::take(&mut self.shown);
        let mut added = Vec::new();
        for destination in destinations {
            match before.iter().position(|(known, _)| known == destination) {
                Some(index) => self.shown.push(before.swap_remove(index)),
                None => added.push(destination),
            }
        }
        counters.free_all(before.iter().map(|(_, counter)| counter));
        for destination in added {
            if let Some(counter) = self.counter(counters, status_id, destination) {
                self.shown.push((destination.clone(), counter));
            }
        }
    }

    /// Says of each that is shown whether it brings something.
    pub(crate) fn set_live(&self, is_live: impl Fn(&ShownDestination) -> bool) {
        for (destination, counter) in &self.shown {
            counter.set_release(i64::from(is_live(destination)));
        }
    }

    /// The channel is closed.
    pub(crate) fn free(self, counters: &mut Counters) {
        counters.free_all(self.shown.iter().map(|(_, counter)| counter));
    }

    fn counter(
        &self,
        counters: &mut Counters,
        status_id: i32,
        destination: &ShownDestination,
    ) -> Option<Counter> {
        let address = destination.address.map(|address| address.to_string());
        let made = counters.address(
            self.type_id,
            self.label,
            status_id,
            destination.registration_id.unwrap_or(NO_COMMAND),
            address.as_deref().unwrap_or_default(),
        );
        let counter = made.ok()?;
        let is_name = !destination.name.is_empty() && Some(&destination.name) != address.as_ref();
        if is_name {
            counters.append_to_label(counter.id(), &format!(" of {}", destination.name));
        }
        counter.set_release(i64::from(address.is_some()));
        Some(counter)
    }
}

#[cfg(test)]
mod tests {
    use headrace_buffers::AtomicBuffer;
    use headrace_buffers::counters::{CountersManager, CountersReader};

    use super::*;

    fn counters(count: usize) -> (Counters, CountersReader) {
        let (metadata, values) = (
            AtomicBuffer::allocate(count * 512),
            AtomicBuffer::allocate(count * 128),
        );
        let manager = CountersManager::new(metadata, values, 0);
        let reader = manager.reader().clone();
        (Counters::new(manager), reader)
    }

    fn added(registration_id: i64, name: &str, address: Option<&str>) -> ShownDestination {
        ShownDestination {
            registration_id: Some(registration_id),
            name: name.to_owned(),
            address: address.map(|address| address.parse().unwrap()),
        }
    }

    fn learnt(address: &str) -> ShownDestination {
        ShownDestination {
            registration_id: None,
            ..added(0, "", Some(address))
        }
    }

    fn seen(reader: &CountersReader) -> Vec<(String, i64)> {
        let mut seen = Vec::new();
        reader.for_each(|record| seen.push((record.label, record.value)));
        seen.sort();
        seen
    }

    fn labels(reader: &CountersReader) -> Vec<String> {
        seen(reader).into_iter().map(|(label, _)| label).collect()
    }

    #[test]
    fn each_destination_has_a_counter_with_its_address_and_its_name() {
        let (mut counters, reader) = counters(8);
        let mut shown = DestinationCounters::of_sends();
        let (named, unknown) = (
            added(7, "host:5", Some("10.0.0.2:5")),
            added(8, "unknown:5", None),
        );
        shown.show(
            &mut counters,
            3,
            &[
                named,
                unknown,
                added(9, "10.0.0.3:5", Some("10.0.0.3:5")),
                learnt("[::1]:6"),
            ],
        );
        let expected = [
            ("snd-destination: 3  of unknown:5", 0),
            ("snd-destination: 3 10.0.0.2:5 of host:5", 1),
            ("snd-destination: 3 10.0.0.3:5", 1),
            ("snd-destination: 3 [::1]:6", 1),
        ];
        assert_eq!(
            seen(&reader),
            expected.map(|(label, value)| (label.to_owned(), value))
        );
        assert!(reader.find(SEND_DESTINATION, 8).is_some());
        shown.free(&mut counters);
        assert_eq!(seen(&reader), []);
    }

    #[test]
    fn those_that_stay_keep_their_counters_and_those_that_go_give_them_back() {
        let (mut counters, reader) = counters(8);
        let mut shown = DestinationCounters::of_sends();
        let (first, second) = (learnt("10.0.0.1:5"), learnt("10.0.0.2:5"));
        shown.show(&mut counters, 3, &[first.clone(), second.clone()]);
        let id = reader.find(SEND_DESTINATION, NO_COMMAND).unwrap();
        shown.show(&mut counters, 3, &[first.clone(), first, learnt("10.0.0.3:5")]);
        assert_eq!(
            labels(&reader),
            [
                "snd-destination: 3 10.0.0.1:5",
                "snd-destination: 3 10.0.0.1:5",
                "snd-destination: 3 10.0.0.3:5"
            ]
        );
        assert_eq!(reader.label(id).as_deref(), Some("snd-destination: 3 10.0.0.1:5"));
    }

    #[test]
    fn without_room_for_counters_fewer_are_shown() {
        let (mut counters, reader) = counters(2);
        let mut shown = DestinationCounters::of_sends();
        let all = ["10.0.0.1:5", "10.0.0.2:5", "10.0.0.3:5"].map(learnt);
        shown.show(&mut counters, 3, &all);
        assert_eq!(labels(&reader).len(), 2);
        shown.show(&mut counters, 3, &all[2..]);
        assert_eq!(labels(&reader), ["snd-destination: 3 10.0.0.3:5"]);
    }
}
