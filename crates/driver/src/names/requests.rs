//! Commands and open channels that wait for names.
//!
//! One lookup a name is under way at a time; requests for the same name share its answer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use headrace_buffers::counters::Counter;
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::{ResolveError, Resolver, UdpChannel, UdpEnvironment};
use headrace_sys::Clock;

use super::known::{Known, host_and_port, literal};
use super::lookups::{LookedUp, Lookups};
use super::source::NameSource;
use crate::errors::{CommandError, ErrorGroup, ErrorRecorder};
use crate::mailbox::QUEUE_CAPACITY;
use crate::network::Network;
use crate::resource_tasks::{FindAddresses, Resolve, ResourceOutcome};

/// Requests that wait for names, each of a command or of an open channel. More are refused.
const WAITING_MAX: usize = QUEUE_CAPACITY;

/// The address of a name, or why there is none.
type Answer = Result<IpAddr, String>;

/// Where the time that names take is published.
pub(crate) struct LookupTracker {
    pub(crate) max_time: Counter,
    pub(crate) threshold_exceeded: Counter,
    pub(crate) threshold_ns: i64,
    pub(crate) errors: ErrorRecorder,
    pub(crate) clock: Arc<dyn Clock>,
}

impl LookupTracker {
    fn track(&self, host: &str, duration_ns: i64) {
        self.max_time.propose_max_release(duration_ns);
        if duration_ns > self.threshold_ns {
            self.threshold_exceeded.increment_release();
            let text = format!("looking up host={host} took longer than aeron.name.resolver.threshold");
            self.errors
                .warn_in(ErrorGroup::Resolution, &text, self.clock.epoch_ms());
        }
    }

    /// What the source knows of a host. What takes a lookup is tracked when that is over.
    fn known(&self, source: &NameSource, host: &str) -> Known {
        if let Some(address) = literal(host) {
            return Known::Address(address);
        }
        let start_ns = self.clock.nano_time();
        let known = source.known(host);
        if !matches!(known, Known::Ask(_)) {
            self.track(host, self.clock.nano_time() - start_ns);
        }
        known
    }
}

/// Who asks for a name.
enum Request {
    /// A command; it goes on with the names that were answered before.
    Addresses(Box<FindAddresses>, BTreeMap<String, Answer>),
    /// An open channel.
    Endpoint(Box<Resolve>),
    /// Gossip, for one of its bootstrap neighbours.
    Bootstrap(usize),
}

struct Waiting {
    /// The name asked for.
    name: String,
    /// The host that is looked up for it.
    host: String,
    request: Request,
}

/// The requests that wait for names.
pub(crate) struct NameRequests {
    source: NameSource,
    lookups: Box<dyn Lookups>,
    network: Arc<dyn Network>,
    waiting: Vec<Waiting>,
    tracker: LookupTracker,
}

impl NameRequests {
    pub(crate) fn new(
        source: NameSource,
        lookups: Box<dyn Lookups>,
        network: Arc<dyn Network>,
        tracker: LookupTracker,
    ) -> Self {
        Self {
            source,
            lookups,
            network,
            waiting: Vec::new(),
            tracker,
        }
    }

    /// True while a lookup is under way that something waits for.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The addresses of a channel; that it must wait for a name, if it must.
    pub(crate) fn find_addresses(&mut self, request: Box<FindAddresses>) -> ResourceOutcome {
        let correlation_id = request.correlation_id;
        self.continue_with(request, BTreeMap::new())
            .unwrap_or(ResourceOutcome::LookupBegun { correlation_id })
    }

    /// The present address of an open channel's name, now or later.
    pub(crate) fn resolve(&mut self, request: Box<Resolve>) -> Option<ResourceOutcome> {
        let is_known = self.waiting.iter().any(
            |waiting| matches!(&waiting.request, Request::Endpoint(other) if other.endpoint == request.endpoint && other.name == request.name),
        );
        if is_known {
            // The answer that is under way is the one asked for.
            return None;
        }
        let host = match host_and_port(&request.name) {
            Ok((host, _)) => host.to_owned(),
            Err(reason) => return Some(resolved(*request, Err(reason))),
        };
        let asked = match self.tracker.known(&self.source, &host) {
            Known::Address(address) => return Some(resolved(*request, Ok(address))),
            Known::Refused(reason) => return Some(resolved(*request, Err(reason))),
            Known::Ask(asked) => asked,
        };
        let copy = (*request).clone();
        let refused = self.wait(host, asked, Request::Endpoint(request)).err()?;
        Some(resolved(copy, Err(refused.to_string())))
    }

    /// What gossip has to do at this time; returns how much it was, and what came of it.
    pub(crate) fn gossip(&mut self, now_ns: i64) -> (usize, Vec<ResourceOutcome>) {
        let NameSource::Gossip(gossip) = &mut self.source else {
            return (0, Vec::new());
        };
        let work_count = gossip.do_work(now_ns);
        let wanted = gossip.take_wanted();
        let outcomes = wanted
            .into_iter()
            .filter_map(|(index, host)| self.look_up_bootstrap(index, &host))
            .collect();
        (work_count, outcomes)
    }

