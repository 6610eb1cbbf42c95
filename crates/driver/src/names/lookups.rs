//! Looks up names off the threads of the agents: a name server may take seconds to answer, or never do.
//!
//! At most [`THREADS_MAX`] lookups run at once, each on a separate thread that nothing waits for, neither an agent nor
//! the end of the driver. The others queue.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use headrace_sys::Clock;

use crate::mailbox::{Inbox, inbox};

/// Lookups at once. More than one, so that a name that no server answers for does not delay others.
const THREADS_MAX: usize = 4;

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

/// A finished lookup.
#[derive(Debug)]
pub struct LookedUp {
    /// The host.
    pub host: String,
    /// Its address, or why there is none.
    pub answer: Result<IpAddr, String>,
    /// How long the lookup took.
    pub duration_ns: i64,
}

/// Looks up names while its caller continues; a seam, so that tests decide when the answer comes.
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
        let (finished, name) = (self.finished.clone(), host.clone());
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
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
}
