//! Sending what was recorded: Python reads the file, straight into the log.

use headrace_buffers::log::frame::HEADER_LENGTH;
use headrace_buffers::{AtomicBuffer, Memory};
use headrace_client::{ExclusivePublication, RecordedEnd, RecordedResult};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

use crate::boundary::c_api::{ExportedMemory, Loan};
use crate::boundary::errors;
use crate::boundary::handler_error::HandlerError;
use crate::publishing::offer_result;

#[doc = docstring!("RecordedBlock")]
#[pyclass(frozen, get_all, module = "headrace.client")]
pub(crate) struct RecordedBlock {
    #[doc = docstring!("RecordedBlock.length")]
    length: usize,
    #[doc = docstring!("RecordedBlock.padding")]
    padding: usize,
    #[doc = docstring!("RecordedBlock.is_malformed")]
    is_malformed: bool,
}

#[pymethods]
impl RecordedBlock {
    fn __repr__(&self) -> String {
        format!(
            "RecordedBlock(length={}, padding={}, is_malformed={})",
            self.length, self.padding, self.is_malformed
        )
    }
}

/// Sends one block, which `read` fills. A [`RecordedBlock`], or the member of `OfferResult` that says why not.
pub(crate) fn offer(
    publication: &ExclusivePublication,
    read: &Bound<'_, PyAny>,
    length: usize,
    within: usize,
) -> PyResult<Py<PyAny>> {
    let py = read.py();
    if length < HEADER_LENGTH {
        let rule = format!("must be at least {HEADER_LENGTH}, the length of a frame's header");
        return Err(errors::config("length", &length.to_string(), &rule));
    }
    let result = publication.offer_recorded(length, within, |first, rest| {
        let header = AtomicBuffer::allocate(first.len());
        let filled = fill(read, &header, rest)?;
        header.get_bytes(0, first);
        Ok::<_, HandlerError>(filled)
    })?;
    let (length, end) = match result {
        RecordedResult::Refused(refusal) => return offer_result::to_python(py, refusal),
        RecordedResult::Appended { length, end } => (length, end),
    };
    let block = RecordedBlock {
        length,
        padding: match end {
            RecordedEnd::Padding(padding) => padding,
            _ => 0,
        },
        is_malformed: end == RecordedEnd::Malformed,
    };
    Ok(Bound::new(py, block)?.into_any().unbind())
}

/// Calls `read` with both places as views that end with the call; the number of bytes it says it filled.
fn fill(read: &Bound<'_, PyAny>, header: &AtomicBuffer, rest: AtomicBuffer) -> PyResult<usize> {
    let py = read.py();
    let (header_length, rest_length) = (header.capacity(), rest.capacity());
    let first = Loan::new(py, ExportedMemory::Shared(header.clone(), header_length), false)?;
    let second = Loan::new(py, ExportedMemory::Shared(rest, rest_length), false)?;
    let filled = read.call1((&first.view, &second.view));
    let are_back = [first.end(), second.end()];
    let filled = filled?;
    if are_back != [true, true] {
        return Err(PyBufferError::new_err(
            "nothing was sent: read kept a slice or an array made from its views, which could change the frames \
             after they were sent",
        ));
    }
    filled.extract()
}
