//! A connection to a media driver. What users see of it is `headrace.client.Client`, which wraps this class.

use std::path::PathBuf;
use std::sync::Arc;

use headrace_buffers::counters::{CounterRecord, CountersReader};
use headrace_client::{
    self as client, ClientConfig, ClientError, SessionIdRequest, Start, SubscriptionHandlers,
};
use headrace_sys::idle::IdleStrategy;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::boundary::build_info::COMMIT;
use crate::boundary::client_ref::ClientRef;
use crate::boundary::fork_guard::ForkGuard;
use crate::boundary::interpreter_exit::detach;
use crate::boundary::{arguments, errors};
use crate::client::counter::Counter;
use crate::client::pending_request::{Kind, Pending};
use crate::client::{handlers, program_clock};
use crate::driver::media_driver::MediaDriver;
use crate::driver::node::Node;
use crate::publishing::any_publication::AnyPublication;
use crate::publishing::exclusive_publication::ExclusivePublication;
use crate::publishing::publication::Publication;
use crate::receiving::subscription::Subscription;
use crate::waiting::doorbells::NoDoorbell;
use crate::waiting::request::{ask, await_answer};
use crate::waiting::waiter::Waiter;

/// A driver in this process.
#[derive(FromPyObject)]
enum LocalDriver<'py> {
    Real(Bound<'py, MediaDriver>),
    Simulated(Bound<'py, Node>),
}

/// What `counters` gives for one counter: id, type id, label, value, registration id, owner id, reference id
/// and key.
type RecordValues<'py> = (i32, i32, String, i64, i64, i64, i64, Bound<'py, PyBytes>);

/// A connection to a media driver. Wrapped by ``headrace.Client``, which documents it.
#[pyclass(frozen, weakref, module = "headrace._core")]
pub(crate) struct Client {
    inner: ForkGuard<ClientRef>,
}

impl Client {
    fn open(&self) -> PyResult<&ClientRef> {
        self.inner.get()
    }

    pub(crate) fn inner(&self) -> PyResult<&client::Client> {
        self.open().map(|kept| &**kept)
    }

    /// Waits for the outcome of a request.
    fn wait<T: Send>(
        &self,
        py: Python<'_>,
        request: impl FnOnce(&client::Client) -> Result<i64, ClientError> + Send,
        find: impl Fn(&client::Client, i64) -> Result<Option<T>, ClientError> + Send,
    ) -> PyResult<T> {
        ask(py, self.open()?, request, find)
    }

    /// Asks the driver without waiting for what it says.
    fn request(
        &self,
        py: Python<'_>,
        kind: Kind,
        request: impl FnOnce(&client::Client) -> Result<i64, ClientError> + Send,
    ) -> PyResult<Pending> {
        let kept = self.open()?;
        let inner: &client::Client = kept;
        let id = detach(py, || request(inner)).map_err(errors::client)?;
        Ok(Pending::new(kept.clone(), kind, id))
    }
}

