//! The public face of a client.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use headrace_buffers::counters::{CountersReader, system_counter, type_ids};
use headrace_protocol::command::Command;

use crate::blocking::Answers;
use crate::config::ClientConfig;
use crate::connect::connect;
use crate::core::Core;
use crate::counter::{Counter, StaticCounter, check_counter};
use crate::error::ClientError;
use crate::exclusive::ExclusivePublication;
use crate::handlers::{CloseHandler, CounterHandler, SubscriptionHandlers};
use crate::lock::lock;
use crate::publication::Publication;
use crate::requests::{Kind, Outcome};
use crate::subscription::{Subscription, SubscriptionShared};

/// No correlation id: closing has no reply.
const NO_CORRELATION_ID: i64 = -1;

/// Control protocol version from which a driver hands out session ids.
const SESSION_ID_PROTOCOL_VERSION: i64 = 1 << 16;

/// How a session id is found that no publication of a stream uses.
pub enum SessionIdRequest {
    /// The driver was asked, with a request of this id.
    Asked(i64),
    /// The driver cannot say, so that it was left to chance.
    Chosen(i32),
}

/// A connection to a media driver.
///
/// Usable from any number of threads. Blocking calls wait for the driver, at most the driver timeout. Calls from
/// inside a handler of the same client are refused. Dropping closes.
pub struct Client {
    core: Arc<Core>,
    conductor: Mutex<Option<JoinHandle<()>>>,
}

impl Client {
    /// Connects to the driver of `config.directory`, waiting for one to start until the driver timeout.
    pub fn connect(config: ClientConfig) -> Result<Self, ClientError> {
        let core = connect(config)?;
        let conductor = if core.config.use_invoker {
            None
        } else {
            Some(start_conductor(&core)?)
        };
        Ok(Self {
            core,
            conductor: Mutex::new(conductor),
        })
    }

    /// Adds a publication that any number of threads and clients may share, and waits for it.
    pub fn add_publication(&self, channel: &str, stream_id: i32) -> Result<Publication, ClientError> {
        let id = self.async_add_publication(channel, stream_id)?;
        expect(self.core.wait(id)?, as_publication)
    }

    /// Asks for a publication and returns its registration id for [`Self::find_publication`].
    pub fn async_add_publication(&self, channel: &str, stream_id: i32) -> Result<i64, ClientError> {
        let client_id = self.core.client_id;
        let kind = Kind::Publication {
            channel: channel.into(),
        };
        self.core.submit(
            "add publication",
            |_| kind,
            |correlation_id| Command::AddPublication {
                client_id,
                correlation_id,
                stream_id,
                channel: channel.into(),
            },
        )
    }

    /// The publication asked for: nothing while it is pending, then once the publication or the error.
    pub fn find_publication(&self, registration_id: i64) -> Result<Option<Publication>, ClientError> {
        self.find("find publication", registration_id, as_publication)
    }

