//! Gossip: drivers send each other their names and addresses, and those of the drivers that they know.
//!
//! ```text
//! each 10 ms   read what has come, forget who is silent
//! each 1 s     the own name, to each bootstrap neighbour and each other neighbour
//! each 2 s     all names, to each neighbour
//! each 10 s    look up the bootstrap neighbours that are no neighbours
//! ```
//!
//! The driver does not trust what it receives: both tables are bounded, a name stays with the driver that has it, and
//! each neighbour has a budget: see design note 44.

mod bootstrap;
mod names;
mod neighbours;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use headrace_buffers::counters::Counter;
use headrace_protocol::ErrorCode;
use headrace_protocol::frame::{ResolutionEntry, ResolutionFrame, resolution};
use headrace_protocol::text::excerpt;
use headrace_sys::Clock;
use headrace_sys::net::ReceiveBatch;

pub(crate) use bootstrap::Bootstrap;
use names::{NAMES_MAX, Names, Refusal};
use neighbours::{NEIGHBOURS_MAX, Neighbours};

use crate::budget::Budget;
use crate::errors::{ErrorGroup, ErrorRecorder};
use crate::transport::Transport;

/// Type id of the counter of what budgets held back: one of this driver's own.
pub(crate) const HELD_BACK: i32 = 2102;

/// How often the socket is read.
const RUN_INTERVAL_NS: i64 = 10_000_000;
/// Datagrams that are read at a time.
const RECEIVED_MAX: usize = 32;
/// Neighbours that are sent to in one turn.
const SENT_TO_MAX: usize = 8;
/// Of one that needs none.
const UNLIMITED: Budget = Budget::with_allowance(usize::MAX);
/// Bytes of the common header of a frame.
const HEADER_LENGTH: usize = 8;

/// How this driver calls itself.
pub(crate) struct Identity {
    pub(crate) name: String,
    /// What its socket is bound to.
    pub(crate) address: SocketAddr,
}

/// How often what is done.
pub(crate) struct Intervals {
    pub(crate) neighbour_timeout_ns: i64,
    pub(crate) own_name_ns: i64,
    pub(crate) all_names_ns: i64,
    pub(crate) bootstrap_ns: i64,
}

/// What gossip counts.
pub(crate) struct GossipCounters {
    pub(crate) neighbours: Counter,
    pub(crate) names: Counter,
    pub(crate) held_back: Counter,
    pub(crate) invalid_packets: Counter,
    pub(crate) short_sends: Counter,
}

/// What gossip is made with.
pub(crate) struct GossipParts {
    pub(crate) identity: Identity,
    pub(crate) intervals: Intervals,
    pub(crate) bootstraps: Vec<Bootstrap>,
    pub(crate) transport: Box<dyn Transport>,
    /// Longest frame.
    pub(crate) mtu_length: usize,
    pub(crate) counters: GossipCounters,
    pub(crate) errors: ErrorRecorder,
    pub(crate) clock: Arc<dyn Clock>,
}

/// News for a neighbour. Own names go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum News {
    OwnName,
    AllNames,
}

/// When the next of each is due.
#[derive(Default)]
struct Due {
    run_ns: i64,
    own_name_ns: i64,
    all_names_ns: i64,
    bootstrap_ns: i64,
}

/// The driver's part in the gossip.
pub(crate) struct Gossip {
    parts: GossipParts,
    own_frame: Vec<u8>,
    names: Names,
    neighbours: Neighbours,
    batch: ReceiveBatch,
    to_send: BTreeSet<(News, SocketAddr)>,
    /// Bootstrap neighbours to look up: index and host.
    wanted: Vec<(usize, String)>,
    due: Due,
}

impl Gossip {
    pub(crate) fn new(parts: GossipParts) -> Self {
        let timeout_ns = parts.intervals.neighbour_timeout_ns;
        Self {
            own_frame: own_frame(&parts.identity),
            names: Names::new(timeout_ns),
            neighbours: Neighbours::new(timeout_ns),
            batch: ReceiveBatch::new(RECEIVED_MAX),
            to_send: BTreeSet::new(),
            wanted: Vec::new(),
            due: Due::default(),
            parts,
        }
    }

