//! The conductor's view of the sockets of a receive channel.

use std::net::SocketAddr;
use std::sync::Arc;

use headrace_protocol::channel::UdpChannel;

use super::endpoint::Binding;
use crate::endpoint::{LastHeard, ShownDestination};

/// The sockets of a receive channel, by path.
#[derive(Debug)]
pub(crate) enum ReceivePaths {
    /// The one of its own address.
    Single(Binding),
    /// Those of destinations.
    Added(Destinations),
}

impl ReceivePaths {
    /// Ports of the sockets that are about to be closed; of a channel that closes, all of them.
    pub(crate) fn leaving_ports(&self, is_closing: bool) -> impl Iterator<Item = u16> {
        let (own, added) = match self {
            Self::Single(binding) => (is_closing.then_some(binding), None),
            Self::Added(destinations) => (None, Some(destinations)),
        };
        let added = added
            .into_iter()
            .flat_map(|destinations| destinations.list.iter().flatten());
        let leaving = added.filter(move |destination| is_closing || destination.is_closing);
        own.into_iter()
            .chain(leaving.map(|destination| &destination.binding))
            .map(|binding| binding.address.port())
    }

    /// What clients added, where they may.
    pub(crate) fn added(&self) -> Option<&Destinations> {
        match self {
            Self::Single(_) => None,
            Self::Added(destinations) => Some(destinations),
        }
    }

    /// The same, to change them.
    pub(crate) fn added_mut(&mut self) -> Option<&mut Destinations> {
        match self {
            Self::Single(_) => None,
            Self::Added(destinations) => Some(destinations),
        }
    }

    /// All there are.
    pub(crate) fn into_bindings(self) -> Vec<Binding> {
        match self {
            Self::Single(binding) => vec![binding],
            Self::Added(destinations) => destinations
                .list
                .into_iter()
                .flatten()
                .map(|destination| destination.binding)
                .collect(),
        }
    }
}

/// A destination that a client added.
#[derive(Debug)]
pub(crate) struct Destination {
    /// Of the command that added it.
    pub(crate) registration_id: i64,
    pub(crate) channel: UdpChannel,
    pub(crate) binding: Binding,
    /// When it last brought something.
    heard: Arc<LastHeard>,
    /// The receiver is about to close its socket.
    is_closing: bool,
}

impl Destination {
    pub(crate) fn new(
        registration_id: i64,
        channel: UdpChannel,
        binding: Binding,
        heard: Arc<LastHeard>,
    ) -> Self {
        Self {
            registration_id,
            channel,
            binding,
            heard,
            is_closing: false,
        }
    }

    /// It, for a person who looks, and whether it brings something.
    fn shown(&self, now_ns: i64) -> (ShownDestination, bool) {
        let shown = ShownDestination {
            registration_id: Some(self.registration_id),
            name: self.channel.uri.clone(),
            address: Some(self.binding.address),
        };
        (shown, self.heard.is_live(now_ns))
    }
}

/// The destinations of one channel, by path. A path is free again once its socket is closed.
#[derive(Debug, Default)]
pub(crate) struct Destinations {
    list: Vec<Option<Destination>>,
}

impl Destinations {
    /// Adds one on the lowest free path, which is returned.
    pub(crate) fn add(&mut self, destination: Destination) -> usize {
        let free = self.list.iter().position(Option::is_none);
        let path = free.unwrap_or(self.list.len());
        if path == self.list.len() {
            self.list.push(None);
        }
        self.list[path] = Some(destination);
        path
    }

    /// The path of the first that `is_meant` and is not on its way out.
    pub(crate) fn find(&self, is_meant: impl Fn(&Destination) -> bool) -> Option<usize> {
        let mut each = self.list.iter();
        each.position(|found| {
            found
                .as_ref()
                .is_some_and(|destination| !destination.is_closing && is_meant(destination))
        })
    }

    /// Those that are not on their way out, as people see them.
    pub(crate) fn shown(&self, now_ns: i64) -> Vec<(ShownDestination, bool)> {
        let there = self.list.iter().flatten().filter(|known| !known.is_closing);
        there.map(|known| known.shown(now_ns)).collect()
    }

    /// The conductor tells the receiver to close it.
    pub(crate) fn close(&mut self, path: usize) {
        if let Some(Some(destination)) = self.list.get_mut(path) {
            destination.is_closing = true;
        }
    }

    /// The conductor tells the receiver to close them all. Returns the paths that were not closing yet.
    pub(crate) fn close_all(&mut self) -> Vec<usize> {
        let paths = self.list.iter_mut().enumerate();
        let told = paths.filter_map(|(path, found)| {
            let was_closing = std::mem::replace(&mut found.as_mut()?.is_closing, true);
            (!was_closing).then_some(path)
        });
        told.collect()
    }

    /// It is closed.
    pub(crate) fn take(&mut self, path: usize) -> Option<Destination> {
        self.list.get_mut(path)?.take()
    }

    /// The paths whose sender listens at this name, which has another address now.
    pub(crate) fn move_control(&mut self, name: &str, address: SocketAddr) -> Vec<usize> {
        let mut moved = Vec::new();
        for (path, destination) in self.list.iter_mut().enumerate() {
            if let Some(destination) = destination
                && destination.channel.control.as_deref() == Some(name)
            {
                destination.channel.local = address;
                moved.push(path);
            }
        }
        moved
    }
}
