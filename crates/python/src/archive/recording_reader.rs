//! Recorded messages, read in batches from segment files or from a replay.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use headrace_client::ReplayBlocks;
use headrace_recording::{
    self as recording, Range, RecordedMessage, RecordingError, RecordingShape, Segments,
};
use pyo3::prelude::*;

use crate::archive::checksum::Checksum;
use crate::boundary::columns::{Columns, PAYLOAD_LENGTH_MAX, Spare};
use crate::boundary::lock::lock;
use crate::boundary::{arguments, errors};
use crate::receiving::fragment_batch::FragmentBatch;
use crate::receiving::image::Image;
use crate::waiting::doorbells::NoDoorbell;
use crate::waiting::waiter::Waiter;

#[doc = docstring!("RecordingReader")]
#[pyclass(frozen, module = "headrace")]
pub(crate) struct RecordingReader {
    inner: Mutex<recording::RecordingReader>,
    // Keeps the client of a replay open, and knows whether this is still the process that made it.
    image: Option<Py<Image>>,
    spare: Arc<Spare>,
    // What a batch had when Ctrl-C or an error ended it: the reader is past it, so the next batch begins with it.
    unfinished: Mutex<Option<Columns>>,
    stream_id: i32,
    with_payload: bool,
}

/// Where frames come from: an archive's directory, or the image of a replay.
#[derive(FromPyObject)]
enum Source {
    Replay(Py<Image>),
    Directory(PathBuf),
}

fn source(object: &Bound<'_, PyAny>) -> PyResult<Source> {
    let rule =
        "must be the directory of an archive, as text or a pathlib.Path, or the headrace.Image of a replay";
    arguments::extract(object, "source", rule)
}

fn checksum_if_any(object: &Bound<'_, PyAny>) -> PyResult<Option<Py<Checksum>>> {
    arguments::extract(object, "checksum", "must be a headrace.client.Checksum, or None")
}

fn frames<'py>(object: &Bound<'py, PyAny>) -> PyResult<PyRef<'py, RecordedFrames>> {
    arguments::extract(object, "frames", "must be a headrace.RecordedFrames")
}

fn filter_if_any<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<PyRef<'py, MessageFilter>>> {
    arguments::extract(object, "filter", "must be a headrace.MessageFilter, or None")
}

#[doc = docstring!("RecordedFrames")]
#[pyclass(frozen, module = "headrace")]
pub(crate) struct RecordedFrames {
    shape: RecordingShape,
    segment_length: i32,
}

#[pymethods]
impl RecordedFrames {
    #[new]
    #[pyo3(signature = (
        recording_id, *, start_position, initial_term_id, term_length, segment_length, stream_id,
        session_id = None, checksum = None
    ))]
    #[allow(clippy::too_many_arguments)] // one by one, they are keywords in Python
    fn new(
        #[pyo3(from_py_with = arguments::recording_id)] recording_id: i64,
        #[pyo3(from_py_with = arguments::start_position)] start_position: i64,
        #[pyo3(from_py_with = arguments::initial_term_id)] initial_term_id: i32,
        #[pyo3(from_py_with = arguments::term_length)] term_length: i32,
        #[pyo3(from_py_with = arguments::segment_length)] segment_length: i32,
        #[pyo3(from_py_with = arguments::stream_id)] stream_id: i32,
        #[pyo3(from_py_with = arguments::session_id_if_any)] session_id: Option<i32>,
        #[pyo3(from_py_with = checksum_if_any)] checksum: Option<Py<Checksum>>,
    ) -> Self {
        let shape = RecordingShape {
            recording_id,
            start_position,
            initial_term_id,
            term_length,
            stream_id,
            session_id,
            checksum: checksum.map(|checksum| checksum.get().0),
        };
        Self {
            shape,
            segment_length,
        }
    }

    fn __repr__(&self) -> String {
        let RecordingShape {
            recording_id,
            stream_id,
            ..
        } = self.shape;
        format!("RecordedFrames({recording_id}, stream_id={stream_id})")
    }
}

#[doc = docstring!("MessageFilter")]
#[pyclass(frozen, module = "headrace")]
pub(crate) struct MessageFilter(recording::MessageFilter);

#[pymethods]
impl MessageFilter {
    #[new]
    #[pyo3(signature = (*, session_id = None, reserved_value_min = i64::MIN, reserved_value_max = i64::MAX))]
    fn new(
        #[pyo3(from_py_with = arguments::session_id_if_any)] session_id: Option<i32>,
        #[pyo3(from_py_with = arguments::reserved_value_min)] reserved_value_min: i64,
        #[pyo3(from_py_with = arguments::reserved_value_max)] reserved_value_max: i64,
    ) -> Self {
        Self(recording::MessageFilter {
            session_id,
            reserved_value_min,
            reserved_value_max,
        })
    }

    fn __repr__(&self) -> String {
        let session_id = self.0.session_id.map_or("None".to_owned(), |id| id.to_string());
        format!(
            "MessageFilter(session_id={session_id}, reserved_value_min={}, reserved_value_max={})",
            self.0.reserved_value_min, self.0.reserved_value_max
        )
    }
}

