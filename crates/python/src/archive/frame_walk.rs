//! Walking the headers of recorded frames, a block of a segment file in one crossing.

use std::sync::Mutex;

use headrace_recording::{self as recording, RecordingShape};
use pyo3::prelude::*;

use crate::archive::checksum::Checksum;
use crate::boundary::c_api::BorrowedBytes;
use crate::boundary::interpreter_exit::detach;
use crate::boundary::lock::lock;
use crate::boundary::{arguments, errors};

/// Where a frame begins, where it ends, and whether its checksum is wrong.
type UncertainFrame = (i64, i64, bool);

#[doc = docstring!("FrameWalk")]
#[pyclass(frozen, module = "headrace.client")]
pub(crate) struct FrameWalk(Mutex<recording::FrameWalk>);

#[pymethods]
impl FrameWalk {
    #[new]
    #[pyo3(signature = (
        recording_id, *, start_position, initial_term_id, term_length, stream_id, session_id, checksum = None
    ))]
    fn new(
        #[pyo3(from_py_with = arguments::recording_id)] recording_id: i64,
        #[pyo3(from_py_with = arguments::start_position)] start_position: i64,
        #[pyo3(from_py_with = arguments::initial_term_id)] initial_term_id: i32,
        #[pyo3(from_py_with = arguments::term_length)] term_length: i32,
        #[pyo3(from_py_with = arguments::stream_id)] stream_id: i32,
        #[pyo3(from_py_with = arguments::session_id)] session_id: i32,
        checksum: Option<&Bound<'_, Checksum>>,
    ) -> PyResult<Self> {
        let shape = RecordingShape {
            recording_id,
            start_position,
            initial_term_id,
            term_length,
            stream_id,
            session_id: Some(session_id),
            checksum: checksum.map(|checksum| checksum.get().0),
        };
        let walk = recording::FrameWalk::new(shape).map_err(errors::recording)?;
        Ok(Self(Mutex::new(walk)))
    }

    #[doc = docstring!("FrameWalk.walk")]
    #[pyo3(signature = (block, position, limit, /))]
    fn walk(
        &self,
        py: Python<'_>,
        block: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::start)] position: i64,
        #[pyo3(from_py_with = arguments::limit_position)] limit: i64,
    ) -> PyResult<(i64, Option<i64>, Option<String>)> {
        let block = BorrowedBytes::of(block, "block")?;
        let bytes = block.as_slice_detached();
        let walked = detach(py, || lock(&self.0).walk(bytes, position, limit));
        Ok((walked.end, walked.last, walked.fault))
    }

    #[doc = docstring!("FrameWalk.doubts")]
    #[pyo3(signature = (block, position, /))]
    fn doubts(
        &self,
        py: Python<'_>,
        block: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::start)] position: i64,
    ) -> PyResult<(i64, Vec<UncertainFrame>)> {
        let block = BorrowedBytes::of(block, "block")?;
        let bytes = block.as_slice_detached();
        Ok(detach(py, || {
            let mut found = Vec::new();
            let end = lock(&self.0).doubts(bytes, position, |doubt| {
                found.push((doubt.position, doubt.end, doubt.is_wrong));
            });
            (end, found)
        }))
    }
}