#[pymethods]
impl Client {
    #[staticmethod]
    #[pyo3(signature = (directory, *, settings, handlers, use_invoker, driver, clock))]
    fn connect(
        py: Python<'_>,
        directory: PathBuf,
        settings: Vec<(String, String)>,
        handlers: &Bound<'_, PyDict>,
        use_invoker: bool,
        driver: Option<LocalDriver<'_>>,
        clock: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let mut config = ClientConfig {
            directory,
            use_invoker,
            commit: COMMIT,
            ..ClientConfig::default()
        };
        for (name, text) in &settings {
            config.set(name, text).map_err(errors::client)?;
        }
        for (name, handler) in handlers {
            if handler.is_none() {
                continue;
            }
            let name = name.extract::<String>()?;
            let handler = arguments::kept(&handler, &name)?;
            match name.as_str() {
                "on_error" => config.error_handler = handlers::error(handler),
                "on_no_driver" => config.no_driver_handler = Some(handlers::close(handler)),
                "on_close" => config.close_handler = Some(handlers::close(handler)),
                "on_available_image" => config.available_image_handler = Some(handlers::image(handler)),
                "on_unavailable_image" => config.unavailable_image_handler = Some(handlers::image(handler)),
                "on_lost_image" => config.lost_image_handler = Some(handlers::image(handler)),
                "on_available_counter" => config.available_counter_handler = Some(handlers::counter(handler)),
                "on_unavailable_counter" => {
                    config.unavailable_counter_handler = Some(handlers::counter(handler));
                }
                "on_publication_error" => {
                    config.publication_error_handler = Some(handlers::publication_error(handler));
                }
                other => return Err(errors::config(other, "handler", "is not a client handler")),
            }
        }
        let connected = match driver {
            Some(LocalDriver::Simulated(node)) => node.get().connect(py, config)?,
            Some(LocalDriver::Real(driver)) => {
                if let Some(invoker) = driver.get().invoker()? {
                    config.driver_invoker = Some(Arc::new(move || {
                        invoker.invoke();
                    }));
                }
                Arc::new(connect_on(py, config, clock)?)
            }
            None => Arc::new(connect_on(py, config, clock)?),
        };
        Ok(Self {
            inner: ForkGuard::new(ClientRef::new(connected)),
        })
    }

