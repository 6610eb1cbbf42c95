//! Multicast: what is sent to a group reaches the sockets that joined it.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use headrace_sys::net::GroupInterface;

use super::link::Passage;
use super::socket::{Bound, SocketId};
use super::{HostId, LOOPBACK_INDEX, Wire};
use crate::trace::{Fate, Route};

impl Wire {
    /// Sends a copy to each host with members, over the link to it. No link is waited for: a full one loses its copy, as
    /// a switch does. Without a group of its own, a socket has no interface to send through.
    pub(super) fn send_to_group(&mut self, sender: SocketId, route: Route, bytes: &[u8]) {
        let now_ns = self.time.now_ns();
        let bound = &self.sockets[&sender];
        let (host, buffer_length) = (bound.host, bound.send_buffer_length);
        let Some(interface) = bound.group.map(|group| group.interface) else {
            self.trace.on_datagram(now_ns, route, bytes, Fate::NoNode);
            return;
        };
        let reaches_others =
            interface.index != LOOPBACK_INDEX && bound.group.and_then(|group| group.ttl) != Some(0);
        let targets: BTreeSet<HostId> = self
            .members(route.to, interface)
            .map(|(_, member)| member.host)
            .filter(|target| *target == host || reaches_others)
            .collect();
        if targets.is_empty() {
            self.trace.on_datagram(now_ns, route, bytes, Fate::NoSocket);
        }
        for target in targets {
            let settings = self.settings_of(host, target);
            let link = self.links.entry((host, target)).or_default();
            if link.is_full(&settings, now_ns, bytes.len(), buffer_length) {
                self.trace.on_datagram(now_ns, route, bytes, Fate::Lost);
                continue;
            }
            match link.carry(&settings, now_ns, bytes.len(), &mut self.random) {
                Passage::Cut => self.trace.on_datagram(now_ns, route, bytes, Fate::Cut),
                Passage::Lost => self.trace.on_datagram(now_ns, route, bytes, Fate::Lost),
                Passage::Arrives { first_ns, second_ns } => {
                    let first = (first_ns, Fate::Arrives(first_ns - now_ns));
                    self.deliver_to_members(target, interface, route, bytes, first);
                    if let Some(second_ns) = second_ns {
                        let second = (second_ns, Fate::Duplicate(second_ns - now_ns));
                        self.deliver_to_members(target, interface, route, bytes, second);
                    }
                }
            }
        }
    }

    fn members(
        &self,
        group: SocketAddr,
        interface: GroupInterface,
    ) -> impl Iterator<Item = (SocketId, &Bound)> {
        self.sockets
            .iter()
            .filter(move |(_, bound)| bound.is_member(group, interface))
            .map(|(id, bound)| (*id, bound))
    }

    fn deliver_to_members(
        &mut self,
        target: HostId,
        interface: GroupInterface,
        route: Route,
        bytes: &[u8],
        (arrival_ns, fate): (i64, Fate),
    ) {
        let now_ns = self.time.now_ns();
        let on_host = |(id, member): (SocketId, &Bound)| (member.host == target).then_some(id);
        let members: Vec<SocketId> = self.members(route.to, interface).filter_map(on_host).collect();
        for id in members {
            if let Some(member) = self.sockets.get_mut(&id) {
                member.settle(now_ns, &mut self.trace);
                member.expect(route, bytes, arrival_ns);
                self.trace.on_datagram(now_ns, route, bytes, fate);
            }
        }
    }
}
