//! Name servers, as one host sees them.

use std::collections::VecDeque;

use headrace_driver::environment::{LookedUp, Lookups};

use super::addresses::HostId;
use super::wire::Network;

/// Knows the names of the hosts, and answers on a turn after it was asked, when the time for it has come.
pub(crate) struct Names {
    network: Network,
    host: HostId,
    /// With the time of the answer.
    asked: VecDeque<(String, i64)>,
}

impl Names {
    pub(super) fn new(network: Network, host: HostId) -> Self {
        Self {
            network,
            host,
            asked: VecDeque::new(),
        }
    }
}

impl Lookups for Names {
    fn begin(&mut self, host: &str) {
        let answer_ns = {
            let mut wire = self.network.wire();
            let text = format!("{} asks for the name {host}", wire.hosts[self.host].name);
            wire.note(text);
            wire.time.now_ns().saturating_add(wire.lookup_ns)
        };
        self.asked.push_back((host.to_owned(), answer_ns));
    }

    fn take_finished(&mut self) -> Option<LookedUp> {
        let wire = self.network.wire();
        let now_ns = wire.time.now_ns();
        let ready = self
            .asked
            .iter()
            .position(|(_, answer_ns)| *answer_ns <= now_ns)?;
        let (host, _) = self.asked.remove(ready)?;
        let known = wire.hosts.iter().find(|known| known.name == host);
        let address = known.map(|known| known.addresses.v4.into());
        Some(LookedUp {
            answer: address
                .or_else(|| wire.names.get(&host).copied())
                .ok_or_else(|| "no node has this name".to_owned()),
            host,
            duration_ns: 0,
        })
    }
}