    /// The address of a driver.
    pub(super) fn address_of(&self, host: &str) -> Option<IpAddr> {
        let Identity { name, address } = &self.parts.identity;
        self.names
            .address_of(host)
            .or_else(|| (host == name).then(|| address.ip()))
    }

    /// Does the work that is due now, and sends some of the waiting frames. Returns the work count.
    pub(super) fn do_work(&mut self, now_ns: i64) -> usize {
        let mut work_count = 0;
        if now_ns >= self.due.run_ns {
            self.due.run_ns = now_ns.saturating_add(RUN_INTERVAL_NS);
            work_count += self.receive(now_ns);
            self.names.expire(now_ns);
            self.neighbours.expire(now_ns);
            self.run_timers(now_ns);
            self.parts.counters.names.set_release(self.names.len() as i64);
            let neighbour_count = self.neighbours.len() as i64;
            self.parts.counters.neighbours.set_release(neighbour_count);
        }
        work_count + self.send_some(now_ns)
    }

    /// The bootstrap neighbours that are to be looked up, by index, each with its host.
    pub(super) fn take_wanted(&mut self) -> Vec<(usize, String)> {
        std::mem::take(&mut self.wanted)
    }

    /// A bootstrap neighbour was looked up. Returns its counter and the label that it has now, if that is another.
    pub(super) fn on_bootstrap(
        &mut self,
        index: usize,
        answer: Result<IpAddr, String>,
    ) -> Option<(i32, String)> {
        if let Err(reason) = &answer {
            let text = self.parts.bootstraps.get(index)?.text();
            let text = format!("unknown host: bootstrap neighbor={text}: {reason}");
            self.record(ErrorCode::UnknownHost, &text);
        }
        let bootstrap = self.parts.bootstraps.get_mut(index)?;
        let before = bootstrap.address();
        let labelled = bootstrap.on_address(answer.ok());
        let after = bootstrap.address();
        if after == before {
            return None;
        }
        // It may be the only one that knows others: it hears of this driver at once.
        let to = after.map(|address| (News::OwnName, address));
        self.to_send.extend(to);
        Some(labelled)
    }

    fn run_timers(&mut self, now_ns: i64) {
        let (due, intervals) = (&mut self.due, &self.parts.intervals);
        let is_due = |at_ns: &mut i64, interval_ns: i64| {
            let is_due = now_ns >= *at_ns;
            if is_due {
                *at_ns = now_ns.saturating_add(interval_ns);
            }
            is_due
        };
        let tells_own_name = is_due(&mut due.own_name_ns, intervals.own_name_ns);
        let tells_all_names = is_due(&mut due.all_names_ns, intervals.all_names_ns);
        if is_due(&mut due.bootstrap_ns, intervals.bootstrap_ns) {
            self.want_bootstraps();
        }
        if tells_own_name {
            self.tell_own_name();
        }
        if tells_all_names && self.names.len() > 0 {
            let to_all = self.neighbours.addresses().map(|to| (News::AllNames, to));
            self.to_send.extend(to_all);
        }
    }

    fn tell_own_name(&mut self) {
        for bootstrap in &self.parts.bootstraps {
            if let Some(address) = bootstrap.address() {
                bootstrap.set_is_neighbour(self.neighbours.contains(address));
                self.to_send.insert((News::OwnName, address));
            }
        }
        let to_all = self.neighbours.addresses().map(|to| (News::OwnName, to));
        self.to_send.extend(to_all);
    }

    fn want_bootstraps(&mut self) {
        for index in 0..self.parts.bootstraps.len() {
            let bootstrap = &self.parts.bootstraps[index];
            let is_neighbour = bootstrap
                .address()
                .is_some_and(|address| self.neighbours.contains(address));
            match bootstrap.host() {
                Ok(_) if is_neighbour => {}
                Ok(host) => self.wanted.push((index, host.to_owned())),
                Err(reason) => {
                    let text = format!("Invalid argument: bootstrap neighbor {reason}");
                    self.record(ErrorCode::GenericError, &text);
                }
            }
        }
    }

