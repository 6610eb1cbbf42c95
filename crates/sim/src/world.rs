//! The world: its time, its nodes, and the step that moves both.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use headrace_driver::{ConfigError, DriverConfig, QUEUE_CAPACITY};

use crate::error::WorldError;
use crate::grounds::Grounds;
use crate::invariants::{SentStreams, Violation};
use crate::lock::lock;
use crate::network::Network;
use crate::node::{Node, NodeCore};
use crate::random::fork;
use crate::time::{NodeClock, PassesTime, WorldTime};

/// Time between two steps while there is work, at least and at most.
const BUSY_STEP_NS: std::ops::RangeInclusive<i64> = 1_000..=20_000;
/// Longest step while there is none: the longest sleep of an agent that backs off.
const IDLE_STEP_MAX_NS: i64 = 1_000_000;
/// Events shown when a condition does not come true.
const SHOWN_EVENTS: usize = 40;

/// How time passes.
struct Pace {
    random: fastrand::Rng,
    step_ns: i64,
    /// How long a node rests at most that has nothing to do. Without it each node has a turn in each step.
    rest_max_ns: Option<i64>,
    /// Before then the programs have nothing to do, where nodes rest.
    programs_due_ns: i64,
}

/// What is checked after each step, and what came of it.
struct Watch {
    is_on: bool,
    sent: SentStreams,
    /// The first rule that did not hold: node, rule and the events before.
    broken: Option<(String, Violation, String)>,
}

/// The world, as its clocks and clients have time pass.
struct Core {
    grounds: Arc<Grounds>,
    pace: Mutex<Pace>,
    watch: Mutex<Watch>,
    nodes: Mutex<Vec<Arc<NodeCore>>>,
    is_stepping: AtomicBool,
}

impl PassesTime for Core {
    /// Inside a turn, as when a handler calls something that waits, clients get none: they are in the middle of one.
    fn step(&self, end_ns: i64) -> usize {
        let is_inside = self.is_stepping.swap(true, Ordering::Relaxed);
        let mut nodes = lock(&self.nodes).clone();
        let rest_max_ns = self.pass_time(end_ns, &mut nodes);
        let work_count = match rest_max_ns {
            None => nodes.iter().map(|node| node.turn(!is_inside)).sum(),
            Some(rest_max_ns) => self.turns_of_awake(&nodes, !is_inside, rest_max_ns),
        };
        if work_count > 0 {
            lock(&self.pace).step_ns = 0;
        }
        self.is_stepping.store(is_inside, Ordering::Relaxed);
        self.check(&nodes);
        work_count
    }
}

impl Core {
    /// Holds what drivers and logs show against the rules.
    fn check(&self, nodes: &[Arc<NodeCore>]) {
        let mut watch = lock(&self.watch);
        if !watch.is_on || watch.broken.is_some() {
            return;
        }
        for node in nodes {
            node.look(&mut watch.sent);
        }
        for node in nodes {
            if let Err(violation) = node.check(&watch.sent) {
                let trace = self.grounds.network.trace(SHOWN_EVENTS);
                watch.broken = Some((node.name().to_owned(), violation, trace));
                return;
            }
        }
    }

    fn verdict(&self) -> Result<(), WorldError> {
        match &lock(&self.watch).broken {
            None => Ok(()),
            Some((node, violation, trace)) => Err(WorldError::Broken {
                node: node.clone(),
                rule: violation.rule,
                what: violation.what.clone(),
                seed: self.grounds.seed,
                trace: trace.clone(),
            }),
        }
    }

    /// Moves time, and returns how long nodes rest.
    fn pass_time(&self, end_ns: i64, nodes: &mut [Arc<NodeCore>]) -> Option<i64> {
        let mut pace = lock(&self.pace);
        pace.random.shuffle(nodes);
        let busy_ns = pace.random.i64(BUSY_STEP_NS);
        if let Some(rest_max_ns) = pace.rest_max_ns {
            self.pass_time_to_the_next(end_ns, busy_ns, pace.programs_due_ns, nodes);
            return Some(rest_max_ns);
        }
        pace.step_ns = if pace.step_ns == 0 {
            busy_ns
        } else {
            (2 * pace.step_ns).min(IDLE_STEP_MAX_NS)
        };
        let Grounds { time, network, .. } = &*self.grounds;
        let now_ns = time.now_ns();
        let next_ns = network.next_arrival_ns().filter(|next_ns| *next_ns > now_ns);
        let target_ns = (now_ns + pace.step_ns)
            .min(next_ns.unwrap_or(i64::MAX))
            .min(end_ns);
        time.advance_ns((target_ns - now_ns).max(1));
        None
    }

