//! A driver small enough to read, for tests of the client alone: real files and rings, no network, and it answers
//! exactly what a test tells it to. It runs inside the client's waits, on the test's thread and clock.

#![allow(dead_code, unreachable_pub)] // each test file uses its own part of it

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use headrace_buffers::broadcast::Transmitter;
use headrace_buffers::cnc::{CncFile, CncIdentity, CncLengths};
use headrace_buffers::counters::{Counter, CountersManager, type_ids};
use headrace_buffers::log::{LogBuffers, LogSpec, LogType};
use headrace_buffers::ring::{ManyToOneRing, ReadAction};
use headrace_client::{Client, ClientConfig, ClientError, ErrorCode, Header};
use headrace_protocol::command::Command;
use headrace_protocol::event::{Event, PublicationReady};
use headrace_sys::Clock;
use headrace_sys::clock::ManualClock;
use headrace_sys::idle::IdleStrategy;

pub const MS: i64 = 1_000_000;
pub const LIVENESS_TIMEOUT_NS: i64 = 10_000 * MS;
pub const TERM_LENGTH: usize = 64 * 1024;

/// What the driver does with a command it would otherwise carry out.
#[derive(Clone)]
pub enum Reply {
    Normal,
    /// Takes commands and says nothing. Each turn then moves the clock on, so that waiting ends.
    Silence,
    Refusal(ErrorCode, String),
}

/// A log the driver made.
pub struct FakeLog {
    pub log: LogBuffers,
    pub path: String,
    pub limit: Counter,
}

pub struct FakeDriver {
    pub directory: tempfile::TempDir,
    pub clock: Arc<ManualClock>,
    pub counters: CountersManager,
    pub ring: ManyToOneRing,
    pub cnc: CncFile,
    pub transmitter: Transmitter,
    /// Every command received, as in the ring.
    pub commands: Vec<(i32, Vec<u8>)>,
    /// By original registration id.
    pub logs: HashMap<i64, FakeLog>,
    pub reply: Reply,
    pub status_id: i32,
    pub clients: Vec<i64>,
}

impl FakeDriver {
    pub fn start() -> Arc<Mutex<Self>> {
        Self::start_with(&CncLengths::default())
    }

    pub fn start_with(lengths: &CncLengths) -> Arc<Mutex<Self>> {
        let directory = tempfile::tempdir().unwrap();
        let identity = CncIdentity {
            client_liveness_timeout_ns: LIVENESS_TIMEOUT_NS,
            start_timestamp_ms: 0,
            pid: 1,
            page_size: 4096,
        };
        let cnc = CncFile::create(directory.path(), lengths, &identity).unwrap();
        let clock = Arc::new(ManualClock::new(3_600_000 * MS, 1_700_000_000_000 * MS));
        let ring = ManyToOneRing::new(cnc.to_driver()).unwrap();
        ring.next_correlation_id();
        ring.put_consumer_heartbeat_ms(clock.epoch_ms());
        cnc.signal_ready().unwrap();
        Arc::new(Mutex::new(Self {
            counters: CountersManager::new(cnc.counters_metadata(), cnc.counters_values(), 1000),
            transmitter: Transmitter::new(cnc.to_clients()).unwrap(),
            ring,
            cnc,
            clock,
            directory,
            commands: Vec::new(),
            logs: HashMap::new(),
            reply: Reply::Normal,
            status_id: -1,
            clients: Vec::new(),
        }))
    }

    pub fn send(&mut self, event: &Event<'_>) {
        let mut bytes = Vec::new();
        let type_id = event.encode(&mut bytes);
        self.transmitter.transmit(type_id, &bytes).unwrap();
    }

    pub fn heartbeat(&self) {
        self.ring.put_consumer_heartbeat_ms(self.clock.epoch_ms());
    }

    /// One duty cycle: everything in the ring.
    pub fn work(&mut self) {
        let mut received = Vec::new();
        self.ring
            .read(100, |type_id, bytes| {
                received.push((type_id, bytes.to_vec()));
                ReadAction::Continue
            })
            .unwrap();
        if matches!(self.reply, Reply::Silence) {
            self.clock.advance_ns(100 * MS);
            self.heartbeat();
        }
        for (type_id, bytes) in received {
            self.answer(&Command::decode(type_id, &bytes).unwrap());
            self.commands.push((type_id, bytes));
        }
    }

