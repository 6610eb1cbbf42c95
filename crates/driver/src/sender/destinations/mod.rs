//! Where the datagrams of a send channel go.
//!
//! | channel | destinations | who fills the list | leaves it |
//! |---|---|---|---|
//! | unicast, multicast | one peer, which the socket is connected to unless `aeron.driver.connect=false` | | |
//! | `control-mode=dynamic` | receivers | their status messages within the stream | after 5 s of silence |
//! | `control-mode=manual` | what clients added | commands | by command |
//! | `control-mode=response` | for each stream the receiver that asked for it | the publication knows its own | |
//!
//! Anyone can send a status message, in the name of any address: see [`Heard`] and design note 44 for what it brings.
//!
//! A multicast group among added destinations has sockets of its own, because interface and time to live belong to a socket:
//! one sends to it, and its receivers answer to the other. What answers there counts as a receiver of that destination.
//!
//! Source: specification, multi-destination cast. Every datagram goes to each destination, one of them first in turn, so
//! that a socket without room does not always miss the same ones.

use std::net::{IpAddr, SocketAddr};

use headrace_buffers::counters::Counter;

use crate::endpoint::{
    AddedDestination, DestinationChange, GroupSockets, SendDestinations, ShownDestination,
};
use crate::names::Following;
use crate::transport::Transport;

/// Silence after which a learnt receiver is no longer sent to, and another may have taken the place of an added one.
const SILENCE_NS: i64 = 5_000_000_000;
/// Most receivers that one channel learns of: strangers may send status messages too.
pub(super) const LEARNT_MAX: usize = 4096;
/// Most destinations of one channel that the conductor shows by name.
const SHOWN_MAX: usize = 100;
/// The conductor is told of changes no more often.
const TELLING_INTERVAL_NS: i64 = 100_000_000;

/// What a status message means for the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It is from a destination, or the channel has no list.
    Known,
    /// It may be from an added destination that has not been heard of, which answers from another of its addresses.
    Possible,
    /// It is from an address that becomes a destination once it shows that it has the stream.
    Newcomer,
    /// It is from no destination.
    Stranger,
}

/// What a command of a client does to receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    /// Nothing.
    NoReceiver,
    /// One is elsewhere.
    Moved,
    /// The one with this id is not sent to any more.
    Gone(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One peer; its address, if the socket is not connected to it.
    Peer(Option<SocketAddr>),
    Dynamic,
    Manual,
    Askers,
}

struct Destination {
    // Of an added one.
    registration_id: Option<i64>,
    name: String,
    address: Option<SocketAddr>,
    receiver_id: Option<i64>,
    last_heard_ns: i64,
    // When the name of an added one was last looked up.
    last_asked_ns: i64,
    group: Option<Group>,
}

/// The sockets of a multicast group.
struct Group {
    transport: Box<dyn Transport>,
    // Not there while what arrived at it is handled.
    answers: Option<Box<dyn Transport>>,
    interface: IpAddr,
}

impl From<GroupSockets> for Group {
    fn from(sockets: GroupSockets) -> Self {
        Self {
            transport: sockets.transport,
            answers: Some(sockets.answers),
            interface: sockets.interface,
        }
    }
}

/// The way to one destination: its address, none for the peer of the channel's socket, and its socket, none for that of
/// the channel.
#[derive(Clone, Copy)]
pub(super) struct Route<'a> {
    pub(super) to: Option<SocketAddr>,
    pub(super) via: Option<&'a dyn Transport>,
}

impl Route<'_> {
    fn of_channel(to: Option<SocketAddr>) -> Self {
        Self { to, via: None }
    }
}

impl Destination {
    fn shown(&self) -> ShownDestination {
        ShownDestination {
            registration_id: self.registration_id,
            name: self.name.clone(),
            address: self.address,
        }
    }

    /// Receivers behind a translation of addresses are told apart by id and port.
    fn is_of(&self, receiver_id: i64, source: SocketAddr) -> bool {
        self.receiver_id == Some(receiver_id) && self.has_port_of(source)
    }

    fn has_port_of(&self, source: SocketAddr) -> bool {
        self.address
            .is_some_and(|address| address.port() == source.port())
    }

    /// Its receiver has not been heard of, or not for long: another may have taken its place. The receivers of a group
    /// are heard through a socket of the group.
    fn is_vacant(&self, now_ns: i64) -> bool {
        self.group.is_none() && (self.receiver_id.is_none() || self.is_silent(now_ns))
    }

