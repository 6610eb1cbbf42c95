//! What all sockets share, and what becomes of a datagram.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

use headrace_driver::environment::SocketRequest;

use super::addresses::{Addresses, HostId, unspecified};
use super::bound::{Bound, SocketId};
use super::host::Host;
use super::link::{Link, LinkSettings, Passage};
use super::tap::{Tap, Taps};
use crate::lock::lock;
use crate::time::WorldTime;
use crate::trace::{Fate, Route, Trace};

/// What a socket gets without asking, as on Linux.
pub(super) const BUFFER_LENGTH: usize = 212_992;
/// What a socket gets at most.
pub(super) const BUFFER_LENGTH_MAX: usize = 4 * 1024 * 1024;

/// A kernel joins at most 64 datagrams.
const SEGMENTS_BITS: u32 = 6;

/// Number of the interface that leads back to the host.
pub(super) const LOOPBACK_INDEX: u32 = 1;
/// Number of the interface that leads to all other hosts.
pub(super) const LINK_INDEX: u32 = 2;
/// What a host takes to reach itself.
const LOOPBACK: LinkSettings = LinkSettings {
    loss: 0.0,
    duplication: 0.0,
    reordering: 0.0,
    delay_min_ns: 5_000,
    delay_max_ns: 5_000,
    bytes_per_second: None,
    longest: None,
};

/// What all sockets share.
pub(super) struct Wire {
    pub(super) time: WorldTime,
    pub(super) trace: Trace,
    pub(super) random: fastrand::Rng,
    /// For how sockets hand over what came together.
    pub(super) joins: fastrand::Rng,
    settings: LinkSettings,
    pub(super) lookup_ns: i64,
    /// What kernels know of the paths.
    pub(super) path_mtu: Option<usize>,
    pub(super) hosts: Vec<Host>,
    /// Names beside those of the hosts.
    pub(super) names: BTreeMap<String, IpAddr>,
    /// Addresses to which no route leads.
    pub(super) unreachable: BTreeSet<IpAddr>,
    pub(super) links: BTreeMap<(HostId, HostId), Link>,
    pub(super) taps: Taps,
    pub(super) sockets: BTreeMap<SocketId, Bound>,
    last_socket: SocketId,
}

/// The network of a world. Clones share it; nodes have names, and addresses from 10.0.0.1 and fd00::1 on.
#[derive(Clone)]
pub struct Network(Arc<Mutex<Wire>>);

impl Network {
    pub(crate) fn new(time: WorldTime, [random, joins]: [fastrand::Rng; 2]) -> Self {
        Self(Arc::new(Mutex::new(Wire {
            time,
            trace: Trace::default(),
            random,
            joins,
            settings: LinkSettings::default(),
            lookup_ns: 0,
            path_mtu: None,
            hosts: Vec::new(),
            names: BTreeMap::new(),
            unreachable: BTreeSet::new(),
            links: BTreeMap::new(),
            taps: Taps::default(),
            sockets: BTreeMap::new(),
            last_socket: 0,
        })))
    }

