//! What lies outside the driver: names and sockets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use headrace_protocol::channel::Interface;
use headrace_sys::net::{Coalesced, OffloadMode, ReceiveBatch, Run};

use crate::conductor::ProcessWatch;
use crate::environment::{BufferLengths, LookedUp, Lookups, Network, OpenSocket, SocketRequest};
use crate::transport::Transport;

/// A name server that answers at once, or when the test says so. It knows the names that the test gave addresses.
#[derive(Clone, Default)]
pub(super) struct Hosts {
    state: Arc<Mutex<HostsState>>,
}

#[derive(Default)]
struct HostsState {
    addresses: BTreeMap<String, IpAddr>,
    is_silent: bool,
    asked: Vec<String>,
    under_way: VecDeque<String>,
}

impl Hosts {
    pub(super) fn put(&self, host: &str, ip: &str) {
        let ip = ip.parse().unwrap();
        self.state.lock().unwrap().addresses.insert(host.to_owned(), ip);
    }

    pub(super) fn lose(&self, host: &str) {
        self.state.lock().unwrap().addresses.remove(host);
    }

    /// Answers nothing from now on.
    pub(super) fn fall_silent(&self) {
        self.state.lock().unwrap().is_silent = true;
    }

    /// Answers what it was asked meanwhile, and all that follows.
    pub(super) fn answer(&self) {
        self.state.lock().unwrap().is_silent = false;
    }

    /// The names it was asked for, in order.
    pub(super) fn asked(&self) -> Vec<String> {
        self.state.lock().unwrap().asked.clone()
    }
}

impl Lookups for Hosts {
    fn begin(&mut self, host: &str) {
        let mut state = self.state.lock().unwrap();
        state.asked.push(host.to_owned());
        state.under_way.push_back(host.to_owned());
    }

    fn take_finished(&mut self) -> Option<LookedUp> {
        let mut state = self.state.lock().unwrap();
        if state.is_silent {
            return None;
        }
        let host = state.under_way.pop_front()?;
        let known = state.addresses.get(&host).copied();
        Some(LookedUp {
            host,
            answer: known.ok_or_else(|| "no such host".to_owned()),
            duration_ns: 1,
        })
    }
}

/// Processes of clients that show that they live.
#[derive(Clone, Default)]
pub(super) struct Processes {
    alive: Arc<Mutex<BTreeSet<i64>>>,
}

impl Processes {
    pub(super) fn start(&self, client_id: i64) {
        self.alive.lock().unwrap().insert(client_id);
    }

    pub(super) fn kill(&self, client_id: i64) {
        assert!(self.alive.lock().unwrap().remove(&client_id));
    }
}

impl ProcessWatch for Processes {
    fn is_alive(&self, client_id: i64) -> bool {
        self.alive.lock().unwrap().contains(&client_id)
    }
}

/// One socket as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    pub(super) local: SocketAddr,
    pub(super) remote: Option<SocketAddr>,
    pub(super) send_buffer_length: Option<usize>,
    pub(super) receive_buffer_length: Option<usize>,
}

/// Sockets that send nowhere and receive what a test puts in. Two may not be bound to the same port.
#[derive(Clone, Default)]
pub(super) struct Sockets {
    opened: Arc<Mutex<Vec<Opened>>>,
    incoming: Arc<Mutex<VecDeque<Vec<u8>>>>,
}

impl Sockets {
    pub(super) fn opened(&self) -> Vec<Opened> {
        self.opened.lock().unwrap().clone()
    }

    /// The next socket that is polled receives the datagram.
    pub(super) fn deliver(&self, datagram: &[u8]) {
        self.incoming.lock().unwrap().push_back(datagram.to_vec());
    }
}

impl Network for Sockets {
    fn open(&self, request: &SocketRequest) -> io::Result<OpenSocket> {
        let SocketRequest {
            local,
            remote,
            options,
        } = request.clone();
        let mut opened = self.opened.lock().unwrap();
        if local.port() != 0 && opened.iter().any(|socket| socket.local == local) {
            return Err(io::Error::from_raw_os_error(98));
        }
        opened.push(Opened {
            local,
            remote,
            send_buffer_length: options.send_buffer_length,
            receive_buffer_length: options.receive_buffer_length,
        });
        let port = if local.port() == 0 { 50_000 } else { local.port() };
        Ok(OpenSocket {
            transport: Box::new(FakeTransport(Arc::clone(&self.incoming))),
            local: SocketAddr::new(local.ip(), port),
            // As Linux does, which keeps the other half for its own book-keeping.
            send_buffer_length: options.send_buffer_length.map_or(212_992, |asked| 2 * asked),
            receive_buffer_length: options.receive_buffer_length.map_or(212_992, |asked| 2 * asked),
        })
    }

    fn buffer_lengths(&self) -> io::Result<BufferLengths> {
        Ok(BufferLengths {
            default_send_length: 212_992,
            default_receive_length: 212_992,
            max_send_length: 212_992,
            max_receive_length: 212_992,
        })
    }

    fn interfaces(&self) -> io::Result<Vec<Interface>> {
        Ok(vec![Interface {
            name: "lo".to_owned(),
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            prefix_length: 8,
            is_up: true,
            is_loopback: true,
            is_multicast: false,
        }])
    }
}

struct FakeTransport(Arc<Mutex<VecDeque<Vec<u8>>>>);

impl Transport for FakeTransport {
    fn send_runs(&self, runs: &[Run<'_>], _to: Option<SocketAddr>) -> io::Result<usize> {
        Ok(runs.iter().map(|run| run.region.len()).sum())
    }

    fn send(&self, datagram: &[u8], _to: Option<SocketAddr>) -> io::Result<usize> {
        Ok(datagram.len())
    }

    fn receive(
        &self,
        _batch: &mut ReceiveBatch,
        handler: &mut dyn FnMut(Coalesced<'_>),
    ) -> io::Result<usize> {
        let datagrams = std::mem::take(&mut *self.0.lock().unwrap());
        let count = datagrams.len();
        for mut bytes in datagrams {
            handler(Coalesced {
                datagram_length: bytes.len(),
                bytes: &mut bytes,
                source: SocketAddr::from(([10, 1, 2, 3], 4567)),
            });
        }
        Ok(count)
    }

    fn connect(&self, _remote: SocketAddr) -> io::Result<()> {
        Ok(())
    }

    fn descriptor(&self) -> Option<std::os::fd::RawFd> {
        None
    }

    fn send_mode(&self) -> OffloadMode {
        OffloadMode::Single
    }

    fn receive_mode(&self) -> OffloadMode {
        OffloadMode::Single
    }
}
