//! A network in memory: it loses, doubles, delays and reorders datagrams as its seed says.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use headrace_driver::transport::Transport;
use headrace_sys::net::{Coalesced, OffloadMode, ReceiveBatch, Run};

/// What goes wrong, in chances from 0 to 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    /// Chance that a datagram is held back for a while, so that later ones overtake it.
    pub(crate) delay: f64,
    /// Chance that a send is accepted in part only.
    pub(crate) short_send: f64,
}

struct InFlight {
    due: u64,
    source: SocketAddr,
    bytes: Vec<u8>,
}

struct State {
    faults: Faults,
    random: fastrand::Rng,
    step: u64,
    queues: HashMap<SocketAddr, Vec<InFlight>>,
    sent: Vec<(SocketAddr, Vec<u8>)>,
}

/// The wire. Clones share it.
#[derive(Clone)]
pub(crate) struct Network(Arc<Mutex<State>>);

impl Network {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            faults: Faults::default(),
            random: fastrand::Rng::with_seed(seed),
            step: 0,
            queues: HashMap::new(),
            sent: Vec::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(crate) fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Lets time pass for what is under way.
    pub(crate) fn step(&self) {
        self.state().step += 1;
    }

    /// Takes a record of everything sent to `to` since the last call, lost or not.
    pub(crate) fn take_sent(&self, to: SocketAddr) -> Vec<Vec<u8>> {
        let mut state = self.state();
        let (taken, kept) = std::mem::take(&mut state.sent)
            .into_iter()
            .partition(|(sent_to, _)| *sent_to == to);
        state.sent = kept;
        taken.into_iter().map(|(_, bytes)| bytes).collect()
    }

    /// Delivers a datagram of a stranger.
    pub(crate) fn inject(&self, source: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let mut state = self.state();
        let due = state.step;
        let datagram = InFlight {
            due,
            source,
            bytes: bytes.to_vec(),
        };
        state.queues.entry(to).or_default().push(datagram);
    }

    pub(crate) fn socket(&self, local: SocketAddr, remote: Option<SocketAddr>) -> Box<dyn Transport> {
        Box::new(Socket {
            network: self.clone(),
            local,
            remote: Mutex::new(remote),
        })
    }
}

impl State {
    fn send(&mut self, source: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        self.sent.push((to, bytes.clone()));
        let Faults {
            loss,
            duplication,
            delay,
            ..
        } = self.faults;
        if self.random.f64() < loss {
            return;
        }
        let copies = if self.random.f64() < duplication { 2 } else { 1 };
        for _ in 0..copies {
            let held = if self.random.f64() < delay {
                self.random.u64(1..6)
            } else {
                0
            };
            let datagram = InFlight {
                due: self.step + held,
                source,
                bytes: bytes.clone(),
            };
            self.queues.entry(to).or_default().push(datagram);
        }
    }
}

struct Socket {
    network: Network,
    local: SocketAddr,
    remote: Mutex<Option<SocketAddr>>,
}

impl Socket {
    fn target(&self, to: Option<SocketAddr>) -> io::Result<SocketAddr> {
        to.or(*self.remote.lock().unwrap())
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Transport for Socket {
    fn send_runs(&self, runs: &[Run<'_>], to: Option<SocketAddr>) -> io::Result<usize> {
        let to = self.target(to)?;
        let mut state = self.network.state();
        let mut accepted = 0;
        for run in runs {
            for datagram in run.region.to_vec().chunks(run.datagram_length) {
                if state.random.f64() < state.faults.short_send {
                    return Ok(accepted);
                }
                state.send(self.local, to, datagram.to_vec());
                accepted += datagram.len();
            }
        }
        Ok(accepted)
    }

    fn send(&self, datagram: &[u8], to: Option<SocketAddr>) -> io::Result<usize> {
        let to = self.target(to)?;
        let mut state = self.network.state();
        if state.random.f64() < state.faults.short_send {
            return Ok(0);
        }
        state.send(self.local, to, datagram.to_vec());
        Ok(datagram.len())
    }

    fn receive(
        &self,
        _batch: &mut ReceiveBatch,
        handler: &mut dyn FnMut(Coalesced<'_>),
    ) -> io::Result<usize> {
        let arrived: Vec<InFlight> = {
            let mut state = self.network.state();
            let step = state.step;
            let queue = state.queues.entry(self.local).or_default();
            let (due, later) = std::mem::take(queue)
                .into_iter()
                .partition(|datagram| datagram.due <= step);
            *queue = later;
            due
        };
        let count = arrived.len();
        // Neighbours of equal length and source arrive joined, as from a kernel that coalesces.
        let mut joined: Vec<(SocketAddr, usize, Vec<u8>)> = Vec::new();
        for datagram in arrived {
            match joined.last_mut() {
                Some((source, length, bytes))
                    if *length > 0
                        && !datagram.bytes.is_empty()
                        && *source == datagram.source
                        && bytes.len() % *length == 0
                        && datagram.bytes.len() <= *length
                        && bytes.len() + datagram.bytes.len() < 65_000 =>
                {
                    bytes.extend_from_slice(&datagram.bytes);
                }
                _ => joined.push((datagram.source, datagram.bytes.len(), datagram.bytes)),
            }
        }
        for (source, datagram_length, mut bytes) in joined {
            handler(Coalesced {
                bytes: &mut bytes,
                datagram_length: datagram_length.max(1),
                source,
            });
        }
        Ok(count)
    }

    fn connect(&self, remote: SocketAddr) -> io::Result<()> {
        *self.remote.lock().unwrap() = Some(remote);
        Ok(())
    }

    fn descriptor(&self) -> Option<std::os::fd::RawFd> {
        None
    }

    fn send_mode(&self) -> OffloadMode {
        OffloadMode::Segmentation
    }

    fn receive_mode(&self) -> OffloadMode {
        OffloadMode::Segmentation
    }
}
