//! A machine of the world: a driver, clients, a clock, an address.
//!
//! | state | leaves by |
//! |---|---|
//! | running | `pause`: no turns; `close`: clients and driver end in good order; `crash`: they end as by a kill |
//! | paused | `resume`; time went on meanwhile |
//! | down | `start`, on the same directory |

use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use headrace_buffers::event_log::Event;
use headrace_client::{Client, ClientConfig};
use headrace_driver::environment::{Disk, Environment, EventListener};
use headrace_driver::{DriverConfig, Invoker, MediaDriver, ThreadingMode};
use headrace_sys::Clock;
use headrace_sys::idle::IdleStrategy;

use crate::disk::NodeDisk;
use crate::error::WorldError;
use crate::grounds::Grounds;
use crate::invariants::{Holdings, Observer, SentStreams, Violation};
use crate::lock::lock;
use crate::machine::SimulatedMachine;
use crate::network::{HostId, HostNetwork, LinkSettings, Network};
use crate::random::fork;
use crate::time::{NodeClock, PassesTime};

/// Length of terms where nothing is said: streams wrap early, and hundreds of them fit.
const TERM_LENGTH: usize = 256 * 1024;
/// Length of the values of counters where nothing is said: each life of a node maps them anew, and a world of many
/// crashes fits into little memory.
const COUNTERS_LENGTH: usize = 1024 * 1024;

/// How long a node rests at most, where nodes rest, while one of its clients waits for its driver.
const WAITING_REST_NS: i64 = 200_000;

/// A client of a node, for as long as a program keeps it.
struct Held {
    client: Weak<Client>,
    is_stalled: bool,
}

/// What the world knows of a node.
pub(crate) struct NodeCore {
    name: String,
    network: HostNetwork,
    clock: Arc<NodeClock>,
    config: DriverConfig,
    disk: Arc<NodeDisk>,
    driver: Mutex<Option<MediaDriver>>,
    invoker: Mutex<Option<Invoker>>,
    /// Sees the driver from outside, while there is one.
    observer: Mutex<Option<Observer>>,
    clients: Mutex<Vec<Held>>,
    is_paused: AtomicBool,
    /// It has no turn before then, unless something comes for it.
    rests_until_ns: AtomicI64,
    /// Drivers and clients so far: each gets chances of its own.
    born_count: AtomicU64,
}

impl NodeCore {
    /// Settings of drivers where nothing is said.
    pub(crate) fn config() -> DriverConfig {
        DriverConfig {
            term_buffer_length: TERM_LENGTH,
            ipc_term_buffer_length: TERM_LENGTH,
            counters_buffer_length: COUNTERS_LENGTH,
            ..DriverConfig::default()
        }
    }

