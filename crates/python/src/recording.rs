//! Recorded messages, read from segment files in batches.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use headrace_client::recording::{
    self, MessageFilter, Range, RecordedChecksum, RecordedMessage, RecordingSource,
};
use pyo3::prelude::*;

use crate::batch::FragmentBatch;
use crate::checksum::Checksum;
use crate::columns::{PAYLOAD_LENGTH_MAX, Spare};
use crate::errors;
use crate::images::lock;

/// Reads messages of a recording from an archive's segment files, a batch in one crossing.
#[pyclass(frozen, module = "headrace._core")]
pub(crate) struct RecordingReader {
    inner: Mutex<recording::RecordingReader>,
    spare: Arc<Spare>,
    stream_id: i32,
    with_payload: bool,
}

#[pymethods]
impl RecordingReader {
    #[new]
    #[pyo3(signature = (
        directory, recording_id, *, start_position, initial_term_id, term_length, segment_length, stream_id,
        start, stop, limit, is_frame_at_start = false, session_id = None, reserved_value_min = i64::MIN,
        reserved_value_max = i64::MAX, with_payload = true, checksum = None, recorded_session_id = 0
    ))]
    #[allow(clippy::too_many_arguments)] // one by one, they are keywords in Python
    fn new(
        directory: PathBuf,
        recording_id: i64,
        start_position: i64,
        initial_term_id: i32,
        term_length: i32,
        segment_length: i32,
        stream_id: i32,
        start: i64,
        stop: i64,
        limit: i64,
        is_frame_at_start: bool,
        session_id: Option<i32>,
        reserved_value_min: i64,
        reserved_value_max: i64,
        with_payload: bool,
        checksum: Option<&Bound<'_, Checksum>>,
        recorded_session_id: i32,
    ) -> PyResult<Self> {
        let source = RecordingSource {
            directory,
            recording_id,
            start_position,
            initial_term_id,
            term_length,
            segment_length,
            stream_id,
            checksum: checksum.map(|checksum| RecordedChecksum {
                kind: checksum.get().0,
                session_id: recorded_session_id,
            }),
        };
        let range = Range {
            start,
            stop,
            limit,
            is_frame_at_start,
        };
        let filter = MessageFilter {
            session_id,
            reserved_value_min,
            reserved_value_max,
        };
        let inner = recording::RecordingReader::new(source, range, filter).map_err(errors::recording)?;
        Ok(Self {
            inner: Mutex::new(inner),
            spare: Arc::default(),
            stream_id,
            with_payload,
        })
    }

    /// The next messages; an empty batch at the end of the range. Releases the GIL.
    #[pyo3(signature = (count_max, length_max = 16 << 20))]
    fn read_batch(&self, py: Python<'_>, count_max: usize, length_max: usize) -> PyResult<FragmentBatch> {
        let mut columns = self.spare.columns(self.stream_id);
        let with_payload = self.with_payload;
        py.detach(|| {
            let deliver = |message: RecordedMessage<'_>| {
                let payload = if with_payload { message.payload } else { &[] };
                columns.push(
                    payload,
                    message.position,
                    message.session_id,
                    message.reserved_value,
                );
            };
            lock(&self.inner).read(count_max, length_max.min(PAYLOAD_LENGTH_MAX), deliver)
        })
        .map_err(errors::recording)?;
        Ok(FragmentBatch::new(columns))
    }

    /// Read to the end of the range without giving the messages; returns :attr:`boundary`.
    fn skip_to_boundary(&self, py: Python<'_>) -> PyResult<i64> {
        py.detach(|| {
            let mut reader = lock(&self.inner);
            reader
                .read(usize::MAX, usize::MAX, |_| {})
                .map(|_| reader.boundary())
        })
        .map_err(errors::recording)
    }

    /// Stream position of the next frame.
    #[getter]
    fn position(&self) -> i64 {
        lock(&self.inner).position()
    }

    /// The last position up to which every message that began was read.
    #[getter]
    fn boundary(&self) -> i64 {
        lock(&self.inner).boundary()
    }

    /// Messages that were begun and never finished: nobody received them whole.
    #[getter]
    fn incomplete_count(&self) -> u64 {
        lock(&self.inner).incomplete_count()
    }
}