    /// Where to send to it; none while its name has no address.
    fn route(&self) -> Option<Route<'_>> {
        Some(Route {
            to: Some(self.address?),
            via: self.group.as_ref().map(|group| group.transport.as_ref()),
        })
    }

    fn is_silent(&self, now_ns: i64) -> bool {
        now_ns.saturating_sub(self.last_heard_ns) > SILENCE_NS
    }
}

/// The destinations of one send channel.
pub(super) struct Destinations {
    kind: Kind,
    list: Vec<Destination>,
    // How many of them are groups.
    group_count: usize,
    first: usize,
    // Shows how many there are.
    count: Option<Counter>,
    // The conductor, who shows which they are, knows them.
    is_told: bool,
    told_ns: i64,
}

impl Destinations {
    /// None yet, but for the peer of the socket.
    pub(super) fn new(spec: &SendDestinations) -> Self {
        let (kind, count) = match spec {
            SendDestinations::Connected => (Kind::Peer(None), None),
            SendDestinations::Peer(address) => (Kind::Peer(Some(*address)), None),
            SendDestinations::Dynamic(count) => (Kind::Dynamic, Some(count.clone())),
            SendDestinations::Manual(count) => (Kind::Manual, Some(count.clone())),
            SendDestinations::Askers => (Kind::Askers, None),
        };
        Self {
            kind,
            list: Vec::new(),
            group_count: 0,
            first: 0,
            count,
            is_told: true,
            told_ns: i64::MIN,
        }
    }

    fn publish_count(&mut self) {
        self.is_told = false;
        self.group_count = self.list.iter().filter(|known| known.group.is_some()).count();
        if let Some(count) = &self.count {
            count.set_release(self.list.len() as i64);
        }
    }

    /// Tells the conductor which destinations there are, if that has changed. One that is busy is told later.
    pub(super) fn tell(&mut self, now_ns: i64, take: impl FnOnce(Vec<ShownDestination>) -> bool) {
        if self.is_told || now_ns.saturating_sub(self.told_ns) < TELLING_INTERVAL_NS {
            return;
        }
        self.told_ns = now_ns;
        self.is_told = take(self.list.iter().take(SHOWN_MAX).map(Destination::shown).collect());
    }

    /// The one peer is at another address. False if that is the socket's to know.
    pub(super) fn move_peer(&mut self, remote: SocketAddr) -> bool {
        match &mut self.kind {
            Kind::Peer(Some(address)) => {
                *address = remote;
                true
            }
            _ => false,
        }
    }

    /// How many there are, without the peer of the socket.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// A turn of the channel: receivers that fell silent go, and another destination is the first to be sent to.
    pub(super) fn begin_turn(&mut self, now_ns: i64) {
        if self.kind == Kind::Dynamic {
            let before = self.list.len();
            self.list.retain(|destination| !destination.is_silent(now_ns));
            if self.list.len() != before {
                self.publish_count();
            }
        }
        self.first = self
            .first
            .checked_add(1)
            .filter(|first| *first < self.list.len())
            .unwrap_or(0);
    }

    /// Sends something to each destination and returns the least that any of them took: it is sent again then, to all.
    /// `send` is told the way. `whole` is all there is to take; so much is taken where no destination has an address.
    ///
    /// A destination that cannot be sent to at all counts as served: it must not hold the others. `send` says so by `None`.
    pub(super) fn send_to_each(
        &self,
        whole: usize,
        mut send: impl FnMut(Route<'_>) -> Option<usize>,
    ) -> usize {
        match self.kind {
            Kind::Peer(address) => return send(Route::of_channel(address)).unwrap_or(0),
            Kind::Askers => return 0, // a stream that a receiver asked for goes there
            Kind::Dynamic | Kind::Manual => {}
        }
        let (earlier, later) = self.list.split_at(self.first.min(self.list.len()));
        let mut least = whole;
        for route in later.iter().chain(earlier).filter_map(Destination::route) {
            least = least.min(send(route).unwrap_or(whole));
            if least == 0 {
                // A socket has no room. All is sent again to all: what the others took now would be sent twice.
                break;
            }
        }
        least
    }

    /// The way of an answer to `source`, which was heard through the sockets of the `group` if one is given. It is sent to
    /// no other destination: a stranger must not bring more packets onto the network than it sends.
    pub(super) fn answer_to(&self, source: SocketAddr, group: Option<usize>) -> Route<'_> {
        if let Some(route) = group.and_then(|index| self.list.get(index)?.route()) {
            return route;
        }
        Route::of_channel(match self.kind {
            Kind::Peer(None) => None,
            // Those that hear a group answer to the group.
            Kind::Peer(Some(group)) if group.ip().is_multicast() => Some(group),
            _ => Some(source),
        })
    }