    fn answer(&mut self, command: &Command<'_>) {
        match (self.reply.clone(), command) {
            (_, Command::ClientClose { .. }) | (Reply::Silence, _) => {}
            (Reply::Refusal(error_code, message), _) => self.send(&Event::Error {
                correlation_id: command.correlation_id(),
                error_code,
                message: message.into(),
            }),
            (Reply::Normal, _) => self.carry_out(command),
        }
    }

    fn carry_out(&mut self, command: &Command<'_>) {
        let correlation_id = command.correlation_id();
        match command {
            Command::AddPublication {
                client_id,
                stream_id,
                channel,
                ..
            } => {
                self.note_client(*client_id);
                let shared = self.find_log(*stream_id);
                let ready = self.publish(
                    correlation_id,
                    shared.unwrap_or(correlation_id),
                    *stream_id,
                    channel,
                );
                self.send(&Event::PublicationReady(ready));
            }
            Command::AddExclusivePublication {
                client_id,
                stream_id,
                channel,
                ..
            } => {
                self.note_client(*client_id);
                let ready = self.publish(correlation_id, correlation_id, *stream_id, channel);
                self.send(&Event::ExclusivePublicationReady(ready));
            }
            Command::AddSubscription { client_id, .. } => {
                self.note_client(*client_id);
                self.send(&Event::SubscriptionReady {
                    correlation_id,
                    channel_status_counter_id: self.status_id,
                });
            }
            Command::AddCounter {
                client_id,
                type_id,
                key,
                label,
                ..
            } => {
                self.note_client(*client_id);
                let counter_id = self.allocate(*type_id, key, label, correlation_id);
                self.send(&Event::CounterReady {
                    registration_id: correlation_id,
                    counter_id,
                });
            }
            Command::AddStaticCounter {
                type_id,
                key,
                label,
                registration_id,
                ..
            } => {
                let counter_id = self.allocate(*type_id, key, label, *registration_id);
                self.send(&Event::StaticCounter {
                    correlation_id,
                    counter_id,
                });
            }
            Command::NextAvailableSessionId { .. } => {
                self.send(&Event::NextAvailableSessionId {
                    correlation_id,
                    session_id: 4711,
                });
            }
            _ => self.send(&Event::OperationSuccess { correlation_id }),
        }
    }

    /// The first resource of a client brings its heartbeat counter.
    fn note_client(&mut self, client_id: i64) {
        if !self.clients.contains(&client_id) {
            self.clients.push(client_id);
            let counter_id = self.allocate(
                type_ids::CLIENT_HEARTBEAT,
                &client_id.to_le_bytes(),
                &format!("client-heartbeat: id={client_id}"),
                client_id,
            );
            let registration_id = client_id;
            self.send(&Event::CounterReady {
                registration_id,
                counter_id,
            });
        }
    }

    pub fn allocate(&mut self, type_id: i32, key: &[u8], label: &str, registration_id: i64) -> i32 {
        let id = self
            .counters
            .allocate(type_id, key, label, self.clock.epoch_ms())
            .unwrap();
        self.counters.set_registration_id(id, registration_id);
        id
    }

    fn find_log(&self, stream_id: i32) -> Option<i64> {
        self.logs
            .iter()
            .find(|(_, log)| log.log.stream_id() == stream_id)
            .map(|(id, _)| *id)
    }