    #[pyo3(signature = (channel, stream_id))]
    fn add_publication(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::channel)] channel: &str,
        #[pyo3(from_py_with = arguments::stream_id)] stream_id: i32,
    ) -> PyResult<Publication> {
        let publication = self.wait(
            py,
            |client| client.requests().add_publication(channel, stream_id),
            |client, id| client.requests().find_publication(id),
        )?;
        Ok(Publication::new(
            self.open()?.clone(),
            AnyPublication::Concurrent(publication),
        ))
    }

    #[pyo3(signature = (channel, stream_id))]
    fn add_exclusive_publication(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::channel)] channel: &str,
        #[pyo3(from_py_with = arguments::stream_id)] stream_id: i32,
    ) -> PyResult<Py<ExclusivePublication>> {
        let publication = self.wait(
            py,
            |client| client.requests().add_exclusive_publication(channel, stream_id),
            |client, id| client.requests().find_exclusive_publication(id),
        )?;
        ExclusivePublication::build(py, self.open()?.clone(), publication).map(Bound::unbind)
    }

    #[pyo3(signature = (channel, stream_id, on_available_image = None, on_unavailable_image = None, starts_now = false))]
    fn add_subscription(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::channel)] channel: &str,
        #[pyo3(from_py_with = arguments::stream_id)] stream_id: i32,
        #[pyo3(from_py_with = arguments::on_available_image)] on_available_image: Option<Py<PyAny>>,
        #[pyo3(from_py_with = arguments::on_unavailable_image)] on_unavailable_image: Option<Py<PyAny>>,
        starts_now: bool,
    ) -> PyResult<Subscription> {
        let handlers = image_handlers(on_available_image, on_unavailable_image);
        let start = start_of(starts_now);
        let subscription = self.wait(
            py,
            |client| {
                client
                    .requests()
                    .add_subscription_from(start, channel, stream_id, handlers)
            },
            |client, id| client.requests().find_subscription(id),
        )?;
        Ok(Subscription::new(self.open()?.clone(), subscription))
    }

    #[pyo3(signature = (type_id, key, label))]
    fn add_counter(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::type_id)] type_id: i32,
        key: &[u8],
        #[pyo3(from_py_with = arguments::label)] label: &str,
    ) -> PyResult<Counter> {
        let counter = self.wait(
            py,
            |client| client.requests().add_counter(type_id, key, label),
            |client, id| client.requests().find_counter(id),
        )?;
        Ok(Counter::owned(self.open()?.clone(), counter))
    }

    #[pyo3(signature = (type_id, key, label, registration_id))]
    fn add_static_counter(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::type_id)] type_id: i32,
        key: &[u8],
        #[pyo3(from_py_with = arguments::label)] label: &str,
        #[pyo3(from_py_with = arguments::registration_id)] registration_id: i64,
    ) -> PyResult<Counter> {
        let counter = self.wait(
            py,
            |client| {
                client
                    .requests()
                    .add_static_counter(type_id, key, label, registration_id)
            },
            |client, id| client.requests().find_static_counter(id),
        )?;
        Ok(Counter::fixed(self.open()?.clone(), counter))
    }

    #[pyo3(signature = (channel, stream_id))]
    fn request_publication(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::channel)] channel: &str,
        #[pyo3(from_py_with = arguments::stream_id)] stream_id: i32,
    ) -> PyResult<Pending> {
        self.request(py, Kind::Publication, |client| {
            client.requests().add_publication(channel, stream_id)
        })
    }

    #[pyo3(signature = (channel, stream_id))]
    fn request_exclusive_publication(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::channel)] channel: &str,
        #[pyo3(from_py_with = arguments::stream_id)] stream_id: i32,
    ) -> PyResult<Pending> {
        self.request(py, Kind::ExclusivePublication, |client| {
            client.requests().add_exclusive_publication(channel, stream_id)
        })
    }

    #[pyo3(signature = (channel, stream_id, on_available_image = None, on_unavailable_image = None, starts_now = false))]
    fn request_subscription(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::channel)] channel: &str,
        #[pyo3(from_py_with = arguments::stream_id)] stream_id: i32,
        #[pyo3(from_py_with = arguments::on_available_image)] on_available_image: Option<Py<PyAny>>,
        #[pyo3(from_py_with = arguments::on_unavailable_image)] on_unavailable_image: Option<Py<PyAny>>,
        starts_now: bool,
    ) -> PyResult<Pending> {
        let handlers = image_handlers(on_available_image, on_unavailable_image);
        let start = start_of(starts_now);
        self.request(py, Kind::Subscription, |client| {
            client
                .requests()
                .add_subscription_from(start, channel, stream_id, handlers)
        })
    }

    #[pyo3(signature = (type_id, key, label))]
    fn request_counter(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::type_id)] type_id: i32,
        key: &[u8],
        #[pyo3(from_py_with = arguments::label)] label: &str,
    ) -> PyResult<Pending> {
        self.request(py, Kind::Counter, |client| {
            client.requests().add_counter(type_id, key, label)
        })
    }

    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Vec<RecordValues<'py>>> {
        let reader = self.open()?.counters_reader();
        let mut records = Vec::new();
        detach(py, || reader.for_each(|record| records.push(record)));
        Ok(records.into_iter().map(|record| values_of(py, record)).collect())
    }

    #[pyo3(signature = (counter_id, /))]
    fn counter_record<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::counter_id)] counter_id: i32,
    ) -> PyResult<Option<RecordValues<'py>>> {
        let record = self.open()?.counters_reader().record(counter_id);
        Ok(record.map(|record| values_of(py, record)))
    }

    #[pyo3(signature = (counter_id, /))]
    fn counter_value(
        &self,
        #[pyo3(from_py_with = arguments::counter_id)] counter_id: i32,
    ) -> PyResult<Option<i64>> {
        Ok(self.open()?.counters_reader().value(counter_id))
    }

    #[pyo3(signature = (counter_id, expected, value, registration_id))]
    fn compare_and_set_counter(
        &self,
        #[pyo3(from_py_with = arguments::counter_id)] counter_id: i32,
        #[pyo3(from_py_with = arguments::expected)] expected: i64,
        #[pyo3(from_py_with = arguments::value)] value: i64,
        #[pyo3(from_py_with = arguments::registration_id)] registration_id: i64,
    ) -> PyResult<Option<bool>> {
        let reader: &CountersReader = self.open()?.counters_reader();
        // A freed counter rests before its place is given to another one, which is long enough for what follows.
        let record = reader
            .record(counter_id)
            .filter(|record| record.registration_id == registration_id);
        let counter = record.and_then(|record| reader.counter(record.id));
        Ok(counter.map(|counter| counter.compare_and_set(expected, value)))
    }

    #[pyo3(signature = (type_id, registration_id))]
    fn find_counter(
        &self,
        #[pyo3(from_py_with = arguments::type_id)] type_id: i32,
        #[pyo3(from_py_with = arguments::registration_id)] registration_id: i64,
    ) -> PyResult<Option<i32>> {
        let reader: &CountersReader = self.open()?.counters_reader();
        Ok(reader.find(type_id, registration_id))
    }

    fn next_correlation_id(&self) -> PyResult<i64> {
        self.open()?.next_correlation_id().map_err(errors::client)
    }

    #[pyo3(signature = (stream_id, /))]
    fn next_available_session_id(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::stream_id)] stream_id: i32,
    ) -> PyResult<i32> {
        let kept = self.open()?;
        match detach(py, || kept.requests().next_available_session_id(stream_id)).map_err(errors::client)? {
            SessionIdRequest::Asked(id) => {
                await_answer(py, kept, || id, |client| client.requests().find_session_id(id))
            }
            SessionIdRequest::Chosen(session_id) => Ok(session_id),
        }
    }

    #[getter]
    fn client_id(&self) -> PyResult<i64> {
        Ok(self.open()?.client_id())
    }

    #[getter]
    fn is_closed(&self) -> PyResult<bool> {
        Ok(self.open()?.is_closed())
    }

    fn invoke(&self, py: Python<'_>) -> PyResult<usize> {
        let client = self.open()?;
        detach(py, || client.invoke()).map_err(errors::client)
    }

    fn keep_alive(&self, py: Python<'_>) -> PyResult<()> {
        let client = self.open()?;
        detach(py, || client.keep_alive());
        Ok(())
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.inner.get_if_own() {
            None => Ok(()),
            Some(client) => detach(py, || client.close()).map_err(errors::client),
        }
    }
}