    /// Moves time to when a node or a program has something to do. What they have to do at once comes after the shortest
    /// step.
    fn pass_time_to_the_next(
        &self,
        end_ns: i64,
        shortest_ns: i64,
        programs_due_ns: i64,
        nodes: &[Arc<NodeCore>],
    ) {
        let Grounds { time, network, .. } = &*self.grounds;
        let now_ns = time.now_ns();
        let rested_ns = nodes.iter().map(|node| node.rests_until_ns()).min();
        let next_ns = rested_ns.unwrap_or(i64::MAX).min(programs_due_ns);
        let arrival_ns = network.next_arrival_after_ns(now_ns).unwrap_or(i64::MAX);
        let target_ns = next_ns.max(now_ns + shortest_ns).min(arrival_ns).min(end_ns);
        time.advance_ns((target_ns - now_ns).max(1));
    }

    /// Turns of the nodes whose rest is over, or to which something has come.
    fn turns_of_awake(&self, nodes: &[Arc<NodeCore>], with_clients: bool, rest_max_ns: i64) -> usize {
        let Grounds { time, network, .. } = &*self.grounds;
        let now_ns = time.now_ns();
        let reached = network.hosts_with_arrivals(now_ns);
        let mut work_count = 0;
        for node in nodes {
            if node.rests_until_ns() > now_ns && !reached.contains(&node.host()) {
                continue;
            }
            let count = node.turn(with_clients);
            let rest_ns = lock(&self.pace).random.i64(0..=rest_max_ns);
            node.rest_until_ns(if count > 0 { now_ns } else { now_ns + rest_ns });
            work_count += count;
        }
        work_count
    }
}

/// Nodes on one network, on one thread, in virtual time.
///
/// Calls from several threads are safe, and then the order of things is no longer the seed's alone.
pub struct World {
    core: Arc<Core>,
    directory: PathBuf,
}

impl World {
    /// An empty world. Its nodes keep their files in `directory`, which stays when the world ends.
    pub fn new(seed: u64, directory: &Path) -> Self {
        let time = WorldTime::default();
        let grounds = Grounds {
            seed,
            network: Network::new(time.clone(), ["network", "joins"].map(|name| fork(seed, name))),
            time,
            queue_capacity: AtomicUsize::new(QUEUE_CAPACITY),
        };
        Self {
            core: Arc::new(Core {
                grounds: Arc::new(grounds),
                pace: Mutex::new(Pace {
                    random: fork(seed, "pace"),
                    step_ns: 0,
                    rest_max_ns: None,
                    programs_due_ns: i64::MAX,
                }),
                watch: Mutex::new(Watch {
                    is_on: true,
                    sent: SentStreams::default(),
                    broken: None,
                }),
                nodes: Mutex::new(Vec::new()),
                is_stepping: AtomicBool::new(false),
            }),
            directory: directory.to_owned(),
        }
    }

    /// Checks no rules after steps: for measurements of speed, and for frames that no honest peer sends.
    pub fn without_checks(self) -> Self {
        lock(&self.core.watch).is_on = false;
        self
    }

    /// Has so many messages fit in each queue between the agents of drivers that start from now on. Where few fit, queues
    /// fill, and agents that wait for each other show it.
    pub fn set_queue_capacity(&self, capacity: usize) {
        self.core
            .grounds
            .queue_capacity
            .store(capacity, Ordering::Relaxed);
    }

    /// Adds a machine with a driver, which runs when this returns. Channels may use its name as a host.
    pub fn add_node(&self, name: &str) -> Result<Node, WorldError> {
        self.add_node_with(name, |_| Ok(()))
    }

    /// As [`Self::add_node`], with other settings of the driver.
    pub fn add_node_with(
        &self,
        name: &str,
        change: impl FnOnce(&mut DriverConfig) -> Result<(), ConfigError>,
    ) -> Result<Node, WorldError> {
        self.check_name(name)?;
        let mut config = NodeCore::config();
        change(&mut config).map_err(|source| WorldError::Driver {
            node: name.to_owned(),
            source: source.into(),
        })?;
        let world = Arc::clone(&self.core) as Arc<dyn PassesTime>;
        let grounds = &self.core.grounds;
        let clock = NodeClock::new(grounds.time.clone(), Arc::downgrade(&world));
        let core = NodeCore::new(&grounds.network, clock, name, &self.directory, config);
        let node = Node::new(Arc::clone(grounds), world, Arc::clone(&core));
        node.start()?;
        lock(&self.core.nodes).push(core);
        Ok(node)
    }