    pub(super) fn wire(&self) -> MutexGuard<'_, Wire> {
        lock(&self.0)
    }

    /// What all links do that were not set apart.
    pub fn set_links(&self, settings: LinkSettings) {
        let mut wire = self.wire();
        wire.note(format!("links: {settings:?}"));
        wire.settings = settings;
    }

    /// What kernels know of the paths: how long packets may be, headers included.
    pub fn set_path_mtu(&self, path_mtu: usize) {
        self.wire().path_mtu = Some(path_mtu);
    }

    /// How long name servers take to answer; [`i64::MAX`] is for ever. Holds for names that are asked for later.
    pub fn set_lookup_ns(&self, lookup_ns: i64) {
        let mut wire = self.wire();
        wire.note(format!("names take {lookup_ns} ns"));
        wire.lookup_ns = lookup_ns;
    }

    /// Gives name servers one more name, or another address for it. With `None` they know it no more.
    pub fn set_name(&self, name: &str, address: Option<IpAddr>) {
        let mut wire = self.wire();
        wire.note(format!("name {name}: {address:?}"));
        match address {
            Some(address) => wire.names.insert(name.to_owned(), address),
            None => wire.names.remove(name),
        };
    }

    /// Takes away the route to an address, or gives it back: without it no socket can be connected to there, nor send there.
    pub fn set_route(&self, to: IpAddr, is_there: bool) {
        let mut wire = self.wire();
        wire.note(format!("route to {to}: {is_there}"));
        if is_there {
            wire.unreachable.remove(&to);
        } else {
            wire.unreachable.insert(to);
        }
    }

    /// Delivers a datagram at once, as if `from` had sent it. No link carries it, and no node has to have that address.
    pub fn inject(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.wire().inject(Route { from, to }, bytes);
    }

    /// Keeps what sockets send from now on, for the caller to take. Injected datagrams are not part of that.
    pub fn tap(&self) -> Tap {
        self.wire().taps.add()
    }

    /// Sets one link apart, in one direction. `None` makes it like all others again.
    pub(crate) fn set_link(&self, from: HostId, to: HostId, settings: Option<LinkSettings>) {
        let mut wire = self.wire();
        let text = format!(
            "link from {} to {}: {settings:?}",
            wire.hosts[from].name, wire.hosts[to].name
        );
        wire.note(text);
        wire.links.entry((from, to)).or_default().settings = settings;
    }

    /// Cuts one direction, or mends the cut.
    pub(crate) fn set_cut(&self, from: HostId, to: HostId, is_cut: bool) {
        let mut wire = self.wire();
        let what = if is_cut { "cut" } else { "mended" };
        let text = format!(
            "link from {} to {}: {what}",
            wire.hosts[from].name, wire.hosts[to].name
        );
        wire.note(text);
        wire.links.entry((from, to)).or_default().is_cut = is_cut;
    }

    pub(crate) fn has_host(&self, name: &str) -> bool {
        self.wire().hosts.iter().any(|host| host.name == name)
    }

    pub(super) fn add_host(&self, name: &str) -> HostId {
        let mut wire = self.wire();
        let host = wire.hosts.len();
        wire.hosts.push(Host::new(name, Addresses::of(host)));
        host
    }

    /// Sockets that are open.
    pub(crate) fn socket_count(&self) -> usize {
        self.wire().sockets.len()
    }

    /// When the next datagram arrives that is still under way.
    pub(crate) fn next_arrival_ns(&self) -> Option<i64> {
        let wire = self.wire();
        wire.sockets.values().filter_map(Bound::next_arrival_ns).min()
    }

    /// As [`Self::next_arrival_ns`], after a time; what has arrived until then waits in its socket.
    pub(crate) fn next_arrival_after_ns(&self, now_ns: i64) -> Option<i64> {
        let wire = self.wire();
        let arrivals = wire.sockets.values().filter_map(Bound::next_arrival_ns);
        arrivals.filter(|arrival_ns| *arrival_ns > now_ns).min()
    }

    /// The hosts in whose sockets something waits; some of them more than once.
    pub(crate) fn hosts_with_arrivals(&self, now_ns: i64) -> Vec<HostId> {
        let wire = self.wire();
        let arrived = wire.sockets.values().filter(|bound| bound.has_arrived(now_ns));
        arrived.map(|bound| bound.host).collect()
    }

    pub(crate) fn note(&self, text: String) {
        self.wire().note(text);
    }

    /// Number of events so far, and a hash over all of them.
    pub(crate) fn digest(&self) -> (u64, u64) {
        self.wire().trace.digest()
    }

    /// The last events, one a line.
    pub(crate) fn trace(&self, count: usize) -> String {
        self.wire().trace.last(count)
    }
}

impl Wire {
    pub(super) fn note(&mut self, text: String) {
        self.trace.note(self.time.now_ns(), text);
    }

    pub(super) fn settings_of(&self, from: HostId, to: HostId) -> LinkSettings {
        let own = self.links.get(&(from, to)).and_then(|link| link.settings);
        own.unwrap_or(if from == to { LOOPBACK } else { self.settings })
    }

    fn host_at(&self, from: HostId, address: IpAddr) -> Option<HostId> {
        if address.is_loopback() {
            return Some(from);
        }
        self.hosts.iter().position(|host| host.addresses.contain(address))
    }

    /// Sends a datagram of a socket; false when its buffer is full.
    pub(super) fn send(&mut self, sender: SocketId, to: SocketAddr, bytes: &[u8]) -> bool {
        let Some(bound) = self.sockets.get(&sender) else {
            return true;
        };
        let (host, buffer_length) = (bound.host, bound.send_buffer_length);
        let route = Route {
            from: bound.source(self.hosts[host].addresses, to),
            to,
        };
        if to.ip().is_multicast() {
            self.send_to_group(sender, route, bytes);
            return true;
        }
        let now_ns = self.time.now_ns();
        let Some(target) = self.host_at(host, to.ip()) else {
            self.taps.on_send(route.from, route.to, bytes);
            self.trace.on_datagram(now_ns, route, bytes, Fate::NoNode);
            return true;
        };
        let settings = self.settings_of(host, target);
        let link = self.links.entry((host, target)).or_default();
        if link.is_full(&settings, now_ns, bytes.len(), buffer_length) {
            return false;
        }
        let passage = link.carry(&settings, now_ns, bytes.len(), &mut self.random);
        self.taps.on_send(route.from, route.to, bytes);
        match passage {
            Passage::Cut => self.trace.on_datagram(now_ns, route, bytes, Fate::Cut),
            Passage::Lost => self.trace.on_datagram(now_ns, route, bytes, Fate::Lost),
            Passage::Arrives { first_ns, second_ns } => {
                let second = second_ns.map(|second_ns| (second_ns, Fate::Duplicate(second_ns - now_ns)));
                let first = (first_ns, Fate::Arrives(first_ns - now_ns));
                for arrival in [Some(first), second].into_iter().flatten() {
                    if !self.deliver(target, route, bytes, arrival) {
                        self.refuse(sender, target, arrival.0);
                    }
                }
            }
        }
        true
    }

