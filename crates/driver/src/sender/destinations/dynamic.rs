//! The destinations of a channel with `control-mode=dynamic`: the receivers whose status messages it hears.

use std::net::SocketAddr;

use headrace_buffers::counters::Counter;

use super::list::{Destination, DestinationList};
use super::{Route, is_silent};
use crate::endpoint::ShownDestination;

/// Most receivers that one channel learns of: strangers may send status messages too.
pub(crate) const LEARNT_MAX: usize = 4096;

pub(super) struct Receiver {
    address: SocketAddr,
    receiver_id: i64,
    last_heard_ns: i64,
}

impl Destination for Receiver {
    fn route(&self) -> Option<Route<'_>> {
        Some(Route::of_channel(Some(self.address)))
    }

    fn shown(&self) -> ShownDestination {
        ShownDestination {
            registration_id: None,
            name: String::new(),
            address: Some(self.address),
        }
    }
}

pub(crate) struct DynamicDestinations {
    pub(super) list: DestinationList<Receiver>,
}

impl DynamicDestinations {
    pub(super) fn new(count: Counter) -> Self {
        Self {
            list: DestinationList::new(count),
        }
    }

    /// Receivers that fell silent go.
    pub(super) fn begin_turn(&mut self, now_ns: i64) {
        let before = self.list.all.len();
        let receivers = &mut self.list.all;
        receivers.retain(|receiver| !is_silent(receiver.last_heard_ns, now_ns));
        if self.list.all.len() != before {
            self.list.on_changed();
        }
        self.list.begin_turn();
    }

    /// Receivers behind a translation of addresses are told apart by id and port.
    pub(super) fn find(&self, receiver_id: i64, source: SocketAddr) -> Option<usize> {
        self.list
            .all
            .iter()
            .position(|known| known.receiver_id == receiver_id && known.address.port() == source.port())
    }

    pub(super) fn on_status_message(&mut self, receiver_id: i64, source: SocketAddr, now_ns: i64) {
        if let Some(index) = self.find(receiver_id, source) {
            self.list.all[index].last_heard_ns = now_ns;
        }
    }

    pub(super) fn admit(&mut self, receiver_id: i64, source: SocketAddr, now_ns: i64) -> bool {
        // One receiver speaks from one address: another id is that of a driver that was started again there.
        if let Some(same) = self.list.all.iter_mut().find(|known| known.address == source) {
            same.last_heard_ns = now_ns;
            same.receiver_id = receiver_id;
            return true;
        }
        if self.list.all.len() >= LEARNT_MAX {
            return false;
        }
        self.list.all.push(Receiver {
            address: source,
            receiver_id,
            last_heard_ns: now_ns,
        });
        self.list.on_changed();
        true
    }
}
