//! Multicast: what is sent to a group reaches the sockets that joined it.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::addresses::HostId;
use super::bound::{Bound, SocketId};
use super::link::Passage;
use super::wire::{LINK_INDEX, LOOPBACK_INDEX, Wire};
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
        let index = interface.index;
        let reaches_others = index != LOOPBACK_INDEX && bound.group.and_then(|group| group.ttl) != Some(0);
        self.taps.on_send(route.from, route.to, bytes);
        let mut targets = self.hosts_with_members(route.to, index);
        targets.retain(|target| *target == host || reaches_others);
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
                    self.deliver_to_members(target, index, route, bytes, first);
                    if let Some(second_ns) = second_ns {
                        let second = (second_ns, Fate::Duplicate(second_ns - now_ns));
                        self.deliver_to_members(target, index, route, bytes, second);
                    }
                }
            }
        }
    }

    /// Delivers a copy to each member on the link between the hosts, at once.
    pub(super) fn inject_to_group(&mut self, route: Route, bytes: &[u8]) {
        let now_ns = self.time.now_ns();
        let targets = self.hosts_with_members(route.to, LINK_INDEX);
        if targets.is_empty() {
            self.trace.on_datagram(now_ns, route, bytes, Fate::NoSocket);
        }
        for target in targets {
            self.deliver_to_members(target, LINK_INDEX, route, bytes, (now_ns, Fate::Arrives(0)));
        }
    }

    fn hosts_with_members(&self, group: SocketAddr, interface_index: u32) -> BTreeSet<HostId> {
        let members = self.members(group, interface_index);
        members.map(|(_, member)| member.host).collect()
    }

    fn members(&self, group: SocketAddr, interface_index: u32) -> impl Iterator<Item = (SocketId, &Bound)> {
        self.sockets
            .iter()
            .filter(move |(_, bound)| bound.is_member(group, interface_index))
            .map(|(id, bound)| (*id, bound))
    }

    fn deliver_to_members(
        &mut self,
        target: HostId,
        interface_index: u32,
        route: Route,
        bytes: &[u8],
        (arrival_ns, fate): (i64, Fate),
    ) {
        let now_ns = self.time.now_ns();
        let on_host = |(id, member): (SocketId, &Bound)| (member.host == target).then_some(id);
        let members: Vec<SocketId> = self
            .members(route.to, interface_index)
            .filter_map(on_host)
            .collect();
        for id in members {
            if let Some(member) = self.sockets.get_mut(&id) {
                member.fill_receive_buffer(now_ns, &mut self.trace);
                member.expect(route, bytes, arrival_ns);
                self.trace.on_datagram(now_ns, route, bytes, fate);
            }
        }
    }
}