    fn check_name(&self, name: &str) -> Result<(), WorldError> {
        let is_word = |character: char| character.is_ascii_alphanumeric() || character == '-';
        let fault = |rule| {
            let node = name.to_owned();
            Err(WorldError::Node { node, rule })
        };
        if !name.starts_with(|first: char| first.is_ascii_alphabetic()) || !name.chars().all(is_word) {
            return fault("must be a host name: a letter, then letters, digits and hyphens");
        }
        if self.core.grounds.network.has_host(name) {
            return fault("must be the only one with its name");
        }
        Ok(())
    }

    /// The seed that decides everything.
    pub fn seed(&self) -> u64 {
        self.core.grounds.seed
    }

    /// Virtual time since the world began.
    pub fn now_ns(&self) -> i64 {
        self.core.grounds.time.now_ns()
    }

    /// The network, to make it worse.
    pub fn network(&self) -> &Network {
        &self.core.grounds.network
    }

    /// Moves time a little and gives each node that runs one turn. Returns the work done, or the rule that does not
    /// hold after it.
    pub fn step(&self) -> Result<usize, WorldError> {
        self.step_until(i64::MAX)
    }

    /// As [`Self::step`], not beyond a time.
    pub fn step_until(&self, end_ns: i64) -> Result<usize, WorldError> {
        let work_count = self.core.step(end_ns);
        self.core.verdict().map(|()| work_count)
    }

    /// Makes the next step short, as after work: what the caller stepped had some.
    pub fn note_work(&self) {
        lock(&self.core.pace).step_ns = 0;
        lock(&self.core.nodes).iter().for_each(|node| node.wake());
    }

    /// Has nodes rest when they have nothing to do, each time for a random time up to this: a faster world, in which
    /// time goes on to when something is due. What arrives for a node, [`Self::note_work`], [`Node::wake`], and a client
    /// of the node that waits for its driver end its rest.
    pub fn set_rest_ns(&self, rest_max_ns: i64) {
        lock(&self.core.pace).rest_max_ns = Some(rest_max_ns);
    }

    /// Until then what the caller steps has nothing to do: where nodes rest, time goes on to then at most.
    pub fn set_programs_due_ns(&self, due_ns: i64) {
        lock(&self.core.pace).programs_due_ns = due_ns;
    }

    /// Whether what the caller steps may have something to do now.
    pub fn are_programs_due(&self) -> bool {
        let pace = lock(&self.core.pace);
        pace.rest_max_ns.is_none()
            || pace.programs_due_ns == i64::MAX
            || self.now_ns() >= pace.programs_due_ns
    }

    /// Steps until `duration_ns` has passed.
    pub fn run_for(&self, duration_ns: i64) -> Result<(), WorldError> {
        let end_ns = self.now_ns().saturating_add(duration_ns);
        while self.now_ns() < end_ns {
            self.step_until(end_ns)?;
        }
        Ok(())
    }

    /// Steps until the condition holds. An error tells what did not happen within that time, the seed, and what
    /// happened last.
    pub fn run_until(
        &self,
        within_ns: i64,
        what: &str,
        mut condition: impl FnMut() -> bool,
    ) -> Result<(), WorldError> {
        let end_ns = self.now_ns().saturating_add(within_ns);
        while !condition() {
            if self.now_ns() >= end_ns {
                return Err(WorldError::NotInTime {
                    what: what.to_owned(),
                    within_ns,
                    seed: self.seed(),
                    trace: self.trace(SHOWN_EVENTS),
                });
            }
            self.step_until(end_ns)?;
        }
        Ok(())
    }

    /// The last events of the world, at most `count` and at most 10,000, one a line.
    pub fn trace(&self, count: usize) -> String {
        self.core.grounds.network.trace(count)
    }

    /// Number of events so far, and a hash over all of them with their times and bytes. The same for the same seed.
    pub fn digest(&self) -> (u64, u64) {
        self.core.grounds.network.digest()
    }

    /// Puts a line of the caller into the trace, and so into the digest.
    pub fn note(&self, text: &str) {
        self.core.grounds.network.note(text.to_owned());
    }

    /// Sockets that are open in the world.
    pub fn socket_count(&self) -> usize {
        self.core.grounds.network.socket_count()
    }
}