    /// The first destination from `index` on that is a group.
    pub(super) fn next_group(&self, index: usize) -> Option<usize> {
        if self.group_count == 0 {
            return None;
        }
        let mut from = self.list.iter().enumerate().skip(index);
        from.find_map(|(index, destination)| destination.group.is_some().then_some(index))
    }

    /// What the receivers of a group answer to, while the answers are handled. It comes back with
    /// [`Self::take_back_answers`].
    pub(super) fn lend_answers(&mut self, group: usize) -> Option<Box<dyn Transport>> {
        self.list.get_mut(group)?.group.as_mut()?.answers.take()
    }

    pub(super) fn take_back_answers(&mut self, group: usize, answers: Box<dyn Transport>) {
        if let Some(Destination {
            group: Some(group), ..
        }) = self.list.get_mut(group)
        {
            group.answers = Some(answers);
        }
    }

    /// What the receivers of groups answer to.
    pub(super) fn answers(&self) -> impl Iterator<Item = &dyn Transport> {
        let groups = self
            .list
            .iter()
            .filter_map(|destination| destination.group.as_ref());
        groups.filter_map(|group| group.answers.as_deref())
    }

    /// The destination of a receiver. A client knows its address, whichever receiver answers there.
    fn find(&self, receiver_id: i64, source: SocketAddr) -> Option<usize> {
        let added = || {
            let mut list = self.list.iter();
            list.position(|known| known.registration_id.is_some() && known.address == Some(source))
        };
        let by_id = || {
            self.list
                .iter()
                .position(|known| known.is_of(receiver_id, source))
        };
        added().or_else(by_id)
    }

    /// Whose a status message is. It may be forged: nothing is believed of it yet.
    pub(super) fn speaker(&mut self, receiver_id: i64, source: SocketAddr, now_ns: i64) -> Heard {
        if matches!(self.kind, Kind::Peer(_) | Kind::Askers) || self.find(receiver_id, source).is_some() {
            Heard::Known
        } else if self.kind == Kind::Dynamic {
            Heard::Newcomer
        } else if self.vacant(source, now_ns).is_some() {
            Heard::Possible
        } else {
            Heard::Stranger
        }
    }

    /// A status message of a stream came, at a position that fits, from one that is known.
    pub(super) fn on_status_message(&mut self, receiver_id: i64, source: SocketAddr, now_ns: i64) {
        if let Some(index) = self.find(receiver_id, source) {
            let known = &mut self.list[index];
            known.last_heard_ns = now_ns;
            known.receiver_id = Some(receiver_id);
        }
    }

    /// A destination whose receiver may be the one that speaks from here.
    fn vacant(&mut self, source: SocketAddr, now_ns: i64) -> Option<&mut Destination> {
        let mut list = self.list.iter_mut();
        list.find(|destination| destination.has_port_of(source) && destination.is_vacant(now_ns))
    }

    /// A receiver that is not known to be a destination has shown that it has the stream. False where there is no room.
    pub(super) fn admit(&mut self, receiver_id: i64, source: SocketAddr, now_ns: i64) -> bool {
        if self.kind != Kind::Dynamic {
            if let Some(vacant) = self.vacant(source, now_ns) {
                vacant.last_heard_ns = now_ns;
                vacant.receiver_id = Some(receiver_id);
            }
            return true;
        }
        // One receiver speaks from one address: another id is that of a driver that was started again there.
        if let Some(same) = self.list.iter_mut().find(|known| known.address == Some(source)) {
            same.last_heard_ns = now_ns;
            same.receiver_id = Some(receiver_id);
            return true;
        }
        if self.list.len() >= LEARNT_MAX {
            return false;
        }
        self.list.push(Destination {
            registration_id: None,
            name: String::new(),
            address: Some(source),
            receiver_id: Some(receiver_id),
            last_heard_ns: now_ns,
            last_asked_ns: now_ns,
            group: None,
        });
        self.publish_count();
        true
    }

