//! Deliberate loss, for tests of programs and of drivers: between sockets and transport, in both directions.
//!
//! Without the settings a driver uses plain sockets. With them, each socket has its own chain of rules, and a datagram
//! that one of them drops counts as never received, except in the counter `Bytes received`.

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
pub(crate) use rules::{FrameSet, Rule};

/// What drops datagrams of each socket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// Of those that arrive.
    pub(crate) incoming: Vec<Rule>,
    /// Of those that leave.
    pub(crate) outgoing: Vec<Rule>,
}

/// The network with the rules in each of its sockets; as it is when there are none.
pub(crate) fn around(rules: Rules, network: Arc<dyn Network>) -> Arc<dyn Network> {
    if rules.incoming.is_empty() && rules.outgoing.is_empty() {
        return network;
    }
    Arc::new(LossyNetwork { network, rules })
}

struct LossyNetwork {
    network: Arc<dyn Network>,
    rules: Rules,
}

impl Network for LossyNetwork {
    fn open(&self, request: &SocketRequest) -> io::Result<OpenSocket> {
        let socket = self.network.open(request)?;
        Ok(OpenSocket {
            transport: Box::new(LossyTransport {
                transport: socket.transport,
                incoming: RefCell::new(self.rules.incoming.clone()),
                outgoing: RefCell::new(self.rules.outgoing.clone()),
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

    fn path_mtu(&self, to: SocketAddr) -> Option<usize> {
        self.network.path_mtu(to)
    }
}

struct LossyTransport {
    transport: Box<dyn Transport>,
    incoming: RefCell<Vec<Rule>>,
    outgoing: RefCell<Vec<Rule>>,
}

fn drops(rules: &RefCell<Vec<Rule>>, datagram: &[u8]) -> bool {
    rules.borrow_mut().iter_mut().any(|rule| rule.drops(datagram))
}

impl Transport for LossyTransport {
    fn send_runs(&self, runs: &[Run<'_>], to: Option<SocketAddr>) -> io::Result<usize> {
        if self.outgoing.borrow().is_empty() {
            return self.transport.send_runs(runs, to);
        }
        // One by one: what is lost must not leave with its neighbours. A datagram that was lost counts as sent.
        let mut accepted = 0;
        for run in runs {
            for datagram in run.region.to_vec().chunks(run.datagram_length) {
                match self.send(datagram, to) {
                    Ok(sent) if sent == datagram.len() => accepted += sent,
                    Err(error) if accepted == 0 => return Err(error),
                    Ok(_) | Err(_) => return Ok(accepted),
                }
            }
        }
        Ok(accepted)
    }

    fn send(&self, datagram: &[u8], to: Option<SocketAddr>) -> io::Result<usize> {
        if drops(&self.outgoing, datagram) {
            return Ok(datagram.len());
        }
        self.transport.send(datagram, to)
    }

    fn receive(&self, batch: &mut ReceiveBatch, handler: &mut dyn FnMut(Coalesced<'_>)) -> io::Result<usize> {
        let mut withheld = 0;
        let mut take = |joined: Coalesced<'_>| {
            let Coalesced {
                bytes,
                datagram_length,
                source,
                arrived_ns,
            } = joined;
            for datagram in bytes.chunks_mut(datagram_length) {
                if drops(&self.incoming, datagram) {
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
        };
        let received = batch.as_sent(|batch| self.transport.receive(batch, &mut take));
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