    pub(crate) fn new(
        network: &Network,
        clock: NodeClock,
        name: &str,
        directory: &Path,
        mut config: DriverConfig,
    ) -> Arc<Self> {
        config.directory = directory.join(name);
        config.threading_mode = Some(ThreadingMode::Invoker);
        Arc::new(Self {
            name: name.to_owned(),
            network: HostNetwork::add(network, name),
            disk: Arc::new(NodeDisk::new(&config.directory)),
            clock: Arc::new(clock),
            config,
            driver: Mutex::new(None),
            invoker: Mutex::new(None),
            observer: Mutex::new(None),
            clients: Mutex::new(Vec::new()),
            is_paused: AtomicBool::new(false),
            rests_until_ns: AtomicI64::new(0),
            born_count: AtomicU64::new(0),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn host(&self) -> HostId {
        self.network.host()
    }

    pub(crate) fn rests_until_ns(&self) -> i64 {
        self.rests_until_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn rest_until_ns(&self, until_ns: i64) {
        self.rests_until_ns.store(until_ns, Ordering::Relaxed);
    }

    /// Ends its rest.
    pub(crate) fn wake(&self) {
        self.rest_until_ns(0);
    }

    /// Shortens its rest, as one of its clients waits.
    fn rest_at_most(&self, rest_ns: i64) {
        let until_ns = self.clock.since_start_ns() + rest_ns;
        self.rest_until_ns(self.rests_until_ns().min(until_ns));
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as Arc<dyn Clock>
    }

    /// One turn of the driver and, unless one of them is in the middle of one, of each client.
    pub(crate) fn turn(&self, with_clients: bool) -> usize {
        if self.is_paused.load(Ordering::Relaxed) {
            return 0;
        }
        let invoker = lock(&self.invoker).clone();
        let mut work_count = invoker.map_or(0, |invoker| invoker.invoke());
        if with_clients {
            for client in self.clients(|held| !held.is_stalled) {
                // A client that has ended tells its handlers; its handles say why.
                work_count += client.invoke().unwrap_or(0);
            }
        }
        work_count
    }

    /// Looks at what the driver sends, for [`Self::check`] of all nodes.
    pub(crate) fn look(&self, sent: &mut SentStreams) {
        if let Some(observer) = lock(&self.observer).as_mut() {
            observer.look(sent);
        }
    }

    /// The first rule that does not hold for the driver.
    pub(crate) fn check(&self, sent: &SentStreams) -> Result<(), Violation> {
        match (lock(&self.observer).as_mut(), lock(&self.driver).as_ref()) {
            (Some(observer), Some(driver)) => observer.check(driver, sent),
            _ => Ok(()),
        }
    }

    /// Those of the clients that are still held by the program.
    fn clients(&self, which: impl Fn(&Held) -> bool) -> Vec<Arc<Client>> {
        let mut clients = lock(&self.clients);
        clients.retain(|held| held.client.strong_count() > 0);
        let chosen = clients.iter().filter(|held| which(held));
        chosen.filter_map(|held| held.client.upgrade()).collect()
    }

    /// Numbers for the next driver or client.
    fn random(&self, seed: u64) -> fastrand::Rng {
        let count = self.born_count.fetch_add(1, Ordering::Relaxed);
        fork(seed, &format!("{} {count}", self.name))
    }
}

/// Puts what a driver tells of its states into the trace of the world.
struct EventNotes {
    node: String,
    network: Network,
}

impl EventListener for EventNotes {
    fn on_event(&self, event: &Event<&str>) {
        // The id of a driver is that of its process, and differs between runs of one seed.
        if event.kind != "driver" {
            self.network.note(format!("{} {event}", self.node));
        }
    }
}

/// A machine of a [`crate::World`].
pub struct Node {
    grounds: Arc<Grounds>,
    world: Arc<dyn PassesTime>,
    core: Arc<NodeCore>,
}

impl Node {
    pub(crate) fn new(grounds: Arc<Grounds>, world: Arc<dyn PassesTime>, core: Arc<NodeCore>) -> Self {
        Self { grounds, world, core }
    }

    /// Its name, which is also its host name.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Its IPv4 address, which its name stands for.
    pub fn address(&self) -> IpAddr {
        self.core.network.addresses().v4.into()
    }

    /// Its IPv6 address.
    pub fn address_v6(&self) -> IpAddr {
        self.core.network.addresses().v6.into()
    }

    /// Where its driver keeps its files.
    pub fn directory(&self) -> &Path {
        &self.core.config.directory
    }

    /// The clock of its driver and its clients.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.core.clock()
    }

    /// True while it has a driver.
    pub fn is_up(&self) -> bool {
        lock(&self.core.driver).is_some()
    }

    /// True when its driver should be closed: a client asked and may, or an agent failed.
    pub fn is_terminated(&self) -> bool {
        lock(&self.core.driver)
            .as_ref()
            .is_some_and(MediaDriver::is_terminated)
    }

    /// What its driver holds; nothing of a driver that is down.
    pub fn holdings(&self) -> Option<Holdings> {
        let (observer, driver) = (lock(&self.core.observer), lock(&self.core.driver));
        Some(observer.as_ref()?.holdings(driver.as_ref()?))
    }

    /// True between [`Self::pause`] and [`Self::resume`].
    pub fn is_paused(&self) -> bool {
        self.core.is_paused.load(Ordering::Relaxed)
    }

    fn refuse(&self, rule: &'static str) -> WorldError {
        WorldError::Node {
            node: self.core.name.clone(),
            rule,
        }
    }

    fn note(&self, what: &str) {
        self.grounds.network.note(format!("{} {what}", self.core.name));
    }

    /// Launches a driver on the directory of the node, also after a crash.
    pub fn start(&self) -> Result<(), WorldError> {
        let mut driver = lock(&self.core.driver);
        if driver.is_some() {
            return Err(self.refuse("must be down to be started"));
        }
        let environment = Environment {
            machine: Arc::new(SimulatedMachine),
            clock: self.clock(),
            network: Arc::new(self.core.network.clone()),
            disk: Arc::clone(&self.core.disk) as Arc<dyn Disk>,
            lookups: Box::new(self.core.network.names()),
            queue_capacity: self.grounds.queue_capacity.load(Ordering::Relaxed),
            random: self.core.random(self.grounds.seed),
            events: Some(Arc::new(EventNotes {
                node: self.core.name.clone(),
                network: self.grounds.network.clone(),
            })),
        };
        self.note("starts");
        let launched = MediaDriver::launch_in(self.core.config.clone(), environment)
            .map_err(|source| self.driver_error(source))?;
        *lock(&self.core.invoker) = launched.invoker();
        let observer = Observer::new(launched.directory(), self.core.config.tether_subscriptions)
            .map_err(|source| self.driver_error(source))?;
        *lock(&self.core.observer) = Some(observer);
        *driver = Some(launched);
        Ok(())
    }

    fn driver_error(&self, source: headrace_driver::DriverError) -> WorldError {
        WorldError::Driver {
            node: self.core.name.clone(),
            source,
        }
    }

    /// Connects a client, which the world gives its turns for as long as the caller keeps it.
    pub fn connect(&self) -> Result<Arc<Client>, WorldError> {
        self.connect_with(|_| {})
    }

    /// As [`Self::connect`], with other settings of the client.
    pub fn connect_with(&self, change: impl FnOnce(&mut ClientConfig)) -> Result<Arc<Client>, WorldError> {
        let mut config = ClientConfig::default();
        change(&mut config);
        self.place(&mut config);
        let client = Arc::new(Client::connect(config)?);
        self.adopt(&client);
        Ok(client)
    }

    /// Changes the settings of a client so that it belongs to this node: directory, time, chance, and how it waits.
    pub fn place(&self, config: &mut ClientConfig) {
        let (world, node) = (Arc::downgrade(&self.world), Arc::downgrade(&self.core));
        config.directory.clone_from(&self.core.config.directory);
        config.use_invoker = true;
        config.clock = self.clock();
        config.random = self.core.random(self.grounds.seed);
        config.awaiting_idle = IdleStrategy::NoOp;
        config.driver_invoker = Some(Arc::new(move || {
            if let (Some(world), Some(node)) = (world.upgrade(), node.upgrade()) {
                node.rest_at_most(WAITING_REST_NS);
                world.step(i64::MAX);
            }
        }));
    }

    /// Gives a client, whose settings were of this node, its turns for as long as a program keeps it.
    pub fn adopt(&self, client: &Arc<Client>) {
        lock(&self.core.clients).push(Held {
            client: Arc::downgrade(client),
            is_stalled: false,
        });
    }

    /// Ends one client as by a kill of its process, while the driver and the others go on. It is closed for the program.
    pub fn crash_client(&self, client: &Client) -> Result<(), WorldError> {
        self.note(&format!("loses client {}", client.client_id()));
        Ok(client.crash()?)
    }

    /// Gives one client no more turns, as when its program hangs, or its turns again.
    pub fn set_stalled(&self, client: &Client, is_stalled: bool) {
        let what = if is_stalled { "stalls" } else { "goes on with" };
        self.note(&format!("{what} client {}", client.client_id()));
        for held in lock(&self.core.clients).iter_mut() {
            if std::ptr::eq(held.client.as_ptr(), client) {
                held.is_stalled = is_stalled;
            }
        }
    }

    /// Ends its rest, in a world in which nodes rest: what its clients have done is for its driver now.
    pub fn wake(&self) {
        self.core.wake();
    }

    /// Leaves room for logs of so many bytes in all. `None` is room for anything.
    pub fn set_disk_room(&self, bytes: Option<u64>) {
        self.note(&format!("has a disk with room for {bytes:?} bytes of logs"));
        self.core.disk.set_room(bytes);
    }

    /// The node does nothing until [`Self::resume`]; what is sent to it fills its buffers.
    pub fn pause(&self) {
        self.note("pauses");
        self.core.is_paused.store(true, Ordering::Relaxed);
    }

    /// The node goes on; for it, a moment has passed.
    pub fn resume(&self) {
        self.note("resumes");
        self.core.wake();
        self.core.is_paused.store(false, Ordering::Relaxed);
    }

    /// Ends the driver and the clients as by a kill: no peer and no file is told. They are closed for the program.
    pub fn crash(&self) -> Result<(), WorldError> {
        let driver = lock(&self.core.driver).take();
        let Some(driver) = driver else {
            return Err(self.refuse("must be up to crash"));
        };
        self.note("crashes");
        *lock(&self.core.invoker) = None;
        *lock(&self.core.observer) = None;
        driver.crash();
        // What clients say at their end goes to the rings of a driver that reads no more.
        for client in self.core.clients(|_| true) {
            client.close()?;
        }
        self.core.is_paused.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Closes the clients, lets the driver hear of it, and closes the driver. Does nothing when the node is down.
    pub fn close(&self) -> Result<(), WorldError> {
        for client in self.core.clients(|_| true) {
            client.close()?;
        }
        let driver = lock(&self.core.driver).take();
        let Some(driver) = driver else {
            return Ok(());
        };
        self.note("closes");
        *lock(&self.core.invoker) = None;
        *lock(&self.core.observer) = None;
        driver.close().map_err(|source| self.driver_error(source))
    }

    /// Sets how far its wall clock is ahead of that of the world, or jumps there. Its monotonic time is not touched.
    pub fn set_clock_skew_ns(&self, skew_ns: i64) {
        self.note(&format!("has its wall clock ahead by {skew_ns} ns"));
        self.core.clock.set_skew_ns(skew_ns);
    }

    /// Sets its wall clock forwards, or backwards, from where it is. Its monotonic time goes on as ever.
    pub fn jump_clock_ns(&self, by_ns: i64) {
        self.note(&format!("has its wall clock jump by {by_ns} ns"));
        self.core.clock.jump_ns(by_ns);
    }

    /// Sets the link to another node apart from all others, in this direction. `None` undoes that.
    pub fn set_link_to(&self, other: &Self, settings: Option<LinkSettings>) {
        let (from, to) = (self.core.network.host(), other.core.network.host());
        self.grounds.network.set_link(from, to, settings);
    }

    /// Cuts the link to another node, in this direction, or mends the cut.
    pub fn set_cut_to(&self, other: &Self, is_cut: bool) {
        let (from, to) = (self.core.network.host(), other.core.network.host());
        self.grounds.network.set_cut(from, to, is_cut);
    }

    /// As [`Self::set_cut_to`], in both directions.
    pub fn set_cut(&self, other: &Self, is_cut: bool) {
        self.set_cut_to(other, is_cut);
        other.set_cut_to(self, is_cut);
    }
}