fn start_of(starts_now: bool) -> Start {
    if starts_now { Start::Now } else { Start::Joined }
}

fn image_handlers(available: Option<Py<PyAny>>, unavailable: Option<Py<PyAny>>) -> SubscriptionHandlers {
    SubscriptionHandlers {
        available_image: available.map(handlers::image),
        unavailable_image: unavailable.map(handlers::image),
    }
}

fn values_of(py: Python<'_>, record: CounterRecord) -> RecordValues<'_> {
    (
        record.id,
        record.type_id,
        record.label,
        record.value,
        record.registration_id,
        record.owner_id,
        record.reference_id,
        PyBytes::new(py, &record.key),
    )
}

/// Connects by the clock of the machine, or by one of the program.
fn connect_on(
    py: Python<'_>,
    mut config: ClientConfig,
    clock: Option<Py<PyAny>>,
) -> PyResult<client::Client> {
    match clock {
        None => connect_interruptibly(py, config),
        Some(clock) => {
            program_clock::place(&mut config, clock);
            // The clock is the program's, and so is the thread that asks it.
            detach(py, || client::Client::connect(config)).map_err(errors::client)
        }
    }
}

/// Connects on a thread of its own, so that Ctrl-C ends the wait for a driver that is not there. The thread then
/// finishes by itself: it gives up at its deadline, or closes the client that its caller no longer takes.
fn connect_interruptibly(py: Python<'_>, config: ClientConfig) -> PyResult<client::Client> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::Builder::new()
        .name("client-connect".to_owned())
        .spawn(move || {
            // An interrupted caller is gone: what was sent is dropped, which closes the client.
            let _ = sender.send(client::Client::connect(config));
        })
        .map_err(|error| errors::driver("DriverError", &format!("cannot start a thread: {error}")))?;
    let waited = Waiter::without_end(IdleStrategy::default()).wait_for(py, &NoDoorbell, move || {
        match receiver.try_recv() {
            Ok(result) => Some(Some(result)),
            Err(std::sync::mpsc::TryRecvError::Empty) => None,
            Err(std::sync::mpsc::TryRecvError::Disconnected) => Some(None),
        }
    })?;
    match waited.flatten() {
        Some(result) => result.map_err(errors::client),
        None => Err(errors::driver("DriverError", "the connecting thread failed")),
    }
}
