//! The drivers to which this one sends names, and how much each may be sent.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::budget::Budget;

/// Neighbours at once.
pub(super) const NEIGHBOURS_MAX: usize = 1024;
/// Bytes that may go to a neighbour before it has said anything: only another driver may have named it.
const ALLOWANCE: usize = 512;

/// One of them.
#[derive(Clone, Copy, Debug)]
struct Neighbour {
    last_heard_ns: i64,
    budget: Budget,
    /// Index in the table of names of the entry to send to it next.
    next_entry: usize,
}

/// All of them, by address.
pub(super) struct Neighbours {
    known: BTreeMap<SocketAddr, Neighbour>,
    timeout_ns: i64,
}

impl Neighbours {
    /// None yet. One that was last heard so long ago is forgotten.
    pub(super) fn new(timeout_ns: i64) -> Self {
        Self {
            known: BTreeMap::new(),
            timeout_ns,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn contains(&self, address: SocketAddr) -> bool {
        self.known.contains_key(&address)
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.known.keys().copied()
    }

    /// Adds a driver that was heard at a time. One that is known is refreshed if it speaks for itself. False for one
    /// that finds the table full.
    pub(super) fn add(&mut self, address: SocketAddr, heard_ns: i64, speaks_for_itself: bool) -> bool {
        if let Some(neighbour) = self.known.get_mut(&address) {
            if speaks_for_itself {
                neighbour.last_heard_ns = neighbour.last_heard_ns.max(heard_ns);
            }
            return true;
        }
        let has_room = self.known.len() < NEIGHBOURS_MAX;
        if has_room {
            let neighbour = Neighbour {
                last_heard_ns: heard_ns,
                budget: Budget::with_allowance(ALLOWANCE),
                next_entry: 0,
            };
            self.known.insert(address, neighbour);
        }
        has_room
    }

    /// Limits the bytes sent to a neighbour.
    pub(super) fn budget(&mut self, address: SocketAddr) -> Option<&mut Budget> {
        self.known
            .get_mut(&address)
            .map(|neighbour| &mut neighbour.budget)
    }

    /// Index of the entry, of `count`, to send to a neighbour next.
    pub(super) fn next_entry(&self, address: SocketAddr, count: usize) -> usize {
        let next = self
            .known
            .get(&address)
            .map_or(0, |neighbour| neighbour.next_entry);
        next.checked_rem(count).unwrap_or(0)
    }

    pub(super) fn set_next_entry(&mut self, address: SocketAddr, next_entry: usize) {
        if let Some(neighbour) = self.known.get_mut(&address) {
            neighbour.next_entry = next_entry;
        }
    }

    /// Forgets those that were not heard for too long.
    pub(super) fn expire(&mut self, now_ns: i64) {
        let timeout_ns = self.timeout_ns;
        self.known
            .retain(|_, neighbour| neighbour.last_heard_ns.saturating_add(timeout_ns) > now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        ([10, 0, 0, 1], port).into()
    }

    #[test]
    fn only_what_a_neighbour_says_of_itself_keeps_it() {
        let mut neighbours = Neighbours::new(10);
        assert!(neighbours.add(at(1), 0, false) && neighbours.add(at(2), 0, false));
        assert!(neighbours.add(at(1), 5, false) && neighbours.add(at(2), 5, true));
        neighbours.expire(10);
        assert_eq!(neighbours.addresses().collect::<Vec<_>>(), [at(2)]);
        neighbours.expire(15);
        assert_eq!(neighbours.len(), 0);
    }

    #[test]
    fn a_full_table_takes_no_more() {
        let mut neighbours = Neighbours::new(10);
        for port in 0..NEIGHBOURS_MAX as u16 {
            assert!(neighbours.add(at(port), 0, true));
        }
        assert!(!neighbours.add(at(u16::MAX), 0, true));
        assert!(neighbours.add(at(0), 0, true), "those it has are refreshed");
    }
}