    fn publish(
        &mut self,
        id: i64,
        original: i64,
        stream_id: i32,
        _channel: &str,
    ) -> PublicationReady<'static> {
        if !self.logs.contains_key(&original) {
            self.make_log(original, stream_id, TERM_LENGTH);
        }
        let status_id = self.status_id;
        let made = &self.logs[&original];
        PublicationReady {
            correlation_id: id,
            original_registration_id: original,
            session_id: made.log.session_id(),
            stream_id,
            publisher_limit_counter_id: made.limit.id(),
            channel_status_counter_id: status_id,
            log_file_name: made.path.clone().into(),
        }
    }

    pub fn make_log(&mut self, id: i64, stream_id: i32, term_length: usize) {
        let path = self.directory.path().join(format!("{id}.logbuffer"));
        let spec = LogSpec {
            log_type: LogType::ConcurrentPublication,
            term_length,
            session_id: 1000 + id as i32,
            stream_id,
            initial_term_id: 7,
            correlation_id: id,
            ..LogSpec::default()
        };
        let log = LogBuffers::create(&path, &spec).unwrap();
        let limit_id = self.allocate(type_ids::PUBLISHER_LIMIT, &[], "pub-lmt", id);
        let made = FakeLog {
            log,
            path: path.to_str().unwrap().to_owned(),
            limit: self.counters.counter(limit_id),
        };
        self.logs.insert(id, made);
    }

    /// Opens the window of a publication and marks it connected.
    pub fn connect(&self, original: i64, limit: i64) {
        let made = &self.logs[&original];
        made.log.metadata().put_is_connected_release(true);
        made.limit.set_release(limit);
    }

    /// Makes the log available to a subscription; returns the position counter.
    pub fn link(&mut self, log_id: i64, subscription: i64) -> Counter {
        let counter_id = self.allocate(type_ids::SUBSCRIBER_POSITION, &[], "sub-pos", subscription);
        self.announce(log_id, subscription, counter_id);
        self.counters.counter(counter_id)
    }

    pub fn announce(&mut self, log_id: i64, subscription: i64, counter_id: i32) {
        let made = &self.logs[&log_id];
        let (session_id, stream_id) = (made.log.session_id(), made.log.stream_id());
        let path = made.path.clone();
        self.send(&Event::AvailableImage {
            image_correlation_id: log_id,
            session_id,
            stream_id,
            subscription_registration_id: subscription,
            subscriber_position_counter_id: counter_id,
            log_file_name: path.into(),
            source_identity: "aeron:ipc".into(),
        });
    }

    pub fn unlink(&mut self, log_id: i64, subscription: i64) {
        self.send(&Event::UnavailableImage {
            image_correlation_id: log_id,
            subscription_registration_id: subscription,
            stream_id: 10,
            channel: "aeron:ipc".into(),
        });
    }

    pub fn last_command(&self) -> Command<'_> {
        let (type_id, bytes) = self.commands.last().expect("a command was sent");
        Command::decode(*type_id, bytes).unwrap()
    }

    pub fn count(&self, wanted: impl Fn(&Command<'_>) -> bool) -> usize {
        self.commands
            .iter()
            .filter(|(type_id, bytes)| wanted(&Command::decode(*type_id, bytes).unwrap()))
            .count()
    }
}

/// Ends a borrow of the driver before the client needs it.
pub fn driver(fake: &Arc<Mutex<FakeDriver>>) -> MutexGuard<'_, FakeDriver> {
    fake.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What the error handler was told.
pub type Errors = Arc<Mutex<Vec<ClientError>>>;

/// A client without a thread, whose waits run the driver.
pub fn config(fake: &Arc<Mutex<FakeDriver>>) -> (ClientConfig, Errors) {
    let errors: Errors = Arc::default();
    let told = Arc::clone(&errors);
    let invoked = Arc::clone(fake);
    let guard = driver(fake);
    let config = ClientConfig {
        directory: guard.directory.path().to_owned(),
        use_invoker: true,
        clock: guard.clock.clone(),
        awaiting_idle: IdleStrategy::Yield,
        driver_invoker: Some(Arc::new(move || {
            // Time passes, so that a wait which nothing ends fails its test instead of hanging it.
            let mut driver = driver(&invoked);
            driver.clock.advance_ns(MS);
            driver.work();
        })),
        error_handler: Arc::new(move |error| told.lock().unwrap().push(error.clone())),
        ..ClientConfig::default()
    };
    (config, errors)
}

pub fn connect(fake: &Arc<Mutex<FakeDriver>>) -> (Client, Errors) {
    let (config, errors) = config(fake);
    (Client::connect(config).unwrap(), errors)
}

/// A handler that nothing is for.
pub fn undelivered(_: &[u8], _: &Header<'_>) {
    panic!("delivered");
}

/// Services the client until there is nothing left to do; an ended client has nothing left.
pub fn service_until_idle(client: &Client) {
    while client.invoke().is_ok_and(|work_count| work_count > 0) {}
}
