//! The sockets of a receive channel. The index of a socket is the path of the datagrams that arrive through it.
//!
//! A channel that names where to listen has path 0 and no other. One whose destinations clients add has as many as there
//! are destinations; the conductor numbers them, and a number is used again once its socket is closed.

use std::net::SocketAddr;

use headrace_buffers::doorbell::Interests;

use super::elicitor::Elicitor;
use crate::endpoint::ReceivePathSpec;
use crate::transport;

/// One socket of a receive channel.
pub(super) struct Path {
    pub(super) spec: ReceivePathSpec,
    pub(super) elicitor: Option<Elicitor>,
}

impl Path {
    pub(super) fn new(spec: ReceivePathSpec, now_ns: i64) -> Self {
        let control = spec.control.as_ref();
        let path = Self {
            elicitor: control.map(|control| Elicitor::new(control.address, control.name.is_some(), now_ns)),
            spec,
        };
        path.publish_offload_mode();
        path
    }

    /// Something arrived.
    pub(super) fn on_heard(&mut self, now_ns: i64) {
        self.spec.heard.set(now_ns);
        if let Some(elicitor) = &mut self.elicitor {
            elicitor.on_heard(now_ns);
        }
    }

    /// The address for feedback to all senders; without it, feedback goes to the source of a stream.
    pub(super) fn group_control(&self) -> Option<SocketAddr> {
        self.spec.group.map(|group| group.control)
    }

    pub(super) fn publish_offload_mode(&self) {
        if let Some(counter) = &self.spec.offload_mode {
            counter.set_release(self.spec.transport.receive_mode() as i64);
        }
    }
}

/// All of them.
#[derive(Default)]
pub(super) struct Paths {
    list: Vec<Option<Path>>,
}

impl Paths {
    /// How many numbers have been used. Not all of them need to be in use.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn get(&self, path: usize) -> Option<&Path> {
        self.list.get(path)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, path: usize) -> Option<&mut Path> {
        self.list.get_mut(path)?.as_mut()
    }

    /// Whether feedback to an address on a path goes where the subscriber says: to the control address that it names,
    /// or to a group.
    pub(super) fn sends_feedback_as_named(&self, path: usize, address: SocketAddr) -> bool {
        self.get(path).is_some_and(|path| {
            let control = path.elicitor.as_ref().map(Elicitor::control);
            path.group_control().is_some() || control == Some(address)
        })
    }

    /// Those there are, with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Path)> {
        let each = self.list.iter().enumerate();
        each.filter_map(|(path, found)| found.as_ref().map(|found| (path, found)))
    }

    pub(super) fn add(&mut self, path: usize, added: Path) {
        if self.list.len() <= path {
            self.list.resize_with(path + 1, || None);
        }
        self.list[path] = Some(added);
    }

    /// Closes the socket of one.
    pub(super) fn remove(&mut self, path: usize) {
        if let Some(found) = self.list.get_mut(path) {
            *found = None;
        }
        let used = self.list.iter().rposition(Option::is_some);
        self.list.truncate(used.map_or(0, |last| last + 1));
    }

    /// Arrivals on any.
    pub(super) fn describe(&self, interests: &mut Interests) {
        for (_, path) in self.iter() {
            transport::describe(path.spec.transport.as_ref(), interests);
        }
    }
}