    /// Adds a publication with a log and session of its own and a single writer, and waits for it.
    pub fn add_exclusive_publication(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<ExclusivePublication, ClientError> {
        let id = self.async_add_exclusive_publication(channel, stream_id)?;
        expect(self.core.wait(id)?, as_exclusive_publication)
    }

    /// Asks for an exclusive publication and returns its registration id for
    /// [`Self::find_exclusive_publication`].
    pub fn async_add_exclusive_publication(&self, channel: &str, stream_id: i32) -> Result<i64, ClientError> {
        let client_id = self.core.client_id;
        let kind = Kind::ExclusivePublication {
            channel: channel.into(),
        };
        self.core.submit(
            "add exclusive publication",
            |_| kind,
            |correlation_id| Command::AddExclusivePublication {
                client_id,
                correlation_id,
                stream_id,
                channel: channel.into(),
            },
        )
    }

    /// As [`Self::find_publication`].
    pub fn find_exclusive_publication(&self, id: i64) -> Result<Option<ExclusivePublication>, ClientError> {
        self.find("find exclusive publication", id, as_exclusive_publication)
    }

    /// Adds a subscription and waits for it. Its images arrive later; see [`SubscriptionHandlers`].
    pub fn add_subscription(
        &self,
        channel: &str,
        stream_id: i32,
        handlers: SubscriptionHandlers,
    ) -> Result<Subscription, ClientError> {
        let id = self.async_add_subscription(channel, stream_id, handlers)?;
        expect(self.core.wait(id)?, as_subscription)
    }

    /// Asks for a subscription and returns its registration id for [`Self::find_subscription`].
    pub fn async_add_subscription(
        &self,
        channel: &str,
        stream_id: i32,
        handlers: SubscriptionHandlers,
    ) -> Result<i64, ClientError> {
        let client_id = self.core.client_id;
        let handlers = handlers.or(&self.core.state().handlers.image);
        let kind = |id| {
            let doorbells = &self.core.doorbells;
            let shared = SubscriptionShared::new(id, channel.into(), stream_id, handlers, doorbells);
            Kind::Subscription(Arc::new(shared))
        };
        self.core.submit("add subscription", kind, |correlation_id| {
            Command::AddSubscription {
                client_id,
                correlation_id,
                stream_id,
                channel: channel.into(),
            }
        })
    }

    /// As [`Self::find_publication`].
    pub fn find_subscription(&self, registration_id: i64) -> Result<Option<Subscription>, ClientError> {
        self.find("find subscription", registration_id, as_subscription)
    }

    /// Allocates a counter that lives as long as its handle and this client, and waits for it. Types from 1000 are
    /// free for applications; the key has at most 112 bytes, the label at most 380 ASCII characters.
    pub fn add_counter(&self, type_id: i32, key: &[u8], label: &str) -> Result<Counter, ClientError> {
        let id = self.async_add_counter(type_id, key, label)?;
        expect(self.core.wait(id)?, as_counter)
    }

    /// Asks for a counter and returns its registration id for [`Self::find_counter`].
    pub fn async_add_counter(&self, type_id: i32, key: &[u8], label: &str) -> Result<i64, ClientError> {
        check_counter(key, label)?;
        let client_id = self.core.client_id;
        self.core.submit(
            "add counter",
            |_| Kind::Counter,
            |correlation_id| Command::AddCounter {
                client_id,
                correlation_id,
                type_id,
                key,
                label: label.into(),
            },
        )
    }

    /// As [`Self::find_publication`].
    pub fn find_counter(&self, registration_id: i64) -> Result<Option<Counter>, ClientError> {
        self.find("find counter", registration_id, as_counter)
    }

    /// Allocates a counter that lives as long as the driver, or finds the one with the same type and
    /// registration id, and waits for it.
    pub fn add_static_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<StaticCounter, ClientError> {
        let id = self.async_add_static_counter(type_id, key, label, registration_id)?;
        expect(self.core.wait(id)?, as_static_counter)
    }

    /// Asks for a static counter and returns the id for [`Self::find_static_counter`].
    pub fn async_add_static_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<i64, ClientError> {
        check_counter(key, label)?;
        let client_id = self.core.client_id;
        let kind = Kind::StaticCounter { registration_id };
        self.core.submit(
            "add static counter",
            |_| kind,
            |correlation_id| Command::AddStaticCounter {
                client_id,
                correlation_id,
                registration_id,
                type_id,
                key,
                label: label.into(),
            },
        )
    }

    /// As [`Self::find_publication`], by the id of the request.
    pub fn find_static_counter(&self, correlation_id: i64) -> Result<Option<StaticCounter>, ClientError> {
        self.find("find static counter", correlation_id, as_static_counter)
    }

    /// A session id that no publication of the stream uses. Drivers that cannot say leave it to chance.
    pub fn next_available_session_id(&self, stream_id: i32) -> Result<i32, ClientError> {
        match self.async_next_available_session_id(stream_id)? {
            SessionIdRequest::Asked(id) => expect(self.core.wait(id)?, as_session_id),
            SessionIdRequest::Chosen(session_id) => Ok(session_id),
        }
    }

    /// As [`Self::next_available_session_id`] without waiting; what the driver is asked for comes with
    /// [`Self::find_session_id`].
    pub fn async_next_available_session_id(&self, stream_id: i32) -> Result<SessionIdRequest, ClientError> {
        self.core.refuse_reentry("next available session id")?;
        if self.control_protocol_version() < SESSION_ID_PROTOCOL_VERSION {
            self.core.state().check_open()?;
            return Ok(SessionIdRequest::Chosen(lock(&self.core.random).i32(..)));
        }
        let client_id = self.core.client_id;
        let id = self.core.submit(
            "next available session id",
            |_| Kind::SessionId,
            |correlation_id| Command::NextAvailableSessionId {
                client_id,
                correlation_id,
                stream_id,
            },
        )?;
        Ok(SessionIdRequest::Asked(id))
    }

    /// As [`Self::find_publication`], by the id of the request.
    pub fn find_session_id(&self, correlation_id: i64) -> Result<Option<i32>, ClientError> {
        self.find("find session id", correlation_id, as_session_id)
    }

    fn control_protocol_version(&self) -> i64 {
        let id = system_counter::CONTROL_PROTOCOL_VERSION;
        match self.core.counters().record(id) {
            Some(record)
                if record.type_id == type_ids::SYSTEM_COUNTER && record.registration_id == i64::from(id) =>
            {
                record.value
            }
            _ => 0,
        }
    }

    /// True, once, when an asynchronous request without a result of its own was done, as adding a destination.
    /// False while it is pending, and when the id is not known.
    pub fn find_operation(&self, correlation_id: i64) -> Result<bool, ClientError> {
        let done = self.find("find operation", correlation_id, |outcome| {
            matches!(outcome, Outcome::Done).then_some(())
        })?;
        Ok(done.is_some())
    }

    /// True while an asynchronous request has not been answered.
    pub fn is_pending(&self, correlation_id: i64) -> bool {
        let state = self.core.state();
        state
            .requests
            .get(&correlation_id)
            .is_some_and(|request| request.is_awaiting())
    }

    /// What a loop around [`Self::drive`] can wait for: the driver's answers.
    pub fn answers(&self) -> Answers<'_> {
        Answers(&self.core)
    }

