//! Offering many messages in one call.

use headrace_buffers::log::Append;
use headrace_buffers::log::append::Progress;
use headrace_client::OfferError;
use pyo3::prelude::*;

use crate::boundary::{arguments, errors};
use crate::publishing::any_publication::AnyPublication;

/// Offers what `progress` has left until something is refused. A change of term is not a refusal.
pub(crate) fn advance(
    progress: &mut Progress,
    inner: &AnyPublication,
    messages: &[&[u8]],
) -> Result<(), OfferError> {
    let mut stalls = 0;
    loop {
        let step = match inner.offer_many(&messages[progress.accepted..]) {
            // Another thread writes; what was accepted before must not be sent again.
            Err(OfferError::Busy) if progress.accepted > 0 => {
                progress.refused = Some(Append::AdminAction);
                return Ok(());
            }
            step => step?,
        };
        progress.accepted += step.accepted;
        progress.position = step.position.or(progress.position);
        progress.refused = step.refused;
        // The first retry finds the new term; a second in a row is left to the caller.
        stalls = if step.accepted == 0 { stalls + 1 } else { 0 };
        if step.refused != Some(Append::AdminAction) || stalls > 1 {
            return Ok(());
        }
    }
}

pub(crate) fn check_lengths(inner: &AnyPublication, messages: &[&[u8]]) -> PyResult<()> {
    let max = inner.limits().max_message_length;
    match messages
        .iter()
        .enumerate()
        .find(|(_, message)| message.len() > max)
    {
        None => Ok(()),
        Some((index, message)) => Err(errors::config(
            &format!("len(messages[{index}])"),
            &message.len().to_string(),
            &format!("must be at most max_message_length={max}; none of the batch was sent"),
        )),
    }
}

#[doc = docstring!("BatchResult")]
#[pyclass(frozen, get_all, module = "headrace")]
pub(crate) struct BatchResult {
    #[doc = docstring!("BatchResult.accepted")]
    pub(crate) accepted: usize,
    #[doc = docstring!("BatchResult.requested")]
    pub(crate) requested: usize,
    #[doc = docstring!("BatchResult.position")]
    pub(crate) position: Option<i64>,
    #[doc = docstring!("BatchResult.stopped_by")]
    pub(crate) stopped_by: Option<Py<PyAny>>,
}

#[pymethods]
impl BatchResult {
    #[new]
    #[pyo3(signature = (accepted, requested, *, position = None, stopped_by = None))]
    fn new(
        #[pyo3(from_py_with = arguments::accepted)] accepted: usize,
        #[pyo3(from_py_with = arguments::requested)] requested: usize,
        position: Option<i64>,
        stopped_by: Option<Py<PyAny>>,
    ) -> Self {
        Self {
            accepted,
            requested,
            position,
            stopped_by,
        }
    }

    #[doc = docstring!("BatchResult.is_complete")]
    #[getter]
    fn is_complete(&self) -> bool {
        self.accepted == self.requested
    }

    fn __bool__(&self) -> bool {
        self.is_complete()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let stopped_by = match &self.stopped_by {
            None => "None".to_owned(),
            Some(result) => result.bind(py).repr()?.to_string(),
        };
        let position = self
            .position
            .map_or_else(|| "None".to_owned(), |position| position.to_string());
        Ok(format!(
            "BatchResult(accepted={}, requested={}, position={position}, stopped_by={stopped_by})",
            self.accepted, self.requested
        ))
    }
}