    fn inject(&mut self, route: Route, bytes: &[u8]) {
        if route.to.ip().is_multicast() {
            self.inject_to_group(route, bytes);
            return;
        }
        let now_ns = self.time.now_ns();
        let target = self
            .hosts
            .iter()
            .position(|host| host.addresses.contain(route.to.ip()));
        match target {
            Some(target) => {
                self.deliver(target, route, bytes, (now_ns, Fate::Arrives(0)));
            }
            None => self.trace.on_datagram(now_ns, route, bytes, Fate::NoNode),
        }
    }

    /// Puts a datagram on its way to the socket that it is for; false when there is none.
    fn deliver(
        &mut self,
        target: HostId,
        route: Route,
        bytes: &[u8],
        (arrival_ns, fate): (i64, Fate),
    ) -> bool {
        let now_ns = self.time.now_ns();
        let bound = &self.hosts[target].bound;
        let (port, to) = (route.to.port(), route.to.ip());
        let found = bound
            .get(&(port, to))
            .or_else(|| bound.get(&(port, unspecified(to))));
        let receiver = found.and_then(|id| self.sockets.get_mut(id));
        let Some(receiver) = receiver.filter(|receiver| receiver.accepts(route.from)) else {
            self.trace.on_datagram(now_ns, route, bytes, Fate::NoSocket);
            return false;
        };
        receiver.fill_receive_buffer(now_ns, &mut self.trace);
        receiver.expect(route, bytes, arrival_ns);
        self.trace.on_datagram(now_ns, route, bytes, fate);
        true
    }

    /// Tells a connected socket that no one receives what it sends, if the way back is open.
    fn refuse(&mut self, sender: SocketId, target: HostId, arrival_ns: i64) {
        let Some(sender) = self.sockets.get_mut(&sender) else {
            return;
        };
        let back = self.links.get(&(target, sender.host));
        if sender.remote.is_some() && !back.is_some_and(|link| link.is_cut) {
            sender.refused_at_ns = Some(2 * arrival_ns - self.time.now_ns());
        }
    }

    /// True once after a datagram of the socket was refused: what a system call on it is told then.
    pub(super) fn take_refusal(&mut self, id: SocketId) -> bool {
        let now_ns = self.time.now_ns();
        let bound = self.sockets.get_mut(&id);
        bound.is_some_and(|bound| bound.refused_at_ns.take_if(|at_ns| *at_ns <= now_ns).is_some())
    }

    pub(super) fn is_reachable(&self, to: SocketAddr) -> bool {
        !self.unreachable.contains(&to.ip())
    }

    pub(super) fn bind(
        &mut self,
        host: HostId,
        request: &SocketRequest,
    ) -> io::Result<(SocketId, SocketAddr)> {
        let SocketRequest {
            local,
            remote,
            options,
        } = request;
        let own = &mut self.hosts[host];
        let ip = local.ip();
        if !ip.is_loopback() && !own.addresses.contain(ip) && !ip.is_unspecified() {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let joins = options.group.is_some_and(|group| group.joins.is_some());
        let port = if joins {
            own.shared_port(*local)?
        } else {
            own.port(*local)?
        };
        let local = SocketAddr::new(ip, port);
        self.last_socket += 1;
        if joins {
            own.shared.push((port, self.last_socket));
        } else {
            own.bound.insert((port, ip), self.last_socket);
        }
        let granted = |asked: Option<usize>| asked.unwrap_or(BUFFER_LENGTH).min(BUFFER_LENGTH_MAX);
        let [send, receive] = [options.send_buffer_length, options.receive_buffer_length].map(granted);
        let mut bound = Bound::new(host, local, *remote, options.group, [send, receive]);
        bound.stamps_arrivals = options.stamps_arrivals;
        bound.segments_max = 1 << self.joins.u32(0..=SEGMENTS_BITS);
        bound.keeps_joined = self.joins.bool();
        let group = options
            .group
            .map_or_else(String::new, |group| format!(", {group:?}"));
        self.note(format!(
            "{} opens {local} for {remote:?} with buffers of {send} and {receive} bytes{group}",
            self.hosts[host].name
        ));
        self.sockets.insert(self.last_socket, bound);
        Ok((self.last_socket, local))
    }

    pub(super) fn close(&mut self, id: SocketId) {
        if let Some(bound) = self.sockets.remove(&id) {
            let host = &mut self.hosts[bound.host];
            if bound.shares_port() {
                host.shared.retain(|(_, shared)| *shared != id);
            } else {
                host.bound.remove(&(bound.local.port(), bound.local.ip()));
            }
        }
    }
}