    /// What a thread that waits for anything does between two looks, where it runs the driver itself: a turn of the
    /// driver and, unless another thread is in the middle of one, of the client.
    pub fn step(&self) -> usize {
        self.core.step()
    }

    /// Does what a blocking call does between two looks for its reply: reads events, unless another thread is at
    /// it, and lets the request fail when its time is over. For loops that wait in their own way.
    pub fn drive(&self, correlation_id: i64) -> usize {
        let work_count = self.step();
        self.core.expire_requests(Some(correlation_id));
        work_count
    }

    /// Gives up an asynchronous request. What it asked for is removed at the driver and, if it has arrived
    /// already, closed. False when the id is not known, as after the result was taken.
    pub fn cancel(&self, correlation_id: i64) -> Result<bool, ClientError> {
        self.core.cancel(correlation_id)
    }

    fn find<T>(
        &self,
        operation: &'static str,
        id: i64,
        convert: impl FnOnce(Outcome) -> Option<T>,
    ) -> Result<Option<T>, ClientError> {
        self.core.refuse_reentry(operation)?;
        self.core
            .take(id)?
            .map(|outcome| expect(outcome, convert))
            .transpose()
    }

    /// All counters of the driver and its clients.
    pub fn counters_reader(&self) -> &CountersReader {
        self.core.counters()
    }

    /// A number that is unique while the driver runs.
    pub fn next_correlation_id(&self) -> Result<i64, ClientError> {
        self.core.state().check_open()?;
        Ok(self.core.next_correlation_id())
    }

    /// This client's id.
    pub fn client_id(&self) -> i64 {
        self.core.client_id
    }

    /// The settings in use. The handlers are no longer among them: the client lets go of them when it has ended.
    pub fn config(&self) -> &ClientConfig {
        &self.core.config
    }

    /// Registers a handler for counters that come, and returns an id to remove it by.
    pub fn add_available_counter_handler(&self, handler: CounterHandler) -> Result<i64, ClientError> {
        self.core.refuse_reentry("add available counter handler")?;
        let mut state = self.core.state();
        state.check_open()?;
        let id = self.core.next_correlation_id();
        state.handlers.available_counter.add(id, handler);
        Ok(id)
    }

    /// Removes a handler. False when the id is not known.
    pub fn remove_available_counter_handler(&self, id: i64) -> bool {
        self.core
            .remove_handler(|handlers| handlers.available_counter.remove(id))
    }

    /// Registers a handler for counters that go, and returns an id to remove it by.
    pub fn add_unavailable_counter_handler(&self, handler: CounterHandler) -> Result<i64, ClientError> {
        self.core.refuse_reentry("add unavailable counter handler")?;
        let mut state = self.core.state();
        state.check_open()?;
        let id = self.core.next_correlation_id();
        state.handlers.unavailable_counter.add(id, handler);
        Ok(id)
    }

    /// Removes a handler. False when the id is not known.
    pub fn remove_unavailable_counter_handler(&self, id: i64) -> bool {
        self.core
            .remove_handler(|handlers| handlers.unavailable_counter.remove(id))
    }

    /// Registers a handler for the end of this client, whatever brings it about, and returns an id to remove it by.
    pub fn add_close_handler(&self, handler: CloseHandler) -> Result<i64, ClientError> {
        self.core.refuse_reentry("add close handler")?;
        let mut state = self.core.state();
        state.check_open()?;
        let id = self.core.next_correlation_id();
        state.handlers.close.add(id, handler);
        Ok(id)
    }

    /// Removes a handler. False when the id is not known.
    pub fn remove_close_handler(&self, id: i64) -> bool {
        self.core.remove_handler(|handlers| handlers.close.remove(id))
    }