    /// Clients want others, or a name moved; true when it did.
    pub(super) fn change(&mut self, change: DestinationChange, now_ns: i64) -> Changed {
        let removed = match change {
            DestinationChange::Add(added) => {
                self.add(added, now_ns);
                None
            }
            DestinationChange::Remove {
                name,
                address,
                interface,
            } => self.remove_one(&name, address, interface),
            DestinationChange::RemoveById(registration_id) => self.remove_id(registration_id),
            DestinationChange::Move { name, address } => {
                return if self.set_address(&name, address) {
                    Changed::Moved
                } else {
                    Changed::NoReceiver
                };
            }
        };
        let gone = removed.and_then(|removed| removed.receiver_id);
        let is_elsewhere = |id: &i64| self.list.iter().any(|other| other.receiver_id == Some(*id));
        gone.filter(|id| !is_elsewhere(id))
            .map_or(Changed::NoReceiver, Changed::Gone)
    }

    /// A client adds a destination. It may be there already: then it is there twice.
    fn add(&mut self, added: AddedDestination, now_ns: i64) {
        self.list.push(Destination {
            registration_id: Some(added.registration_id),
            name: added.name,
            address: added.address,
            receiver_id: None,
            last_heard_ns: now_ns,
            last_asked_ns: now_ns,
            group: added.group.map(Group::from),
        });
        self.publish_count();
    }

    /// Removes one destination that was added with this name, wherever the name has led since; else one with this address. Of a
    /// group that is reached through several interfaces, the one through `interface` if that is given.
    fn remove_one(
        &mut self,
        name: &str,
        address: SocketAddr,
        interface: Option<IpAddr>,
    ) -> Option<Destination> {
        let is_through = |destination: &Destination| {
            let group = destination.group.as_ref();
            interface.is_none_or(|interface| group.is_none_or(|group| interface == group.interface))
        };
        let is_named = |destination: &Destination| destination.name == name && is_through(destination);
        let is_there =
            |destination: &Destination| destination.address == Some(address) && is_through(destination);
        let named = self.list.iter().position(is_named);
        self.remove(named.or_else(|| self.list.iter().position(is_there)))
    }

    /// Removes the destination that a command added.
    fn remove_id(&mut self, registration_id: i64) -> Option<Destination> {
        let added = |destination: &Destination| destination.registration_id == Some(registration_id);
        self.remove(self.list.iter().position(added))
    }

    fn remove(&mut self, index: Option<usize>) -> Option<Destination> {
        let removed = self.list.remove(index?);
        self.publish_count();
        Some(removed)
    }

    /// The destination that a client added for this receiver.
    pub(super) fn registration_id_of(&self, receiver_id: i64, source: SocketAddr) -> Option<i64> {
        let found = self.find(receiver_id, source)?;
        self.list[found].registration_id
    }

    /// The command that added a group.
    pub(super) fn registration_id_of_group(&self, group: usize) -> Option<i64> {
        self.list.get(group)?.registration_id
    }

    /// A name that was added and has not been heard of for a while, at most once in that while. Where there are many, the
    /// one that was not asked for the longest.
    pub(super) fn take_silent_name(&mut self, following: Following, now_ns: i64) -> Option<String> {
        if self.kind != Kind::Manual {
            return None;
        }
        let silent = self.list.iter().filter(|destination| {
            following.is_due(destination.last_heard_ns, destination.last_asked_ns, now_ns)
                && destination.group.is_none()
                && names_a_host(&destination.name)
        });
        let name = silent
            .min_by_key(|destination| destination.last_asked_ns)?
            .name
            .clone();
        let same = self.list.iter_mut();
        for same in same.filter(|destination| destination.name == name) {
            same.last_asked_ns = now_ns;
        }
        Some(name)
    }

    /// A name has this address from now on; true when it had another or none.
    fn set_address(&mut self, name: &str, address: SocketAddr) -> bool {
        let mut is_changed = false;
        for destination in self
            .list
            .iter_mut()
            .filter(|destination| destination.name == name && destination.group.is_none())
        {
            if destination.address != Some(address) {
                destination.address = Some(address);
                destination.receiver_id = None;
                is_changed = true;
            }
        }
        self.is_told &= !is_changed;
        is_changed
    }
}

fn names_a_host(name: &str) -> bool {
    name.parse::<SocketAddr>().is_err()
}

#[cfg(test)]
mod tests;