    fn look_up_bootstrap(&mut self, index: usize, host: &str) -> Option<ResourceOutcome> {
        let is_under_way =
            |waiting: &Waiting| matches!(waiting.request, Request::Bootstrap(other) if other == index);
        if self.waiting.iter().any(is_under_way) {
            return None;
        }
        let answer = match Known::of(host) {
            Known::Address(address) => Ok(address),
            Known::Refused(reason) => Err(reason),
            Known::Ask(host) => {
                let waits = self.wait(host.clone(), host, Request::Bootstrap(index));
                Err(waits.err()?.to_string())
            }
        };
        self.on_bootstrap(index, answer)
    }

    fn on_bootstrap(&mut self, index: usize, answer: Answer) -> Option<ResourceOutcome> {
        let NameSource::Gossip(gossip) = &mut self.source else {
            return None;
        };
        let (counter_id, label) = gossip.on_bootstrap(index, answer)?;
        Some(ResourceOutcome::Labelled { counter_id, label })
    }

    /// What came of requests whose names were answered.
    pub(crate) fn take_finished(&mut self) -> Vec<ResourceOutcome> {
        let Some(LookedUp {
            host,
            answer,
            duration_ns,
        }) = self.lookups.take_finished()
        else {
            return Vec::new();
        };
        self.tracker.track(&host, duration_ns);
        let answered: Vec<_> = self
            .waiting
            .extract_if(.., |waiting| waiting.host == host)
            .collect();
        answered
            .into_iter()
            .filter_map(|waiting| self.go_on(waiting, answer.clone()))
            .collect()
    }

    fn go_on(&mut self, waiting: Waiting, answer: Answer) -> Option<ResourceOutcome> {
        match waiting.request {
            Request::Addresses(request, mut answers) => {
                answers.insert(waiting.name, answer);
                self.continue_with(request, answers)
            }
            Request::Endpoint(request) => Some(resolved(*request, answer)),
            Request::Bootstrap(index) => self.on_bootstrap(index, answer),
        }
    }

    /// The outcome, unless it takes another name.
    fn continue_with(
        &mut self,
        request: Box<FindAddresses>,
        answers: BTreeMap<String, Answer>,
    ) -> Option<ResourceOutcome> {
        let correlation_id = request.correlation_id;
        let names = KnownNames {
            source: &self.source,
            tracker: &self.tracker,
            answers: &answers,
            missing: RefCell::new(None),
        };
        let result = find_addresses(&request, &names, self.network.as_ref());
        let result = match names.missing.into_inner() {
            None => result.map(Box::new),
            Some((name, host)) => {
                let waits = self.wait(name, host, Request::Addresses(request, answers));
                Err(waits.err()?)
            }
        };
        Some(ResourceOutcome::AddressesFound {
            correlation_id,
            result,
        })
    }

    /// Has a request wait for a name, whose host is looked up unless it is already.
    fn wait(&mut self, name: String, host: String, request: Request) -> Result<(), CommandError> {
        if self.waiting.len() >= WAITING_MAX {
            return Err(CommandError::new(
                ErrorCode::ResourceTemporarilyUnavailable,
                format!("{WAITING_MAX} requests wait for name lookups already, please retry, host={host}"),
            ));
        }
        let is_under_way = self.waiting.iter().any(|waiting| waiting.host == host);
        if !is_under_way {
            self.lookups.begin(&host);
        }
        self.waiting.push(Waiting { name, host, request });
        Ok(())
    }
}

/// Knows what was answered, and notes the first name that takes a lookup, with its host.
struct KnownNames<'a> {
    source: &'a NameSource,
    tracker: &'a LookupTracker,
    answers: &'a BTreeMap<String, Answer>,
    missing: RefCell<Option<(String, String)>>,
}

impl Resolver for KnownNames<'_> {
    fn resolve(&self, host: &str, port: u16, _param: &str) -> Result<SocketAddr, ResolveError> {
        let answer = match self.answers.get(host) {
            Some(answer) => answer.clone(),
            None => match self.tracker.known(self.source, host) {
                Known::Address(address) => Ok(address),
                Known::Refused(reason) => Err(reason),
                Known::Ask(asked) => {
                    self.missing
                        .borrow_mut()
                        .get_or_insert_with(|| (host.to_owned(), asked));
                    Err("not looked up yet".to_owned())
                }
            },
        };
        answer
            .map(|ip| SocketAddr::new(ip, port))
            .map_err(|reason| ResolveError { reason })
    }
}

fn resolved(request: Resolve, answer: Answer) -> ResourceOutcome {
    let Resolve { endpoint, name } = request;
    let (host, port) = host_and_port(&name).unwrap_or((&name, 0));
    let result = match answer {
        Ok(ip) => Ok(SocketAddr::new(ip, port)),
        Err(reason) => Err(format!("Unable to resolve host=({host}): {reason}")),
    };
    ResourceOutcome::Resolved {
        endpoint,
        name,
        result,
    }
}

fn find_addresses(
    request: &FindAddresses,
    names: &KnownNames<'_>,
    network: &dyn Network,
) -> Result<UdpChannel, CommandError> {
    let interfaces = network.interfaces().map_err(|error| {
        CommandError::generic(format!(
            "cannot list network interfaces: {error}, channel={}",
            request.uri
        ))
    })?;
    let environment = UdpEnvironment {
        interfaces: &interfaces,
        resolver: names,
    };
    // Correlation ids are unique in the driver, which is all that is asked of the last argument.
    Ok(UdpChannel::parse(
        &request.uri,
        request.role,
        &environment,
        request.correlation_id,
    )?)
}
