//! Names to addresses, off the threads of the agents: a name server may take seconds to answer, or never do.
//!
//! One lookup a name is under way at a time; requests for the same name share its answer. At most
//! [`THREADS_MAX`] lookups run at once, each on a thread of its own that nothing waits for: not an agent, and not
//! the end of the driver. The others queue. Literal addresses and `localhost` need no lookup.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use headrace_buffers::counters::Counter;
use headrace_protocol::ErrorCode;
use headrace_protocol::channel::{ResolveError, Resolver, UdpChannel, UdpEnvironment};
use headrace_sys::Clock;

use crate::errors::{CommandError, ErrorRecorder};
use crate::mailbox::{Inbox, QUEUE_CAPACITY, inbox};
use crate::network::Network;
use crate::resource_tasks::{FindAddresses, Resolve, ResourceOutcome};

/// Lookups at once. More than one, so that a name that no server answers for does not delay others.
const THREADS_MAX: usize = 4;
/// Requests that wait for names, each of a command or of an open channel. More are refused.
const WAITING_MAX: usize = QUEUE_CAPACITY;

/// The address of a name, or why there is none.
type Answer = Result<IpAddr, String>;

/// Looks up a name and waits for the answer; a seam, so that tests need no network.
pub(crate) trait NameLookup: Send + Sync {
    /// The address of a host.
    fn lookup(&self, host: &str) -> io::Result<IpAddr>;
}

/// The operating system's resolver.
pub(crate) struct SystemLookup;

impl NameLookup for SystemLookup {
    fn lookup(&self, host: &str) -> io::Result<IpAddr> {
        headrace_sys::net::resolve(host, 0).map(|address| address.ip())
    }
}

/// A lookup that is over.
#[derive(Debug)]
pub struct LookedUp {
    /// What was looked up.
    pub host: String,
    /// Its address, or why there is none.
    pub answer: Result<IpAddr, String>,
    /// How long that took.
    pub duration_ns: i64,
}

/// Looks up names while its caller goes on; a seam, so that tests decide when a name is answered.
pub trait Lookups: Send {
    /// Begins to look up a host that is not being looked up.
    fn begin(&mut self, host: &str);
    /// A lookup that is over, if there is one.
    fn take_finished(&mut self) -> Option<LookedUp>;
}

/// A thread for each lookup.
pub(crate) struct LookupThreads {
    lookup: Arc<dyn NameLookup>,
    clock: Arc<dyn Clock>,
    queued: VecDeque<String>,
    // Threads own a share of it, so one that outlives the driver answers into memory of its own.
    finished: Inbox<LookedUp>,
    running_count: usize,
}

impl LookupThreads {
    pub(crate) fn new(lookup: Arc<dyn NameLookup>, clock: Arc<dyn Clock>) -> Self {
        Self {
            lookup,
            clock,
            queued: VecDeque::new(),
            finished: inbox(),
            running_count: 0,
        }
    }

    fn start_some(&mut self) {
        while self.running_count < THREADS_MAX
            && let Some(host) = self.queued.pop_front()
        {
            self.running_count += 1;
            self.start(host);
        }
    }

    fn start(&self, host: String) {
        let (lookup, clock) = (Arc::clone(&self.lookup), Arc::clone(&self.clock));
        let (finished, name) = (Arc::clone(&self.finished), host.clone());
        let work = move || {
            let start_ns = clock.nano_time();
            let answer = lookup.lookup(&name).map_err(|error| error.to_string());
            let duration_ns = clock.nano_time() - start_ns;
            // There is room: each of the few threads gives one answer.
            let _ = finished.push(LookedUp {
                host: name,
                answer,
                duration_ns,
            });
        };
        let thread = std::thread::Builder::new().name("aeron-md-dns".to_owned());
        if let Err(error) = thread.spawn(work) {
            let answer = Err(format!("cannot start a thread to look it up: {error}"));
            let _ = self.finished.push(LookedUp {
                host,
                answer,
                duration_ns: 0,
            });
        }
    }
}

