//! The network of a world: hosts by address and name, sockets by port, and a link for each pair of hosts.
//!
//! It runs on the time of the world, draws from a generator of its own, and walks only ordered tables.

mod link;
mod socket;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headrace_driver::environment::{BufferLengths, LookedUp, Lookups, OpenSocket};
use headrace_protocol::channel::Interface;
use headrace_sys::net::SocketOptions;

use crate::time::WorldTime;
use crate::trace::{Fate, Route, Trace};
use link::{Link, Passage};
use socket::{Bound, Socket, SocketId};

pub use link::LinkSettings;

/// What a socket gets without asking, as on Linux.
const BUFFER_LENGTH: usize = 212_992;
/// What a socket gets at most.
const BUFFER_LENGTH_MAX: usize = 4 * 1024 * 1024;
/// First port that is handed out, as on Linux.
const EPHEMERAL_FIRST: u16 = 32_768;
/// What a host takes to reach itself.
const LOOPBACK: LinkSettings = LinkSettings {
    loss: 0.0,
    duplication: 0.0,
    reordering: 0.0,
    delay_min_ns: 5_000,
    delay_max_ns: 5_000,
    bytes_per_second: None,
};

/// Index of a host in its network.
pub(crate) type HostId = usize;

struct Host {
    name: String,
    address: IpAddr,
    bound: BTreeMap<(u16, IpAddr), SocketId>,
    next_port: u16,
}

/// What all sockets share.
struct Wire {
    time: WorldTime,
    trace: Trace,
    random: fastrand::Rng,
    settings: LinkSettings,
    hosts: Vec<Host>,
    links: BTreeMap<(HostId, HostId), Link>,
    sockets: BTreeMap<SocketId, Bound>,
    last_socket: SocketId,
}

/// The network of a world. Clones share it; nodes have names, and addresses from 10.0.0.1 on.
#[derive(Clone)]
pub struct Network(Arc<Mutex<Wire>>);