    /// One turn of the conductor, for clients without a thread of their own. Returns how much was done. An error
    /// says that the client has ended.
    pub fn invoke(&self) -> Result<usize, ClientError> {
        self.core.refuse_reentry("invoke")?;
        if !self.core.config.use_invoker {
            let rule = "must be true to invoke the client's conductor: it has a thread of its own";
            return Err(ClientError::argument("use_invoker", false, rule));
        }
        let work_count = self.core.turn();
        self.core.state().check_open()?;
        Ok(work_count)
    }

    /// True once the client has ended: closed by this program, or because the driver is gone.
    pub fn is_closed(&self) -> bool {
        self.core.has_ended()
    }

    /// Why the client ended, once it has.
    pub fn ended_by(&self) -> Option<ClientError> {
        self.core.state().ended.clone()
    }

    /// Closes everything this client has, runs the handlers that follow from it, tells the driver and stops the
    /// conductor. Closing again does nothing. Refused from inside a handler.
    pub fn close(&self) -> Result<(), ClientError> {
        self.core.refuse_reentry("close client")?;
        self.end();
        // Two threads may close at once; neither returns before the conductor has stopped.
        if let Some(thread) = lock(&self.conductor).take() {
            // A panic of the conductor was reported where it happened.
            let _ = thread.join();
        }
        Ok(())
    }

    /// Ends this client as a kill would end its process: no handler runs, and the driver is not told. It learns of it as
    /// of any process that has ended. For tests of that.
    pub fn crash(&self) -> Result<(), ClientError> {
        self.core.refuse_reentry("crash client")?;
        self.core.abandon();
        self.close()
    }

    fn end(&self) {
        let core = &self.core;
        let error_handler = Arc::clone(&core.state().handlers.error);
        if core.end(ClientError::Closed { what: "client" }, false) {
            core.run_callbacks_now();
            let linger_ns = u64::try_from(core.config.close_linger_ns).unwrap_or(0);
            if linger_ns > 0 {
                core.config.clock.sleep(Duration::from_nanos(linger_ns));
            }
            let command = Command::ClientClose {
                client_id: core.client_id,
                correlation_id: NO_CORRELATION_ID,
            };
            if let Err(error) = core.send("close client", &command) {
                error_handler(&error);
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.close().is_err() {
            // Dropped by one of its own handlers: the conductor ends by itself after that one returned.
            self.end();
        }
    }
}

fn start_conductor(core: &Arc<Core>) -> Result<JoinHandle<()>, ClientError> {
    let conductor = Arc::clone(core);
    let idle_sleep = Duration::from_nanos(core.config.idle_sleep_ns.unsigned_abs());
    let thread = std::thread::Builder::new()
        .name("client-conductor".to_owned())
        .spawn(move || {
            while !conductor.has_ended() {
                if conductor.turn() == 0 {
                    std::thread::park_timeout(idle_sleep);
                }
            }
            conductor.run_callbacks_now();
        })
        .map_err(|error| ClientError::DriverFiles {
            reason: format!("cannot start the client conductor's thread: {error}"),
        })?;
    // Set once: each core gets at most one conductor thread.
    let _ = core.conductor_thread.set(thread.thread().clone());
    Ok(thread)
}

/// The reply to a request is of the request's kind: it was checked when it arrived, but ids can be mixed up by the
/// program.
fn expect<T>(outcome: Outcome, convert: impl FnOnce(Outcome) -> Option<T>) -> Result<T, ClientError> {
    convert(outcome).ok_or_else(|| {
        ClientError::argument(
            "correlation_id",
            "of another request",
            "must be one that this call is for",
        )
    })
}

fn as_publication(outcome: Outcome) -> Option<Publication> {
    match outcome {
        Outcome::Publication(publication) => Some(publication),
        _ => None,
    }
}

fn as_exclusive_publication(outcome: Outcome) -> Option<ExclusivePublication> {
    match outcome {
        Outcome::ExclusivePublication(publication) => Some(publication),
        _ => None,
    }
}

fn as_subscription(outcome: Outcome) -> Option<Subscription> {
    match outcome {
        Outcome::Subscription(subscription) => Some(subscription),
        _ => None,
    }
}

fn as_counter(outcome: Outcome) -> Option<Counter> {
    match outcome {
        Outcome::Counter(counter) => Some(counter),
        _ => None,
    }
}

fn as_session_id(outcome: Outcome) -> Option<i32> {
    match outcome {
        Outcome::SessionId(session_id) => Some(session_id),
        _ => None,
    }
}

fn as_static_counter(outcome: Outcome) -> Option<StaticCounter> {
    match outcome {
        Outcome::StaticCounter(counter) => Some(counter),
        _ => None,
    }
}
