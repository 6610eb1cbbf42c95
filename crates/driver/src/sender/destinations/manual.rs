//! The destinations of a channel with `control-mode=manual`: clients add and remove them.
//!
//! A multicast group among them has sockets of its own, because interface and time to live belong to a socket: one sends to
//! it, and its receivers send feedback to the other. A receiver heard there counts as a receiver of that destination.

use std::net::{IpAddr, SocketAddr};

use headrace_buffers::counters::Counter;

use super::list::{Destination, DestinationList};
use super::{Heard, Route, is_silent};
use crate::endpoint::{AddedDestination, DestinationChange, ShownDestination};
use crate::names::Following;
use crate::transport::Transport;

/// What a command of a client does to receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    /// Nothing.
    NoReceiver,
    /// One is elsewhere.
    Moved,
    /// The one with this id is not sent to any more.
    Gone(i64),
}

pub(super) struct Added {
    registration_id: i64,
    name: String,
    address: Option<SocketAddr>,
    receiver_id: Option<i64>,
    last_heard_ns: i64,
    // When its name was last looked up.
    last_asked_ns: i64,
    group: Option<Group>,
}

/// The sockets of a multicast group.
struct Group {
    transport: Box<dyn Transport>,
    // Not there while what arrived at it is handled.
    feedback: Option<Box<dyn Transport>>,
    interface: IpAddr,
}

impl Added {
    fn has_port_of(&self, source: SocketAddr) -> bool {
        self.address
            .is_some_and(|address| address.port() == source.port())
    }

    /// Its receiver has not been heard of, or not for long: another may have taken its place. The receivers of a group
    /// are heard through a socket of the group.
    fn is_vacant(&self, now_ns: i64) -> bool {
        self.group.is_none() && (self.receiver_id.is_none() || is_silent(self.last_heard_ns, now_ns))
    }

    /// Of a group that is reached through several interfaces, the one through `interface` if that is given.
    fn is_through(&self, interface: Option<IpAddr>) -> bool {
        let group = self.group.as_ref();
        interface.is_none_or(|interface| group.is_none_or(|group| interface == group.interface))
    }

    fn on_heard(&mut self, receiver_id: i64, now_ns: i64) {
        self.receiver_id = Some(receiver_id);
        self.last_heard_ns = now_ns;
    }
}

impl Destination for Added {
    fn route(&self) -> Option<Route<'_>> {
        Some(Route {
            to: Some(self.address?),
            via: self.group.as_ref().map(|group| group.transport.as_ref()),
        })
    }

    fn shown(&self) -> ShownDestination {
        ShownDestination {
            registration_id: Some(self.registration_id),
            name: self.name.clone(),
            address: self.address,
        }
    }
}

pub(crate) struct ManualDestinations {
    pub(super) list: DestinationList<Added>,
    // How many of them are groups.
    group_count: usize,
}

impl ManualDestinations {
    pub(super) fn new(count: Counter) -> Self {
        Self {
            list: DestinationList::new(count),
            group_count: 0,
        }
    }

    /// Clients want others, or a name moved.
    pub(crate) fn change(&mut self, change: DestinationChange, now_ns: i64) -> Changed {
        let removed = match change {
            DestinationChange::Add(added) => {
                self.add(added, now_ns);
                None
            }
            DestinationChange::Remove {
                name,
                address,
                interface,
            } => self.find_added(&name, address, interface),
            DestinationChange::RemoveById(id) => {
                self.list.all.iter().position(|added| added.registration_id == id)
            }
            DestinationChange::Move { name, address } => return self.move_to(&name, address),
        };
        removed.map_or(Changed::NoReceiver, |index| self.remove(index))
    }

    /// A client adds a destination. It may be there already: then it is there twice.
    fn add(&mut self, added: AddedDestination, now_ns: i64) {
        self.group_count += usize::from(added.group.is_some());
        self.list.all.push(Added {
            registration_id: added.registration_id,
            name: added.name,
            address: added.address,
            receiver_id: None,
            last_heard_ns: now_ns,
            last_asked_ns: now_ns,
            group: added.group.map(|sockets| Group {
                transport: sockets.transport,
                feedback: Some(sockets.feedback),
                interface: sockets.interface,
            }),
        });
        self.list.on_changed();
    }

    /// One destination that was added with this name, wherever the name has led since; else one with this address.
    fn find_added(&self, name: &str, address: SocketAddr, interface: Option<IpAddr>) -> Option<usize> {
        let is_named = |added: &Added| added.name == name && added.is_through(interface);
        let is_there = |added: &Added| added.address == Some(address) && added.is_through(interface);
        let named = self.list.all.iter().position(is_named);
        named.or_else(|| self.list.all.iter().position(is_there))
    }