impl Network {
    pub(crate) fn new(time: WorldTime, random: fastrand::Rng) -> Self {
        Self(Arc::new(Mutex::new(Wire {
            time,
            trace: Trace::default(),
            random,
            settings: LinkSettings::default(),
            hosts: Vec::new(),
            links: BTreeMap::new(),
            sockets: BTreeMap::new(),
            last_socket: 0,
        })))
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What all links do that were not set apart.
    pub fn set_links(&self, settings: LinkSettings) {
        let mut wire = self.wire();
        wire.note(format!("links: {settings:?}"));
        wire.settings = settings;
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

    pub(crate) fn add_host(&self, name: &str) -> HostNetwork {
        let mut wire = self.wire();
        let host = wire.hosts.len();
        let [high, low] = (host as u16 + 1).to_be_bytes();
        wire.hosts.push(Host {
            name: name.to_owned(),
            address: IpAddr::V4(Ipv4Addr::new(10, 0, high, low)),
            bound: BTreeMap::new(),
            next_port: EPHEMERAL_FIRST,
        });
        HostNetwork {
            network: self.clone(),
            host,
        }
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
    fn note(&mut self, text: String) {
        self.trace.note(self.time.now_ns(), text);
    }

    fn settings_of(&self, from: HostId, to: HostId) -> LinkSettings {
        let own = self.links.get(&(from, to)).and_then(|link| link.settings);
        own.unwrap_or(if from == to { LOOPBACK } else { self.settings })
    }

    fn host_at(&self, from: HostId, address: IpAddr) -> Option<HostId> {
        if address.is_loopback() {
            return Some(from);
        }
        self.hosts.iter().position(|host| host.address == address)
    }

    /// Sends a datagram of a socket; false when its buffer is full.
    fn send(&mut self, sender: SocketId, to: SocketAddr, bytes: &[u8]) -> bool {
        let Some(bound) = self.sockets.get(&sender) else {
            return true;
        };
        let (host, buffer_length) = (bound.host, bound.send_buffer_length);
        let route = Route {
            from: bound.source(self.hosts[host].address, to),
            to,
        };
        let now_ns = self.time.now_ns();
        let Some(target) = self.host_at(host, to.ip()) else {
            self.trace.on_datagram(now_ns, route, bytes, Fate::NoNode);
            return true;
        };
        let settings = self.settings_of(host, target);
        let link = self.links.entry((host, target)).or_default();
        if link.is_full(&settings, now_ns, bytes.len(), buffer_length) {
            return false;
        }
        match link.carry(&settings, now_ns, bytes.len(), &mut self.random) {
            Passage::Cut => self.trace.on_datagram(now_ns, route, bytes, Fate::Cut),
            Passage::Lost => self.trace.on_datagram(now_ns, route, bytes, Fate::Lost),
            Passage::Arrives { first_ns, second_ns } => {
                self.deliver(target, route, bytes, first_ns, Fate::Arrives(first_ns - now_ns));
                if let Some(second_ns) = second_ns {
                    self.deliver(
                        target,
                        route,
                        bytes,
                        second_ns,
                        Fate::Duplicate(second_ns - now_ns),
                    );
                }
            }
        }
        true
    }

    fn deliver(&mut self, target: HostId, route: Route, bytes: &[u8], arrival_ns: i64, fate: Fate) {
        let now_ns = self.time.now_ns();
        let bound = &self.hosts[target].bound;
        let (port, any) = (route.to.port(), IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let found = bound
            .get(&(port, route.to.ip()))
            .or_else(|| bound.get(&(port, any)));
        let receiver = found.and_then(|id| self.sockets.get_mut(id));
        let Some(receiver) = receiver.filter(|receiver| receiver.accepts(route.from)) else {
            self.trace.on_datagram(now_ns, route, bytes, Fate::NoSocket);
            return;
        };
        receiver.settle(now_ns, &mut self.trace);
        receiver.expect(route, bytes, arrival_ns);
        self.trace.on_datagram(now_ns, route, bytes, fate);
    }

    fn bind(
        &mut self,
        host: HostId,
        local: SocketAddr,
        remote: Option<SocketAddr>,
        options: &SocketOptions,
    ) -> io::Result<(SocketId, SocketAddr)> {
        let own = &mut self.hosts[host];
        let is_local = local.ip().is_loopback() || local.ip() == own.address || local.ip().is_unspecified();
        if !local.is_ipv4() || !is_local {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let local = SocketAddr::new(local.ip(), own.port(local)?);
        self.last_socket += 1;
        own.bound.insert((local.port(), local.ip()), self.last_socket);
        let granted = |asked: Option<usize>| asked.unwrap_or(BUFFER_LENGTH).min(BUFFER_LENGTH_MAX);
        let bound = Bound::new(
            host,
            local,
            remote,
            granted(options.send_buffer_length),
            granted(options.receive_buffer_length),
        );
        self.sockets.insert(self.last_socket, bound);
        Ok((self.last_socket, local))
    }

    fn close(&mut self, id: SocketId) {
        if let Some(bound) = self.sockets.remove(&id) {
            let key = (bound.local.port(), bound.local.ip());
            self.hosts[bound.host].bound.remove(&key);
        }
    }
}

impl Host {
    /// The port to bind: the one asked for if it is free, else the next free one.
    fn port(&mut self, local: SocketAddr) -> io::Result<u16> {
        let is_free = |port: u16| {
            let mut bound = self.bound.keys().filter(|(taken, _)| *taken == port);
            bound.all(|(_, ip)| *ip != local.ip() && !ip.is_unspecified() && !local.ip().is_unspecified())
        };
        if local.port() != 0 {
            let port = local.port();
            return is_free(port)
                .then_some(port)
                .ok_or_else(|| io::ErrorKind::AddrInUse.into());
        }
        let next = self.next_port;
        let port = (next..=u16::MAX)
            .chain(EPHEMERAL_FIRST..next)
            .find(|port| is_free(*port))
            .ok_or(io::ErrorKind::AddrInUse)?;
        self.next_port = port.checked_add(1).unwrap_or(EPHEMERAL_FIRST);
        Ok(port)
    }
}

/// The network as the driver of one host sees it.
#[derive(Clone)]
pub(crate) struct HostNetwork {
    network: Network,
    host: HostId,
}

impl HostNetwork {
    pub(crate) fn host(&self) -> HostId {
        self.host
    }

    pub(crate) fn address(&self) -> IpAddr {
        self.network.wire().hosts[self.host].address
    }

    pub(crate) fn names(&self) -> Names {
        Names {
            network: self.network.clone(),
            asked: VecDeque::new(),
        }
    }
}

impl headrace_driver::environment::Network for HostNetwork {
    fn open(
        &self,
        local: SocketAddr,
        remote: Option<SocketAddr>,
        options: &SocketOptions,
    ) -> io::Result<OpenSocket> {
        let mut wire = self.network.wire();
        let (id, local) = wire.bind(self.host, local, remote, options)?;
        let bound = &wire.sockets[&id];
        Ok(OpenSocket {
            transport: Box::new(Socket::new(self.network.clone(), id)),
            // As the system tells it: connecting chooses the address, being bound to all leaves it open.
            local: remote.map_or(local, |remote| {
                bound.source(wire.hosts[self.host].address, remote)
            }),
            send_buffer_length: bound.send_buffer_length,
            receive_buffer_length: bound.receive_buffer_length,
        })
    }

    fn buffer_lengths(&self) -> io::Result<BufferLengths> {
        Ok(BufferLengths {
            default_send_length: BUFFER_LENGTH,
            default_receive_length: BUFFER_LENGTH,
            max_send_length: BUFFER_LENGTH_MAX,
            max_receive_length: BUFFER_LENGTH_MAX,
        })
    }

    fn interfaces(&self) -> io::Result<Vec<Interface>> {
        let interface = |name: &str, address: IpAddr, prefix_length| Interface {
            name: name.to_owned(),
            address,
            prefix_length,
            is_up: true,
            is_loopback: address.is_loopback(),
            is_multicast: false,
        };
        Ok(vec![
            interface("lo", IpAddr::V4(Ipv4Addr::LOCALHOST), 8),
            interface("sim0", self.address(), 16),
        ])
    }
}

/// Knows the names of the hosts, and answers on the turn after it was asked.
pub(crate) struct Names {
    network: Network,
    asked: VecDeque<String>,
}

impl Lookups for Names {
    fn begin(&mut self, host: &str) {
        self.asked.push_back(host.to_owned());
    }

    fn take_finished(&mut self) -> Option<LookedUp> {
        let host = self.asked.pop_front()?;
        let wire = self.network.wire();
        let known = wire.hosts.iter().find(|known| known.name == host);
        Some(LookedUp {
            answer: known
                .map(|known| known.address)
                .ok_or_else(|| "no node has this name".to_owned()),
            host,
            duration_ns: 0,
        })
    }
}

#[cfg(test)]
mod tests;