impl Lookups for LookupThreads {
    fn begin(&mut self, host: &str) {
        self.queued.push_back(host.to_owned());
        self.start_some();
    }

    fn take_finished(&mut self) -> Option<LookedUp> {
        let finished = self.finished.pop()?;
        self.running_count -= 1;
        self.start_some();
        Some(finished)
    }
}

/// Where the time that lookups take is published.
pub(crate) struct LookupTracker {
    pub(crate) max_time: Counter,
    pub(crate) threshold_exceeded: Counter,
    pub(crate) threshold_ns: i64,
}

/// Who asks for a name.
enum Request {
    /// A command; it goes on with the names that were answered before.
    Addresses(Box<FindAddresses>, BTreeMap<String, Answer>),
    /// An open channel.
    Endpoint(Box<Resolve>),
}

struct Waiting {
    host: String,
    request: Request,
}

/// The requests that wait for names.
pub(crate) struct NameRequests {
    lookups: Box<dyn Lookups>,
    network: Arc<dyn Network>,
    waiting: Vec<Waiting>,
    tracker: LookupTracker,
    errors: ErrorRecorder,
    clock: Arc<dyn Clock>,
}

impl NameRequests {
    pub(crate) fn new(
        lookups: Box<dyn Lookups>,
        network: Arc<dyn Network>,
        tracker: LookupTracker,
        errors: ErrorRecorder,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            lookups,
            network,
            waiting: Vec::new(),
            tracker,
            errors,
            clock,
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
            Ok((host, _)) => match without_lookup(host) {
                Some(ip) => return Some(resolved(*request, Ok(ip))),
                None => host.to_owned(),
            },
            Err(reason) => return Some(resolved(*request, Err(reason))),
        };
        let asked = (*request).clone();
        let refused = self.wait(host, Request::Endpoint(request)).err()?;
        Some(resolved(asked, Err(refused.to_string())))
    }

    /// What came of requests whose names were answered.
    pub(crate) fn take_finished(&mut self) -> Vec<ResourceOutcome> {
        let Some(finished) = self.lookups.take_finished() else {
            return Vec::new();
        };
        self.track(&finished);
        let answered: Vec<_> = self
            .waiting
            .extract_if(.., |waiting| waiting.host == finished.host)
            .collect();
        answered
            .into_iter()
            .filter_map(|waiting| match waiting.request {
                Request::Addresses(request, mut answers) => {
                    answers.insert(waiting.host, finished.answer.clone());
                    self.continue_with(request, answers)
                }
                Request::Endpoint(request) => Some(resolved(*request, finished.answer.clone())),
            })
            .collect()
    }

    fn track(&self, finished: &LookedUp) {
        self.tracker.max_time.propose_max_release(finished.duration_ns);
        if finished.duration_ns > self.tracker.threshold_ns {
            self.tracker.threshold_exceeded.increment_release();
            let text = format!(
                "looking up host={} took longer than aeron.name.resolver.threshold",
                finished.host
            );
            self.errors.warn(&text, self.clock.epoch_ms());
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
            answers: &answers,
            missing: RefCell::new(None),
        };
        let result = find_addresses(&request, &names, self.network.as_ref());
        let result = match names.missing.into_inner() {
            None => result.map(Box::new),
            Some(host) => Err(self.wait(host, Request::Addresses(request, answers)).err()?),
        };
        Some(ResourceOutcome::AddressesFound {
            correlation_id,
            result,
        })
    }

    /// Has a request wait for a name, which is looked up unless it is already.
    fn wait(&mut self, host: String, request: Request) -> Result<(), CommandError> {
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
        self.waiting.push(Waiting { host, request });
        Ok(())
    }
}

/// Knows what was answered, and notes the first name that was not.
struct KnownNames<'a> {
    answers: &'a BTreeMap<String, Answer>,
    missing: RefCell<Option<String>>,
}