    fn receive(&mut self, now_ns: i64) -> usize {
        let mut arrived: Vec<(SocketAddr, Vec<u8>)> = Vec::new();
        let received = self.parts.transport.receive(&mut self.batch, &mut |joined| {
            for datagram in joined.bytes.chunks(joined.datagram_length) {
                arrived.push((joined.source, datagram.to_vec()));
            }
        });
        if let Err(error) = received {
            let text = format!("cannot receive resolution frames: {error}");
            self.record(ErrorCode::GenericError, &text);
        }
        for (source, datagram) in &arrived {
            self.on_datagram(*source, datagram, now_ns);
        }
        arrived.len()
    }

    fn on_datagram(&mut self, source: SocketAddr, datagram: &[u8], now_ns: i64) {
        let Ok(frame) = ResolutionFrame::decode(datagram) else {
            self.parts.counters.invalid_packets.increment_release();
            return;
        };
        for entry in frame {
            let Some(entry) = entry.ok().filter(|entry| is_name(&entry.name)) else {
                self.parts.counters.invalid_packets.increment_release();
                break;
            };
            self.on_entry(source, &entry, now_ns);
        }
        if let Some(budget) = self.neighbours.budget(source) {
            budget.earn(datagram.len());
        }
    }

    /// Learns from one entry.
    fn on_entry(&mut self, source: SocketAddr, entry: &ResolutionEntry<'_>, now_ns: i64) {
        let Identity { name, address: own } = &self.parts.identity;
        let speaks_for_itself = entry.flags & resolution::FLAG_SELF != 0;
        let ip = if speaks_for_itself && entry.address.is_unspecified() {
            source.ip()
        } else {
            entry.address
        };
        let address = SocketAddr::new(ip, entry.port);
        let is_own_name = entry.name == *name;
        if is_own_name && entry.port == own.port() {
            return;
        }
        let age_ns = i64::from(entry.age_ms.max(0)) * 1_000_000;
        if age_ns > self.parts.intervals.neighbour_timeout_ns {
            return; // Its driver is forgotten already.
        }
        let heard_ns = now_ns - age_ns;
        let learnt = if is_own_name {
            Err("it is the name of this driver".to_owned())
        } else if !is_of_a_driver(address, source) {
            Err("no driver can have this address".to_owned())
        } else {
            let learnt = self.names.learn(&entry.name, address, heard_ns, now_ns);
            learnt.map_err(reason)
        };
        if let Err(reason) = learnt {
            self.refuse(source, entry, address, &reason);
            return;
        }
        // The socket is of one family.
        let is_reachable = address.is_ipv4() == self.parts.identity.address.is_ipv4();
        if is_reachable && !self.neighbours.add(address, heard_ns, speaks_for_itself) {
            let reason = format!("there are {NEIGHBOURS_MAX} neighbors already");
            self.refuse(source, entry, address, &reason);
        }
    }

    fn refuse(&self, source: SocketAddr, entry: &ResolutionEntry<'_>, address: SocketAddr, reason: &str) {
        let name = excerpt(&entry.name);
        let text =
            format!("WARN - refused resolution name={name} address={address} from source={source}: {reason}");
        self.record(ErrorCode::GenericError, &text);
    }

    fn record(&self, code: ErrorCode, text: &str) {
        let now_ms = self.parts.clock.epoch_ms();
        let group = ErrorGroup::Resolution;
        self.parts.errors.record_in(group, code.value(), text, now_ms);
    }

    fn send_some(&mut self, now_ns: i64) -> usize {
        let mut work_count = 0;
        while work_count < SENT_TO_MAX
            && let Some((news, to)) = self.to_send.pop_first()
        {
            work_count += 1;
            match news {
                News::OwnName => self.send_own_name(to),
                News::AllNames => self.send_all_names(to, now_ns),
            }
        }
        work_count
    }

    fn is_bootstrap(&self, address: SocketAddr) -> bool {
        let mut bootstraps = self.parts.bootstraps.iter();
        bootstraps.any(|bootstrap| bootstrap.address() == Some(address))
    }

