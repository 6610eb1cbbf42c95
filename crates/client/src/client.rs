//! The public API of a client.

use std::sync::{Arc, Mutex};

use headrace_buffers::counters::CountersReader;
use headrace_protocol::command::Command;

use crate::conductor::{ClientConductor, ConductorThread, Kind, Outcome, Registry, Replies, Services};
use crate::config::ClientConfig;
use crate::connect::connect;
use crate::counter::{Counter, StaticCounter, check_counter};
use crate::error::ClientError;
use crate::handlers::{CloseHandler, CounterHandler, Handlers, SubscriptionHandlers};
use crate::lock::lock;
use crate::publication::ExclusivePublication;
use crate::publication::Publication;
use crate::subscription::{Start, Subscription, SubscriptionShared};

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
        let id = self.async_add_publication(channel, stream_id)?;
        expect(self.conductor.wait(id)?, as_publication)
    }

    /// Asks for a publication and returns its registration id for [`Self::find_publication`].
    pub fn async_add_publication(&self, channel: &str, stream_id: i32) -> Result<i64, ClientError> {
        let kind = Kind::Publication {
            channel: channel.into(),
        };
        self.registry().submit(
            "add publication",
            |_| kind,
            |client_id, correlation_id| Command::AddPublication {
                client_id,
                correlation_id,
                stream_id,
                channel: channel.into(),
            },
        )
    }

    /// Takes the requested publication: `None` while the request is pending, then, once, the publication or the error.
    pub fn find_publication(&self, registration_id: i64) -> Result<Option<Publication>, ClientError> {
        self.find("find publication", registration_id, as_publication)
    }

    /// Adds a publication that shares neither log nor session and has a single writer, and waits for it.
    pub fn add_exclusive_publication(
        &self,
        channel: &str,
        stream_id: i32,
    ) -> Result<ExclusivePublication, ClientError> {
        let id = self.async_add_exclusive_publication(channel, stream_id)?;
        expect(self.conductor.wait(id)?, as_exclusive_publication)
    }

    /// Asks for an exclusive publication and returns its registration id for
    /// [`Self::find_exclusive_publication`].
    pub fn async_add_exclusive_publication(&self, channel: &str, stream_id: i32) -> Result<i64, ClientError> {
        let kind = Kind::ExclusivePublication {
            channel: channel.into(),
        };
        self.registry().submit(
            "add exclusive publication",
            |_| kind,
            |client_id, correlation_id| Command::AddExclusivePublication {
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
        expect(self.conductor.wait(id)?, as_subscription)
    }

    /// Asks for a subscription and returns its registration id for [`Self::find_subscription`].
    pub fn async_add_subscription(
        &self,
        channel: &str,
        stream_id: i32,
        handlers: SubscriptionHandlers,
    ) -> Result<i64, ClientError> {
        self.async_add_subscription_from(Start::Joined, channel, stream_id, handlers)
    }

    /// As [`Self::async_add_subscription`], but `start` says where it begins to read.
    pub fn async_add_subscription_from(
        &self,
        start: Start,
        channel: &str,
        stream_id: i32,
        handlers: SubscriptionHandlers,
    ) -> Result<i64, ClientError> {
        let handlers = handlers.or(&self.registry().rooms().callbacks.handlers.image);
        let kind = |id| {
            let doorbells = &self.services().doorbells;
            let shared = SubscriptionShared::new(id, channel.into(), stream_id, start, handlers, doorbells);
            Kind::Subscription(Arc::new(shared))
        };
        self.registry()
            .submit("add subscription", kind, |client_id, correlation_id| {
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
        expect(self.conductor.wait(id)?, as_counter)
    }

    /// Asks for a counter and returns its registration id for [`Self::find_counter`].
    pub fn async_add_counter(&self, type_id: i32, key: &[u8], label: &str) -> Result<i64, ClientError> {
        check_counter(key, label)?;
        self.registry().submit(
            "add counter",
            |_| Kind::Counter,
            |client_id, correlation_id| Command::AddCounter {
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
        expect(self.conductor.wait(id)?, as_static_counter)
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
        let kind = Kind::StaticCounter { registration_id };
        self.registry().submit(
            "add static counter",
            |_| kind,
            |client_id, correlation_id| Command::AddStaticCounter {
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

    /// Returns a session id that no publication of the stream uses; a random one if the driver cannot choose one.
    pub fn next_available_session_id(&self, stream_id: i32) -> Result<i32, ClientError> {
        match self.async_next_available_session_id(stream_id)? {
            SessionIdRequest::Asked(id) => expect(self.conductor.wait(id)?, as_session_id),
            SessionIdRequest::Chosen(session_id) => Ok(session_id),
        }
    }

    /// As [`Self::next_available_session_id`] without waiting; take the result with [`Self::find_session_id`].
    pub fn async_next_available_session_id(&self, stream_id: i32) -> Result<SessionIdRequest, ClientError> {
        let registry = self.registry();
        registry
            .handler_thread
            .refuse_reentry("next available session id")?;
        if !self.services().context().driver_knows_session_ids() {
            drop(registry.open()?);
            return Ok(SessionIdRequest::Chosen(lock(&self.random).i32(..)));
        }
        let id = self.registry().submit(
            "next available session id",
            |_| Kind::SessionId,
            |client_id, correlation_id| Command::NextAvailableSessionId {
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

    /// True, once, when an asynchronous request without a result, such as adding a destination, is done. False while it
    /// is pending, and when the id is not known.
    pub fn find_operation(&self, correlation_id: i64) -> Result<bool, ClientError> {
        let done = self.find("find operation", correlation_id, |outcome| {
            matches!(outcome, Outcome::Done).then_some(())
        })?;
        Ok(done.is_some())
    }

    /// True while an asynchronous request has not been answered.
    pub fn is_pending(&self, correlation_id: i64) -> bool {
        self.registry().rooms().requests.awaited(correlation_id).is_some()
    }

    /// The driver's replies, for which a loop around [`Self::drive`] can wait.
    pub fn replies(&self) -> Replies<'_> {
        Replies(self.services())
    }

    /// Does the work of a waiting thread between two looks, if the thread runs the driver itself: a turn of the driver
    /// and, unless another thread is in the middle of one, of the client.
    pub fn step(&self) -> usize {
        self.conductor.step()
    }

    /// Does the work of a blocking call between two looks for its reply: reads events, unless another thread does, and
    /// fails the request when its time is over. For programs that wait in their own loop.
    pub fn drive(&self, correlation_id: i64) -> usize {
        let work_count = self.step();
        self.registry().expire_requests(Some(correlation_id));
        work_count
    }

    /// Cancels an asynchronous request. Its result is removed at the driver and, if it has arrived already, closed.
    /// False when the id is not known, for example after the result was taken.
    pub fn cancel(&self, correlation_id: i64) -> Result<bool, ClientError> {
        self.registry().cancel(correlation_id)
    }

    fn find<T>(
        &self,
        operation: &'static str,
        id: i64,
        convert: impl FnOnce(Outcome) -> Option<T>,
    ) -> Result<Option<T>, ClientError> {
        self.registry().handler_thread.refuse_reentry(operation)?;
        self.registry()
            .take(id)?
            .map(|outcome| expect(outcome, convert))
            .transpose()
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

    /// Registers a handler for new counters, and returns an id to remove it by.
    pub fn add_available_counter_handler(&self, handler: CounterHandler) -> Result<i64, ClientError> {
        let add = |handlers: &mut Handlers, id| handlers.available_counter.add(id, handler);
        self.registry().add_handler("add available counter handler", add)
    }

    /// Removes a handler. False when the id is not known.
    pub fn remove_available_counter_handler(&self, id: i64) -> bool {
        self.registry()
            .remove_handler(|handlers| handlers.available_counter.remove(id))
    }

    /// Registers a handler for freed counters, and returns an id to remove it by.
    pub fn add_unavailable_counter_handler(&self, handler: CounterHandler) -> Result<i64, ClientError> {
        let add = |handlers: &mut Handlers, id| handlers.unavailable_counter.add(id, handler);
        self.registry()
            .add_handler("add unavailable counter handler", add)
    }

    /// Removes a handler. False when the id is not known.
    pub fn remove_unavailable_counter_handler(&self, id: i64) -> bool {
        self.registry()
            .remove_handler(|handlers| handlers.unavailable_counter.remove(id))
    }

    /// Registers a handler for the end of this client, for any reason, and returns an id to remove it by.
    pub fn add_close_handler(&self, handler: CloseHandler) -> Result<i64, ClientError> {
        let add = |handlers: &mut Handlers, id| handlers.close.add(id, handler);
        self.registry().add_handler("add close handler", add)
    }

    /// Removes a handler. False when the id is not known.
    pub fn remove_close_handler(&self, id: i64) -> bool {
        self.registry()
            .remove_handler(|handlers| handlers.close.remove(id))
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