impl Resolver for KnownNames<'_> {
    fn resolve(&self, host: &str, port: u16, _param: &str) -> Result<SocketAddr, ResolveError> {
        if let Some(ip) = without_lookup(host) {
            return Ok(SocketAddr::new(ip, port));
        }
        match self.answers.get(host) {
            Some(Ok(ip)) => Ok(SocketAddr::new(*ip, port)),
            Some(Err(reason)) => Err(ResolveError {
                reason: reason.clone(),
            }),
            None => {
                self.missing.borrow_mut().get_or_insert_with(|| host.to_owned());
                Err(ResolveError {
                    reason: "not looked up yet".to_owned(),
                })
            }
        }
    }
}

/// The address of a host that needs no name server: a literal, or this machine (RFC 6761, section 6.3).
fn without_lookup(host: &str) -> Option<IpAddr> {
    if host.eq_ignore_ascii_case("localhost") {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    let literal = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    literal.unwrap_or(host).parse().ok()
}

fn host_and_port(name: &str) -> Result<(&str, u16), String> {
    name.rsplit_once(':')
        .and_then(|(host, port)| Some((host, port.parse().ok()?)))
        .ok_or_else(|| format!("not host:port: {name}"))
}

fn resolved(request: Resolve, answer: Answer) -> ResourceOutcome {
    let Resolve { endpoint, name } = request;
    let port = host_and_port(&name).map_or(0, |(_, port)| port);
    ResourceOutcome::Resolved {
        endpoint,
        name,
        result: answer.map(|ip| SocketAddr::new(ip, port)),
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{self, Receiver, Sender};

    use headrace_sys::SystemClock;

    use super::*;

    /// Tells which names it was asked for, and answers each when the test says so.
    struct Slow {
        asked: Sender<String>,
        release: Mutex<Receiver<()>>,
    }

    impl NameLookup for Slow {
        fn lookup(&self, host: &str) -> io::Result<IpAddr> {
            self.asked.send(host.to_owned()).unwrap();
            // Ends also when the test has gone.
            let _ = self.release.lock().unwrap().recv();
            Ok(Ipv4Addr::LOCALHOST.into())
        }
    }

    fn slow() -> (LookupThreads, Receiver<String>, Sender<()>) {
        let (asked, seen) = mpsc::channel();
        let (releaser, release) = mpsc::channel();
        let lookup = Slow {
            asked,
            release: Mutex::new(release),
        };
        let threads = LookupThreads::new(Arc::new(lookup), Arc::new(SystemClock::new()));
        (threads, seen, releaser)
    }

    #[test]
    fn only_so_many_names_are_looked_up_at_once_and_the_others_follow() {
        let (mut threads, seen, releaser) = slow();
        for number in 0..=THREADS_MAX {
            threads.begin(&format!("host{number}"));
        }
        let mut first: Vec<_> = seen.iter().take(THREADS_MAX).collect();
        first.sort();
        assert_eq!(first, ["host0", "host1", "host2", "host3"]);
        assert!(threads.take_finished().is_none());
        assert_eq!((threads.running_count, threads.queued.len()), (THREADS_MAX, 1));
        releaser.send(()).unwrap();
        let finished = loop {
            match threads.take_finished() {
                Some(finished) => break finished,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(finished.answer, Ok(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(seen.recv().unwrap(), "host4");
    }

    #[test]
    fn the_end_of_the_driver_waits_for_no_lookup() {
        let (mut threads, seen, releaser) = slow();
        threads.begin("slow");
        assert_eq!(seen.recv().unwrap(), "slow");
        // With a thread that is joined, this would never end: nothing has released the lookup.
        drop(threads);
        drop(releaser);
    }

    #[test]
    fn what_needs_no_name_server() {
        for (host, expected) in [
            ("localhost", Some("127.0.0.1")),
            ("LocalHost", Some("127.0.0.1")),
            ("10.0.0.7", Some("10.0.0.7")),
            ("[::1]", Some("::1")),
            ("localhost.example", None),
        ] {
            assert_eq!(
                without_lookup(host),
                expected.map(|ip| ip.parse().unwrap()),
                "{host}"
            );
        }
    }
}
