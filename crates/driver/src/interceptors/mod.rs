//! Loss on purpose, for tests of programs and of drivers: between sockets and transport, for what arrives.
//!
//! A driver without the settings has its sockets as they are. With them, each socket has a chain of rules of its own,
//! and a datagram that one of them drops is as good as never received, but for the counter `Bytes received`.

mod arguments;
mod rules;

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

use headrace_protocol::channel::Interface;
use headrace_sys::net::{Coalesced, OffloadMode, ReceiveBatch, Run};

use crate::network::{BufferLengths, Network, OpenSocket, SocketRequest};
use crate::transport::Transport;
pub(crate) use rules::Rule;

/// The network with the rules in each of its sockets; as it is when there are none.
pub(crate) fn around(rules: Vec<Rule>, network: Arc<dyn Network>) -> Arc<dyn Network> {
    if rules.is_empty() {
        return network;
    }
    Arc::new(LossyNetwork { network, rules })
}

struct LossyNetwork {
    network: Arc<dyn Network>,
    rules: Vec<Rule>,
}

impl Network for LossyNetwork {
    fn open(&self, request: &SocketRequest) -> io::Result<OpenSocket> {
        let socket = self.network.open(request)?;
        Ok(OpenSocket {
            transport: Box::new(LossyTransport {
                transport: socket.transport,
                rules: RefCell::new(self.rules.clone()),
            }),
            ..socket
        })
    }

    fn buffer_lengths(&self) -> io::Result<BufferLengths> {
        self.network.buffer_lengths()
    }

    fn interfaces(&self) -> io::Result<Vec<Interface>> {
        self.network.interfaces()
    }
}

struct LossyTransport {
    transport: Box<dyn Transport>,
    rules: RefCell<Vec<Rule>>,
}

impl LossyTransport {
    fn drops(&self, datagram: &[u8]) -> bool {
        let mut rules = self.rules.borrow_mut();
        rules.iter_mut().any(|rule| rule.drops(datagram))
    }
}

impl Transport for LossyTransport {
    fn send_runs(&self, runs: &[Run<'_>], to: Option<SocketAddr>) -> io::Result<usize> {
        self.transport.send_runs(runs, to)
    }

    fn send(&self, datagram: &[u8], to: Option<SocketAddr>) -> io::Result<usize> {
        self.transport.send(datagram, to)
    }

    fn receive(&self, batch: &mut ReceiveBatch, handler: &mut dyn FnMut(Coalesced<'_>)) -> io::Result<usize> {
        let mut withheld = 0;
        let received = self.transport.receive(batch, &mut |joined| {
            let Coalesced {
                bytes,
                datagram_length,
                source,
                arrived_ns,
            } = joined;
            for datagram in bytes.chunks_mut(datagram_length) {
                if self.drops(datagram) {
                    withheld += datagram.len();
                } else {
                    let datagram_length = datagram.len();
                    handler(Coalesced {
                        bytes: datagram,
                        datagram_length,
                        source,
                        arrived_ns,
                    });
                }
            }
        });
        batch.withhold(withheld);
        received
    }

    fn connect(&self, remote: SocketAddr) -> io::Result<()> {
        self.transport.connect(remote)
    }

    fn descriptor(&self) -> Option<RawFd> {
        self.transport.descriptor()
    }

    fn send_mode(&self) -> OffloadMode {
        self.transport.send_mode()
    }

    fn receive_mode(&self) -> OffloadMode {
        self.transport.receive_mode()
    }
}