    fn remove(&mut self, index: usize) -> Changed {
        let removed = self.list.all.remove(index);
        self.list.on_changed();
        self.group_count -= usize::from(removed.group.is_some());
        let is_elsewhere = |id: &i64| self.list.all.iter().any(|other| other.receiver_id == Some(*id));
        let gone = removed.receiver_id.filter(|id| !is_elsewhere(id));
        gone.map_or(Changed::NoReceiver, Changed::Gone)
    }

    /// A name has this address from now on.
    fn move_to(&mut self, name: &str, address: SocketAddr) -> Changed {
        let mut changed = Changed::NoReceiver;
        for added in self.list.all.iter_mut() {
            if added.name == name && added.group.is_none() && added.address != Some(address) {
                added.address = Some(address);
                added.receiver_id = None;
                changed = Changed::Moved;
            }
        }
        if changed == Changed::Moved {
            self.list.on_changed();
        }
        changed
    }

    /// The destination of a receiver. A client knows its address, whichever receiver sends feedback from there;
    /// receivers behind a translation of addresses are told apart by id and port.
    fn find(&self, receiver_id: i64, source: SocketAddr) -> Option<usize> {
        let is_there = |added: &Added| added.address == Some(source);
        let is_of = |added: &Added| added.receiver_id == Some(receiver_id) && added.has_port_of(source);
        let there = self.list.all.iter().position(is_there);
        there.or_else(|| self.list.all.iter().position(is_of))
    }

    /// A destination whose receiver may be the one that speaks from here.
    fn find_vacant(&self, source: SocketAddr, now_ns: i64) -> Option<usize> {
        let is_vacant = |added: &Added| added.has_port_of(source) && added.is_vacant(now_ns);
        self.list.all.iter().position(is_vacant)
    }

    pub(super) fn speaker(&self, receiver_id: i64, source: SocketAddr, now_ns: i64) -> Heard {
        if self.find(receiver_id, source).is_some() {
            Heard::Known
        } else if self.find_vacant(source, now_ns).is_some() {
            Heard::Possible
        } else {
            Heard::Stranger
        }
    }

    pub(super) fn on_status_message(&mut self, receiver_id: i64, source: SocketAddr, now_ns: i64) {
        if let Some(index) = self.find(receiver_id, source) {
            self.list.all[index].on_heard(receiver_id, now_ns);
        }
    }

    /// The receiver takes the place of a vacant one.
    pub(super) fn admit(&mut self, receiver_id: i64, source: SocketAddr, now_ns: i64) {
        if let Some(index) = self.find_vacant(source, now_ns) {
            self.list.all[index].on_heard(receiver_id, now_ns);
        }
    }

    /// The command that added the destination of a receiver, which was heard through the sockets of the `group` if one is
    /// given.
    pub(crate) fn registration_id_of(
        &self,
        receiver_id: i64,
        source: SocketAddr,
        group: Option<usize>,
    ) -> Option<i64> {
        let index = group.or_else(|| self.find(receiver_id, source))?;
        Some(self.list.all.get(index)?.registration_id)
    }

    /// The way to a group.
    pub(super) fn route_to(&self, group: usize) -> Option<Route<'_>> {
        self.list.all.get(group)?.route()
    }

    /// The first group from the destination `from` on, with the socket for the feedback of its receivers, while the
    /// caller reads it. It comes back with [`Self::take_back_feedback`].
    pub(crate) fn lend_feedback(&mut self, from: usize) -> Option<(usize, Box<dyn Transport>)> {
        if self.group_count == 0 {
            return None;
        }
        let mut each = self.list.all.iter_mut().enumerate().skip(from);
        each.find_map(|(index, added)| Some((index, added.group.as_mut()?.feedback.take()?)))
    }

    pub(crate) fn take_back_feedback(&mut self, group: usize, feedback: Box<dyn Transport>) {
        if let Some(group) = self
            .list
            .all
            .get_mut(group)
            .and_then(|added| added.group.as_mut())
        {
            group.feedback = Some(feedback);
        }
    }

    /// The sockets for the feedback of the receivers of groups.
    pub(crate) fn feedback_sockets(&self) -> impl Iterator<Item = &dyn Transport> {
        let groups = self.list.all.iter().filter_map(|added| added.group.as_ref());
        groups.filter_map(|group| group.feedback.as_deref())
    }

    /// A name that was added and has not been heard of for a while, at most once in that while. Where there are many, the
    /// one that was not asked for the longest.
    pub(crate) fn take_silent_name(&mut self, following: Following, now_ns: i64) -> Option<String> {
        let silent = self.list.all.iter().filter(|added| {
            following.is_due(added.last_heard_ns, added.last_asked_ns, now_ns)
                && added.group.is_none()
                && names_a_host(&added.name)
        });
        let name = silent.min_by_key(|added| added.last_asked_ns)?.name.clone();
        for same in self.list.all.iter_mut().filter(|added| added.name == name) {
            same.last_asked_ns = now_ns;
        }
        Some(name)
    }
}

fn names_a_host(name: &str) -> bool {
    name.parse::<SocketAddr>().is_err()
}
