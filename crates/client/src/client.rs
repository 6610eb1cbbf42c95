//! The public API of a client.

mod requests;

use std::sync::{Arc, Mutex};

use headrace_buffers::counters::CountersReader;

use crate::conductor::{ClientConductor, ConductorThread, Outcome, Registry, Replies, Services};
use crate::config::ClientConfig;
use crate::connect::connect;
use crate::counter::{Counter, StaticCounter};
use crate::error::ClientError;
use crate::handlers::{Handler, SubscriptionHandlers};
use crate::publication::ExclusivePublication;
use crate::publication::Publication;
use crate::subscription::Subscription;

pub use requests::Requests;

/// The source of a session id that no publication of a stream uses.
pub enum SessionIdRequest {
    /// The driver was asked, with a request of this id.
    Asked(i64),
    /// The driver cannot choose one, so the client chose one at random.
    Chosen(i32),
}

/// A connection to a media driver.
///
/// Usable from any number of threads. Blocking calls wait for the driver, at most the driver timeout. Calls from
/// inside a handler of the same client are refused. Dropping closes.
pub struct Client {
    conductor: Arc<ClientConductor>,
    thread: ConductorThread,
    // Of session ids, where the driver leaves them to chance.
    random: Mutex<fastrand::Rng>,
}

impl Client {
    /// Connects to the driver of `config.directory`, waiting for one to start until the driver timeout.
    pub fn connect(config: ClientConfig) -> Result<Self, ClientError> {
        let random = Mutex::new(config.random.clone());
        let conductor = connect(config)?;
        let thread = if conductor.registry.services.config.use_invoker {
            ConductorThread::none()
        } else {
            ConductorThread::start(&conductor)?
        };
        Ok(Self {
            conductor,
            thread,
            random,
        })
    }

    /// Adds a publication that any number of threads and clients may share, and waits for it.
    pub fn add_publication(&self, channel: &str, stream_id: i32) -> Result<Publication, ClientError> {
        let id = self.requests().add_publication(channel, stream_id)?;
        expect(self.conductor.wait(id)?, as_publication)
    }

    /// Adds a publication that shares neither log nor session and has a single writer, and waits for it.
    pub fn add_exclusive_publication(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<ExclusivePublication, ClientError> {
        let id = self.requests().add_exclusive_publication(channel, stream_id)?;
        expect(self.conductor.wait(id)?, as_exclusive_publication)
    }

    /// Adds a subscription and waits for it. Its images arrive later; see [`SubscriptionHandlers`].
    pub fn add_subscription(
        &self,
        channel: &str,
        stream_id: i32,
        handlers: SubscriptionHandlers,
    ) -> Result<Subscription, ClientError> {
        let id = self.requests().add_subscription(channel, stream_id, handlers)?;
        expect(self.conductor.wait(id)?, as_subscription)
    }

    /// Allocates a counter that lives as long as its handle and this client, and waits for it. Types from 1000 are
    /// free for applications; the key has at most 112 bytes, the label at most 380 ASCII characters.
    pub fn add_counter(&self, type_id: i32, key: &[u8], label: &str) -> Result<Counter, ClientError> {
        let id = self.requests().add_counter(type_id, key, label)?;
        expect(self.conductor.wait(id)?, as_counter)
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
        let id = self
            .requests()
            .add_static_counter(type_id, key, label, registration_id)?;
        expect(self.conductor.wait(id)?, as_static_counter)
    }

    /// Returns a session id that no publication of the stream uses; a random one if the driver cannot choose one.
    pub fn next_available_session_id(&self, stream_id: i32) -> Result<i32, ClientError> {
        match self.requests().next_available_session_id(stream_id)? {
            SessionIdRequest::Asked(id) => expect(self.conductor.wait(id)?, as_session_id),
            SessionIdRequest::Chosen(session_id) => Ok(session_id),
        }
    }

    /// Requests whose caller does not wait for the driver.
    pub fn requests(&self) -> Requests<'_> {
        Requests(self)
    }

    /// The driver's replies, for which a loop around [`Requests::drive`] can wait.
    pub fn replies(&self) -> Replies<'_> {
        Replies(self.services())
    }

    /// Does the work of a waiting thread between two looks, if the thread runs the driver itself: a turn of the driver
    /// and, unless another thread is in the middle of one, of the client.
    pub fn step(&self) -> usize {
        self.conductor.step()
    }

    /// All counters of the driver and its clients.
    pub fn counters_reader(&self) -> &CountersReader {
        &self.services().counters
    }

    /// Returns a number that is unique on the driver.
    pub fn next_correlation_id(&self) -> Result<i64, ClientError> {
        drop(self.registry().open()?);
        Ok(self.services().driver.next_correlation_id())
    }

    /// This client's id.
    pub fn client_id(&self) -> i64 {
        self.services().driver.client_id()
    }

    /// The settings in use, without the handlers, which the client drops when it ends.
    pub fn config(&self) -> &ClientConfig {
        &self.services().config
    }

    /// Registers a handler, and returns an id to remove it by.
    pub fn add_handler(&self, handler: Handler) -> Result<i64, ClientError> {
        self.registry().add_handler(handler)
    }

    /// Removes a handler. False when the id is not known.
    pub fn remove_handler(&self, id: i64) -> bool {
        self.registry().remove_handler(id)
    }

    /// Runs one turn of the conductor, for clients without a conductor thread. Returns the work count. An error means
    /// that the client has ended.
    pub fn invoke(&self) -> Result<usize, ClientError> {
        self.registry().handler_thread.refuse_reentry("invoke")?;
        if !self.services().config.use_invoker {
            let rule = "must be true to invoke the client's conductor: it has a thread of its own";
            return Err(ClientError::argument("use_invoker", false, rule));
        }
        let work_count = self.conductor.turn();
        drop(self.registry().open()?);
        Ok(work_count)
    }

    /// Tells the driver that this client lives while the thread that invokes its conductor takes no turn. Any thread
    /// may call it; it reads no events and runs no handlers. A client that is already overdue stays lost.
    pub fn keep_alive(&self) {
        self.conductor.keep_alive();
    }

    /// True once the client has ended: closed by this program, or because the driver is gone.
    pub fn is_closed(&self) -> bool {
        self.registry().has_ended()
    }

    /// Why the client ended, once it has.
    pub fn ended_by(&self) -> Option<ClientError> {
        self.registry().ended_by()
    }

    /// Closes everything of this client, runs the handlers for that, informs the driver and stops the conductor.
    /// Closing again does nothing. Refused from inside a handler.
    pub fn close(&self) -> Result<(), ClientError> {
        self.registry().handler_thread.refuse_reentry("close client")?;
        self.conductor.close();
        self.thread.join();
        Ok(())
    }

    /// Ends this client as a kill would end its process, for tests: no handler runs, and the driver is not informed. It
    /// notices as it does when any process ends.
    pub fn crash(&self) -> Result<(), ClientError> {
        self.registry().handler_thread.refuse_reentry("crash client")?;
        self.conductor.abandon();
        self.close()
    }

    fn registry(&self) -> &Registry {
        &self.conductor.registry
    }

    fn services(&self) -> &Services {
        &self.conductor.registry.services
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.close().is_err() {
            // Dropped by one of its own handlers: the conductor ends by itself after that one returned.
            self.conductor.close();
        }
    }
}

/// Converts the reply to a request. Its kind was checked when it arrived, but the program may have mixed up ids.
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
