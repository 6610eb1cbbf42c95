//! The methods that publications and subscriptions share.

/// Writes them for a class with an `inner` stream and a `client`.
macro_rules! stream_methods {
    ($class:ident) => {
        getters! { $class:
            channel: &str,
            stream_id: i32,
            registration_id: i64,
            is_connected: bool,
            is_closed: bool,
        }

        closed_by_with!($class);

        impl $class {
            pub(crate) fn client(&self) -> PyResult<&$crate::boundary::client_ref::ClientRef> {
                self.client.get()
            }

            fn destinations(&self) -> PyResult<$crate::streams::destinations::Destinations<'_>> {
                let stream = self.shared()?;
                let ask = move |change: &Change| match change {
                    Change::Add(channel) => stream.destinations().async_add(channel),
                    Change::Remove(channel) => stream.destinations().async_remove(channel),
                    Change::RemoveById(registration_id) => {
                        stream.destinations().async_remove_by_id(*registration_id)
                    }
                };
                Ok($crate::streams::destinations::Destinations::new(
                    self.client()?,
                    Box::new(ask),
                ))
            }
        }

        #[pymethods]
        impl $class {
            #[doc = docstring!(stringify!($class), ".channel_status")]
            #[getter]
            fn channel_status(&self) -> PyResult<&'static str> {
                Ok($crate::streams::channel_status::name(
                    self.inner.get()?.status().state(),
                ))
            }

            #[doc = docstring!(stringify!($class), ".channel_status_id")]
            #[getter]
            fn channel_status_id(&self) -> PyResult<i32> {
                Ok(self.inner.get()?.status().counter_id())
            }

            #[doc = docstring!(stringify!($class), ".local_socket_addresses")]
            #[getter]
            fn local_socket_addresses(&self) -> PyResult<Vec<String>> {
                Ok(self.inner.get()?.status().local_socket_addresses())
            }

            #[doc = docstring!(stringify!($class), ".wait_until_connected")]
            #[pyo3(
                                                signature = (timeout_s = Some(5.0), *, idle = None),
                                                text_signature = "($self, timeout_s=5.0, *, idle=None)"
                                            )]
            fn wait_until_connected(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = arguments::timeout_s_if_any)] timeout_s: Option<f64>,
                idle: Option<&Bound<'_, PyAny>>,
            ) -> PyResult<bool> {
                let stream = self.inner.get()?;
                let waiter = Waiter::new(self.client()?, timeout_s, idle)?;
                let step = || match stream.is_connected() {
                    false if !stream.is_closed() => None,
                    is_connected => Some(is_connected),
                };
                Ok(waiter
                    .wait_for(py, stream.awaited(), step)?
                    .unwrap_or(false))
            }

            #[doc = docstring!(stringify!($class), ".add_destination")]
            #[pyo3(signature = (channel, /))]
            fn add_destination(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = arguments::channel)] channel: &str,
            ) -> PyResult<i64> {
                self.destinations()?.change(py, Change::Add(channel.to_owned()))
            }

            #[doc = docstring!(stringify!($class), ".remove_destination")]
            #[pyo3(signature = (channel, /))]
            fn remove_destination(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = arguments::channel)] channel: &str,
            ) -> PyResult<()> {
                self.destinations()?
                    .change(py, Change::Remove(channel.to_owned()))
                    .map(drop)
            }

            #[doc = docstring!(stringify!($class), ".remove_destination_by_id")]
            #[pyo3(signature = (registration_id, /))]
            fn remove_destination_by_id(
                &self,
                py: Python<'_>,
                #[pyo3(from_py_with = arguments::registration_id)] registration_id: i64,
            ) -> PyResult<()> {
                self.destinations()?
                    .change(py, Change::RemoveById(registration_id))
                    .map(drop)
            }

            #[doc = docstring!(stringify!($class), ".add_destination_async")]
            #[pyo3(signature = (channel, /))]
            fn add_destination_async<'py>(
                &self,
                py: Python<'py>,
                #[pyo3(from_py_with = arguments::channel)] channel: &str,
            ) -> PyResult<Bound<'py, PyAny>> {
                self.destinations()?.change_async(py, Change::Add(channel.to_owned()))
            }

            #[doc = docstring!(stringify!($class), ".remove_destination_async")]
            #[pyo3(signature = (channel, /))]
            fn remove_destination_async<'py>(
                &self,
                py: Python<'py>,
                #[pyo3(from_py_with = arguments::channel)] channel: &str,
            ) -> PyResult<Bound<'py, PyAny>> {
                self.destinations()?
                    .change_async(py, Change::Remove(channel.to_owned()))
            }

            #[doc = docstring!(stringify!($class), ".remove_destination_by_id_async")]
            #[pyo3(signature = (registration_id, /))]
            fn remove_destination_by_id_async<'py>(
                &self,
                py: Python<'py>,
                #[pyo3(from_py_with = arguments::registration_id)] registration_id: i64,
            ) -> PyResult<Bound<'py, PyAny>> {
                self.destinations()?
                    .change_async(py, Change::RemoveById(registration_id))
            }

            #[doc = docstring!(stringify!($class), ".request_destination")]
            #[pyo3(signature = (channel, /))]
            fn request_destination<'py>(
                &self,
                py: Python<'py>,
                #[pyo3(from_py_with = arguments::channel)] channel: &str,
            ) -> PyResult<Bound<'py, $crate::streams::destination_request::DestinationRequest>> {
                self.destinations()?.request(py, Change::Add(channel.to_owned()))
            }

            #[doc = docstring!(stringify!($class), ".request_destination_removal")]
            #[pyo3(signature = (channel, /))]
            fn request_destination_removal<'py>(
                &self,
                py: Python<'py>,
                #[pyo3(from_py_with = arguments::channel)] channel: &str,
            ) -> PyResult<Bound<'py, $crate::streams::destination_request::DestinationRequest>> {
                self.destinations()?
                    .request(py, Change::Remove(channel.to_owned()))
            }

            #[doc = docstring!(stringify!($class), ".close")]
            fn close(&self, py: Python<'_>) {
                if let Some(stream) = self.inner.get_if_own() {
                    detach(py, || stream.close());
                }
            }
        }
    };
}