    fn send_own_name(&mut self, to: SocketAddr) {
        if !self.is_bootstrap(to) {
            let length = self.own_frame.len();
            let Some(budget) = self.neighbours.budget(to) else {
                return; // It went while it waited for its turn.
            };
            if !budget.spend(length) {
                self.parts.counters.held_back.increment_release();
                return;
            }
        }
        self.send(&self.own_frame, to);
    }

    /// Sends the names in frames, beginning with the first one that the last round did not send to the neighbour.
    fn send_all_names(&mut self, to: SocketAddr, now_ns: i64) {
        let entries: Vec<_> = self.names.entries(now_ns).collect();
        let first = self.neighbours.next_entry(to, entries.len());
        let turned = entries[first..].iter().chain(&entries[..first]);
        let is_free = self.is_bootstrap(to);
        let Some(budget) = self.neighbours.budget(to) else {
            return;
        };
        let mut unlimited = UNLIMITED;
        let budget = if is_free { &mut unlimited } else { budget };
        let told = frames(turned, self.parts.mtu_length, budget);
        let total = entries.len();
        let told_count: usize = told.iter().map(|frame| frame.entry_count).sum();
        for frame in &told {
            self.send(&frame.bytes, to);
        }
        if told_count < total {
            self.parts.counters.held_back.increment_release();
        }
        self.neighbours.set_next_entry(to, first + told_count);
    }

    fn send(&self, frame: &[u8], to: SocketAddr) {
        match self.parts.transport.send(frame, Some(to)) {
            Ok(length) if length == frame.len() => {}
            Ok(_) => self.parts.counters.short_sends.increment_release(),
            Err(error) => {
                let text = format!("Failed to send resolution frames to neighbor: {to}: {error}");
                self.record(ErrorCode::GenericError, &text);
            }
        }
    }
}

/// A frame and how many entries it has.
struct Frame {
    bytes: Vec<u8>,
    entry_count: usize,
}

/// Frames of as many of the entries as the budget covers, which are spent.
fn frames<'a>(
    entries: impl Iterator<Item = &'a ResolutionEntry<'a>>,
    mtu_length: usize,
    budget: &mut Budget,
) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    for entry in entries {
        let length = entry.encoded_length();
        let begins = frames
            .last()
            .is_none_or(|frame| frame.bytes.len() + length > mtu_length);
        let cost = length + if begins { HEADER_LENGTH } else { 0 };
        if !budget.spend(cost) {
            break;
        }
        if begins {
            frames.push(Frame {
                bytes: vec![0; HEADER_LENGTH],
                entry_count: 0,
            });
        }
        if let Some(frame) = frames.last_mut() {
            let at = frame.bytes.len();
            frame.bytes.resize(at + length, 0);
            entry.encode(&mut frame.bytes[at..]);
            frame.entry_count += 1;
        }
    }
    for frame in &mut frames {
        let entries_length = frame.bytes.len() - HEADER_LENGTH;
        ResolutionFrame::encode_header(entries_length, &mut frame.bytes);
    }
    frames
}

fn own_frame(identity: &Identity) -> Vec<u8> {
    let entry = ResolutionEntry {
        flags: resolution::FLAG_SELF,
        port: identity.address.port(),
        age_ms: 0,
        address: identity.address.ip(),
        name: Cow::Borrowed(&identity.name),
    };
    let frame = frames(std::iter::once(&entry), usize::MAX, &mut UNLIMITED.clone());
    frame
        .into_iter()
        .next()
        .map(|frame| frame.bytes)
        .unwrap_or_default()
}

/// True for a name that a channel can have as its host.
fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// True for an address that a driver can have, told of by a datagram from `source`.
fn is_of_a_driver(address: SocketAddr, source: SocketAddr) -> bool {
    let is_broadcast = matches!(address.ip(), IpAddr::V4(ip) if ip.is_broadcast());
    let ip = address.ip();
    address.port() != 0
        && !ip.is_unspecified()
        && !ip.is_multicast()
        && !is_broadcast
        && (!ip.is_loopback() || source.ip().is_loopback())
}

fn reason(refusal: Refusal) -> String {
    match refusal {
        Refusal::Held(holder) => format!("address={holder} holds the name and is alive"),
        Refusal::Full => format!("there are {NAMES_MAX} names already"),
    }
}
