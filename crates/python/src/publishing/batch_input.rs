//! What `offer_batch` is given, as slices.

use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::boundary::c_api::BorrowedBytes;

/// The messages of a batch, borrowed from Python for the length of a call.
pub(crate) enum Messages<'py> {
    /// Separate objects, each kept alive whatever becomes of the list it was in.
    Objects(Vec<Item<'py>>),
    /// Runs of memory.
    Runs(Vec<Run>),
}

/// One object of a list.
pub(crate) enum Item<'py> {
    Bytes(Bound<'py, PyBytes>),
    Buffer(BorrowedBytes),
}

/// Messages one after another in memory.
pub(crate) struct Run {
    data: BorrowedBytes,
    item_length: usize,
    count: usize,
    // Bytes of int64 values, one more than there are messages.
    offsets: Option<BorrowedBytes>,
}

impl<'py> Messages<'py> {
    pub(crate) fn extract(messages: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(list) = messages.cast::<PyList>() {
            return Self::of_objects(list.iter());
        }
        if let Ok(tuple) = messages.cast::<PyTuple>() {
            return Self::of_objects(tuple.iter());
        }
        let py = messages.py();
        let runs = py
            .import("headrace.client._batch")?
            .call_method1("runs", (messages,))?;
        let runs = runs
            .try_iter()?
            .map(|run| Run::extract(&run?))
            .collect::<PyResult<_>>()?;
        Ok(Self::Runs(runs))
    }

    fn of_objects(objects: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<Self> {
        let item = |(index, object): (usize, Bound<'py, PyAny>)| match object.cast_into::<PyBytes>() {
            Ok(bytes) => Ok(Item::Bytes(bytes)),
            Err(error) => {
                let object = error.into_inner();
                BorrowedBytes::of(&object, &format!("messages[{index}]")).map(Item::Buffer)
            }
        };
        objects
            .enumerate()
            .map(item)
            .collect::<PyResult<_>>()
            .map(Self::Objects)
    }

    /// All messages in order.
    pub(crate) fn slices(&self) -> PyResult<Vec<&[u8]>> {
        match self {
            Self::Objects(items) => Ok(items
                .iter()
                .map(|item| match item {
                    Item::Bytes(bytes) => bytes.as_bytes(),
                    Item::Buffer(buffer) => buffer.as_slice_detached(),
                })
                .collect()),
            Self::Runs(runs) => {
                let count = runs.iter().map(|run| run.count).sum();
                let mut slices = Vec::new();
                slices.try_reserve_exact(count).map_err(|_| {
                    PyMemoryError::new_err(format!("no memory for the places of {count} messages"))
                })?;
                for run in runs {
                    run.append_to(&mut slices)?;
                }
                Ok(slices)
            }
        }
    }
}

impl Run {
    fn extract(run: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (data, item_length, count, offsets): (Bound<'_, PyAny>, usize, usize, Option<Bound<'_, PyAny>>) =
            run.extract()?;
        Ok(Self {
            data: BorrowedBytes::of(&data, "messages")?,
            item_length,
            count,
            offsets: offsets
                .as_ref()
                .map(|offsets| BorrowedBytes::of(offsets, "messages"))
                .transpose()?,
        })
    }

    fn append_to<'a>(&'a self, slices: &mut Vec<&'a [u8]>) -> PyResult<()> {
        let data = self.data.as_slice_detached();
        let Some(offsets) = &self.offsets else {
            if self.item_length == 0 {
                slices.extend(std::iter::repeat_n(&[][..], self.count));
            } else {
                slices.extend(data.chunks_exact(self.item_length));
            }
            return Ok(());
        };
        let (words, _) = offsets.as_slice_detached().as_chunks::<8>();
        for pair in words.windows(2) {
            let (start, end) = (i64::from_ne_bytes(pair[0]), i64::from_ne_bytes(pair[1]));
            let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
            let slice = range
                .and_then(|(start, end)| data.get(start..end))
                .ok_or_else(|| {
                    PyValueError::new_err(format!(
                        "offsets {start}..{end} are not a range of the {} payload bytes",
                        data.len()
                    ))
                })?;
            slices.push(slice);
        }
        Ok(())
    }
}
