//! What a run has: its nodes, its streams, its time-outs.

use headrace_client::ClientConfig;
use headrace_driver::DriverConfig;
use headrace_sim::Node;

use crate::common::SECOND;

/// Kinds of streams: unicast thrice, IPv6, IPC, two paths, a group, receivers that report.
const KINDS: usize = 8;

/// Servers that answer requests: one over the network, one inside a node.
pub(crate) const SERVICES: usize = 2;

/// Where the requests of a service go, and where the answers to them come from.
pub(crate) struct Route {
    pub(crate) requests: (usize, String),
    pub(crate) answers: (usize, String),
    pub(crate) is_local: bool,
}

/// How large a world is, and how fast it ages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) nodes: usize,
    pub(crate) streams: usize,
    /// Publishers at the start, and subscribers.
    pub(crate) people: usize,
    /// Requesters at the start.
    pub(crate) requesters: usize,
    /// Things that are done to it, one after the other.
    pub(crate) actions: usize,
    /// Untethered readers are never left behind.
    pub(crate) is_patient: bool,
    /// Messages that fit in each queue between the agents of a driver.
    pub(crate) queue_capacity: usize,
    /// What all time-outs are divided by. Most of a run is waiting for them.
    pub(crate) time_divisor: i64,
}

impl Shape {
    /// One of sixty seeds has the time-outs of the specification, and one of forty hundreds of streams.
    pub(crate) fn of(seed: u64) -> Self {
        let base = Self {
            nodes: 3,
            streams: KINDS,
            people: 2 * KINDS,
            requesters: 6,
            actions: 60,
            is_patient: seed % 5 == 1,
            queue_capacity: [4, 64, 1024][seed as usize % 3],
            time_divisor: 10,
        };
        match seed % 120 {
            5 | 45 | 85 => Self {
                nodes: 2,
                streams: 300,
                people: 300,
                actions: 12,
                ..base
            },
            turn if turn % 60 == 3 => Self {
                time_divisor: 1,
                ..base
            },
            turn if turn % 4 == 2 => Self { nodes: 2, ..base },
            _ => base,
        }
    }

    /// A time that is this long where time-outs are those of the specification.
    pub(crate) fn time(self, ns: i64) -> i64 {
        ns / self.time_divisor
    }

    pub(crate) fn change_driver(self, config: &mut DriverConfig) {
        for timeout_ns in [
            &mut config.client_liveness_timeout_ns,
            &mut config.image_liveness_timeout_ns,
            &mut config.publication_connection_timeout_ns,
            &mut config.publication_linger_timeout_ns,
            &mut config.publication_unblock_timeout_ns,
            &mut config.untethered_window_limit_timeout_ns,
            &mut config.untethered_resting_timeout_ns,
            &mut config.counters_free_to_reuse_timeout_ns,
            &mut config.timer_interval_ns,
        ] {
            *timeout_ns /= self.time_divisor;
        }
        if self.is_patient {
            config.untethered_window_limit_timeout_ns = i64::MAX;
        }
    }

    pub(crate) fn change_client(self, config: &mut ClientConfig) {
        config.keepalive_interval_ns /= self.time_divisor;
        config.resource_linger_ns /= self.time_divisor;
    }

    /// The node that a stream goes to.
    pub(crate) fn receiver_of(self, stream: usize) -> usize {
        stream % self.nodes
    }

    /// True for a stream inside one node.
    pub(crate) fn is_local(self, stream: usize) -> bool {
        stream % KINDS == 4
    }

    /// True for a stream that any node may receive.
    pub(crate) fn is_of_group(self, stream: usize) -> bool {
        stream % KINDS >= 6
    }

    /// The only node that a stream comes from, if its receivers name one.
    pub(crate) fn sender_of(self, stream: usize) -> Option<usize> {
        match stream % KINDS {
            4 => Some(self.receiver_of(stream)),
            7 => Some((self.receiver_of(stream) + 1) % self.nodes),
            _ => None,
        }
    }

    fn control(self, stream: usize, nodes: &[Node]) -> String {
        let sender = &nodes[self.sender_of(stream).unwrap_or_default()];
        format!(
            "control={}:{}|control-mode=dynamic",
            sender.name(),
            41_000 + stream
        )
    }

    /// The channel of a publication.
    pub(crate) fn channel(self, stream: usize, nodes: &[Node]) -> String {
        let receiver = &nodes[self.receiver_of(stream)];
        match stream % KINDS {
            7 => format!("aeron:udp?{}|term-length=64k", self.control(stream, nodes)),
            6 => "aeron:udp?endpoint=224.0.1.1:40128|term-length=64k".to_owned(),
            5 => "aeron:udp?control-mode=manual|term-length=64k".to_owned(),
            4 => "aeron:ipc?term-length=64k".to_owned(),
            3 => format!(
                "aeron:udp?endpoint=[{}]:40124|term-length=64k",
                receiver.address_v6()
            ),
            _ => format!("aeron:udp?endpoint={}:40123|term-length=64k", receiver.name()),
        }
    }

    /// The channel of a subscription, which says the same but for the length of terms.
    pub(crate) fn receiving_channel(self, stream: usize, nodes: &[Node]) -> String {
        match stream % KINDS {
            7 => format!("aeron:udp?{}", self.control(stream, nodes)),
            5 => "aeron:udp?control-mode=manual|tags=40125".to_owned(),
            _ => self.channel(stream, nodes),
        }
    }

    /// The paths of a stream that takes several: both ends add them as destinations.
    pub(crate) fn paths(self, stream: usize, nodes: &[Node]) -> Vec<String> {
        let name = nodes[self.receiver_of(stream)].name();
        let ports = if stream % KINDS == 5 { 40_125..40_127 } else { 0..0 };
        ports
            .map(|port| format!("aeron:udp?endpoint={name}:{port}"))
            .collect()
    }

    /// True for a stream that nodes may watch on its way out.
    pub(crate) fn has_spies(self, stream: usize) -> bool {
        // A manual channel has no address that a spy could name.
        stream % KINDS < 4
    }

    /// The node of a service's server.
    pub(crate) fn server_of(self, service: usize) -> usize {
        service
    }

    /// True for a service that only its own node can ask.
    pub(crate) fn is_local_service(self, service: usize) -> bool {
        service == 1
    }

    pub(crate) fn route(self, service: usize, nodes: &[Node]) -> Route {
        let server = nodes[self.server_of(service)].name();
        let is_local = self.is_local_service(service);
        let (requests, answers) = if is_local {
            (
                "aeron:ipc?term-length=64k".to_owned(),
                "aeron:ipc?term-length=64k".to_owned(),
            )
        } else {
            (
                format!("aeron:udp?endpoint={server}:40130|term-length=64k"),
                format!("aeron:udp?control={server}:40131|term-length=64k"),
            )
        };
        let stream = 1_000 + 2 * service;
        Route {
            requests: (stream, requests),
            answers: (stream + 1, format!("{answers}|control-mode=response")),
            is_local,
        }
    }

    /// Pauses, and the time that may pass after an action: shorter than the time-outs of clients, so that they live on.
    pub(crate) fn wait_max_ns(self) -> i64 {
        self.time(3 * SECOND)
    }

    /// How long it may take until all goes on again.
    pub(crate) fn recovery_ns(self) -> i64 {
        self.time(40 * SECOND) + 5 * SECOND
    }
}