impl RecordingReader {
    /// Repeats `step` until it says that it has enough, the range ends, or time is over.
    fn read(
        &self,
        py: Python<'_>,
        timeout_s: f64,
        mut step: impl FnMut(&mut recording::RecordingReader) -> Result<bool, RecordingError> + Send,
    ) -> PyResult<()> {
        let client = match &self.image {
            Some(image) => image.get().client()?,
            None => None,
        };
        let waiter = match client {
            Some(client) => Waiter::new(client, Some(timeout_s), None)?,
            // Files grow in the time of the machine.
            None => Waiter::without_client(Some(timeout_s))?,
        };
        let once = || {
            let mut reader = lock(&self.inner);
            match step(&mut reader) {
                Ok(is_enough) => (is_enough || reader.is_at_end()).then_some(Ok(())),
                Err(error) => Some(Err(error)),
            }
        };
        let done = waiter.wait_for(py, &NoDoorbell, once)?;
        done.unwrap_or(Ok(())).map_err(errors::recording)
    }
}

#[pymethods]
impl RecordingReader {
    #[new]
    #[pyo3(signature = (
        source, frames, *, start, stop, limit, is_frame_at_start = false, filter = None, with_payload = true
    ))]
    #[allow(clippy::too_many_arguments)] // one by one, they are keywords in Python
    fn new(
        #[pyo3(from_py_with = source)] source: Source,
        #[pyo3(from_py_with = frames)] frames: PyRef<'_, RecordedFrames>,
        #[pyo3(from_py_with = arguments::start)] start: i64,
        #[pyo3(from_py_with = arguments::stop)] stop: i64,
        #[pyo3(from_py_with = arguments::recording_limit)] limit: i64,
        #[pyo3(from_py_with = arguments::is_frame_at_start)] is_frame_at_start: bool,
        #[pyo3(from_py_with = filter_if_any)] filter: Option<PyRef<'_, MessageFilter>>,
        #[pyo3(from_py_with = arguments::with_payload)] with_payload: bool,
    ) -> PyResult<Self> {
        let shape = frames.shape.clone();
        let range = Range {
            start,
            stop,
            limit,
            is_frame_at_start,
        };
        let filter = filter.map_or_else(recording::MessageFilter::default, |filter| filter.0);
        let stream_id = shape.stream_id;
        let (inner, image) = match source {
            Source::Directory(directory) => {
                let reader = Segments::new(directory, frames.segment_length, &shape)
                    .and_then(|blocks| recording::RecordingReader::new(shape, blocks, range, filter));
                (reader, None)
            }
            Source::Replay(image) => {
                let blocks = ReplayBlocks::new(image.get().shared()?);
                (
                    recording::RecordingReader::new(shape, blocks, range, filter),
                    Some(image),
                )
            }
        };
        Ok(Self {
            inner: Mutex::new(inner.map_err(errors::recording)?),
            image,
            spare: Arc::default(),
            unfinished: Mutex::new(None),
            stream_id,
            with_payload,
        })
    }

    #[doc = docstring!("RecordingReader.read_batch")]
    #[pyo3(signature = (count_max, length_max = 16 << 20, timeout_s = 0.0))]
    fn read_batch(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::count_max)] count_max: usize,
        #[pyo3(from_py_with = arguments::length_max)] length_max: usize,
        #[pyo3(from_py_with = arguments::timeout_s)] timeout_s: f64,
    ) -> PyResult<FragmentBatch> {
        let unfinished = lock(&self.unfinished).take();
        let mut columns = unfinished.unwrap_or_else(|| self.spare.columns(self.stream_id));
        let length_max = length_max.min(PAYLOAD_LENGTH_MAX);
        let (mut count, mut length) = (columns.len(), columns.payload.len());
        let outcome = self.read(py, timeout_s, |reader| {
            let (count_left, length_left) =
                (count_max.saturating_sub(count), length_max.saturating_sub(length));
            count += reader.read(count_left, length_left, |message| {
                length += message.payload.len();
                columns.push(
                    if self.with_payload { message.payload } else { &[] },
                    message.position,
                    message.session_id,
                    message.reserved_value,
                );
            })?;
            Ok(count >= count_max || length >= length_max)
        });
        if let Err(error) = outcome {
            *lock(&self.unfinished) = Some(columns);
            return Err(error);
        }
        Ok(FragmentBatch::new(columns))
    }

    fn __repr__(&self) -> String {
        format!(
            "RecordingReader(stream_id={}, boundary={})",
            self.stream_id,
            self.boundary()
        )
    }

    #[doc = docstring!("RecordingReader.skip_to_boundary")]
    #[pyo3(signature = (timeout_s = 0.0))]
    fn skip_to_boundary(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::timeout_s)] timeout_s: f64,
    ) -> PyResult<i64> {
        self.read(py, timeout_s, |reader| {
            reader.read(usize::MAX, usize::MAX, |_: RecordedMessage<'_>| {})?;
            Ok(false)
        })?;
        Ok(self.boundary())
    }

    #[doc = docstring!("RecordingReader.is_at_end")]
    #[getter]
    fn is_at_end(&self) -> bool {
        lock(&self.inner).is_at_end()
    }

    #[doc = docstring!("RecordingReader.position")]
    #[getter]
    fn position(&self) -> i64 {
        lock(&self.inner).position()
    }

    #[doc = docstring!("RecordingReader.boundary")]
    #[getter]
    fn boundary(&self) -> i64 {
        lock(&self.inner).boundary()
    }

    #[doc = docstring!("RecordingReader.incomplete_count")]
    #[getter]
    fn incomplete_count(&self) -> u64 {
        lock(&self.inner).incomplete().count
    }

    #[doc = docstring!("RecordingReader.incomplete_position")]
    #[getter]
    fn incomplete_position(&self) -> Option<i64> {
        let incomplete = lock(&self.inner).incomplete();
        (incomplete.count > 0).then_some(incomplete.position)
    }
}
