//! Python's C API where it has no safe form: lending memory to it, borrowing memory from it, calling
//! a handler without building a tuple, and taking the address of a compiled handler.
//!
//! Everything else in this crate denies `unsafe`.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use headrace_buffers::AtomicBuffer;
use headrace_sys::native_handler::NativeHandler;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use crate::boundary::arguments;
use crate::boundary::columns::Columns;

/// Memory that an [`Exporter`] lends and keeps alive.
pub(crate) enum ExportedMemory {
    /// The start of a run of shared memory; the mapping lives as long as the exporter.
    Shared(AtomicBuffer, usize),
    /// Bytes of this process.
    Owned(Box<[u8]>),
    /// One column of a batch.
    Column(Arc<Columns>, ColumnName),
}

/// Which column of a batch.
#[derive(Clone, Copy)]
pub(crate) enum ColumnName {
    /// All payloads, one after another.
    Payload,
    /// Where each payload starts, and where the last ends.
    Offsets,
    /// Stream position after each message.
    Positions,
    /// Session of each message.
    SessionIds,
    /// Reserved value of each message.
    ReservedValues,
}

/// Lends memory through the buffer protocol until it is revoked, and keeps the memory alive for as long as
/// a view of it exists, revoked or not.
#[pyclass(frozen, module = "headrace._core")]
pub(crate) struct Exporter {
    memory: ExportedMemory,
    shape: [ffi::Py_ssize_t; 1],
    item_size: ffi::Py_ssize_t,
    format: &'static CStr,
    read_only: bool,
    revoked: AtomicBool,
    borrowers: AtomicUsize,
}

impl Exporter {
    pub(crate) fn new(memory: ExportedMemory, read_only: bool) -> Self {
        let (_, length, item_size, format) = describe(&memory);
        Self {
            memory,
            shape: [length as ffi::Py_ssize_t],
            item_size,
            format,
            read_only,
            revoked: AtomicBool::new(false),
            borrowers: AtomicUsize::new(0),
        }
    }

    /// Nothing new is lent from now on. True when no view of the memory is left.
    pub(crate) fn revoke(&self) -> bool {
        self.revoked.store(true, Ordering::Release);
        self.borrowers.load(Ordering::Acquire) == 0
    }
}

/// Address, number of items, size of an item and its format.
fn describe(memory: &ExportedMemory) -> (*const u8, usize, ffi::Py_ssize_t, &'static CStr) {
    match memory {
        ExportedMemory::Shared(buffer, length) => (buffer.as_ptr().cast_const(), *length, 1, c"B"),
        ExportedMemory::Owned(bytes) => (bytes.as_ptr(), bytes.len(), 1, c"B"),
        ExportedMemory::Column(columns, name) => match name {
            ColumnName::Payload => (columns.payload.as_ptr(), columns.payload.len(), 1, c"B"),
            ColumnName::Offsets => (columns.offsets.as_ptr().cast(), columns.offsets.len(), 4, c"i"),
            ColumnName::Positions => (
                columns.positions.as_ptr().cast(),
                columns.positions.len(),
                8,
                c"q",
            ),
            ColumnName::SessionIds => (
                columns.session_ids.as_ptr().cast(),
                columns.session_ids.len(),
                4,
                c"i",
            ),
            ColumnName::ReservedValues => {
                let values = &columns.reserved_values;
                (values.as_ptr().cast(), values.len(), 8, c"q")
            }
        },
    }
}

#[pymethods]
impl Exporter {
    // SAFETY (of the declaration): Python calls this with a live, writable view, as the slot's contract says.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let this = slf.get();
        // SAFETY: as above; a null object in the view tells Python that nothing was lent, until it was.
        unsafe { (*view).obj = ptr::null_mut() };
        if this.revoked.load(Ordering::Acquire) {
            return Err(PyBufferError::new_err(
                "this view is over: it was valid inside its handler or `with` block only",
            ));
        }
        if this.read_only && flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err(
                "received messages are read-only; copy them to change them",
            ));
        }
        let (address, length, item_size, _) = describe(&this.memory);
        let wanted = |flag: c_int| flags & flag == flag;
        // SAFETY: as above. The memory, the shape, the item size and the format belong to the exporter, which
        // the view keeps alive through `obj` until Python releases it; exporters never move.
        unsafe {
            (*view).buf = address.cast_mut().cast::<c_void>();
            (*view).len = length as ffi::Py_ssize_t * item_size;
            (*view).readonly = c_int::from(this.read_only);
            (*view).itemsize = item_size;
            (*view).ndim = 1;
            (*view).format = if wanted(ffi::PyBUF_FORMAT) {
                this.format.as_ptr().cast_mut()
            } else {
                ptr::null_mut()
            };
            (*view).shape = if wanted(ffi::PyBUF_ND) {
                this.shape.as_ptr().cast_mut()
            } else {
                ptr::null_mut()
            };
            (*view).strides = if wanted(ffi::PyBUF_STRIDES) {
                ptr::from_ref(&this.item_size).cast_mut()
            } else {
                ptr::null_mut()
            };
            (*view).suboffsets = ptr::null_mut();
            (*view).internal = ptr::null_mut();
        }
        this.borrowers.fetch_add(1, Ordering::AcqRel);
        // SAFETY: as above; the reference given here is the one Python drops when it releases the view.
        unsafe { (*view).obj = slf.into_ptr() };
        Ok(())
    }

    // SAFETY (of the declaration): Python calls this once for each view that was filled in above.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.borrowers.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A view handed to a user for a while, and its exporter.
pub(crate) struct Loan<'py> {
    pub(crate) view: Bound<'py, PyMemoryView>,
    exporter: Bound<'py, Exporter>,
}

impl<'py> Loan<'py> {
    pub(crate) fn new(py: Python<'py>, memory: ExportedMemory, read_only: bool) -> PyResult<Self> {
        let exporter = Bound::new(py, Exporter::new(memory, read_only))?;
        let view = PyMemoryView::from(exporter.as_any())?;
        Ok(Self { view, exporter })
    }

    /// Takes the memory back. False when a slice or an array made from the view still holds it.
    pub(crate) fn end(self) -> bool {
        if is_unshared(&self.view) {
            // The handler did not keep the view itself: dropping it releases it, without a call by name.
            drop(self.view);
            return self.exporter.get().revoke();
        }
        end_loan(&self.view, &self.exporter)
    }

    /// The two halves, for keeping them in a Python object between calls.
    pub(crate) fn into_parts(self) -> (Py<PyMemoryView>, Py<Exporter>) {
        (self.view.unbind(), self.exporter.unbind())
    }
}

/// Releases `view` and revokes `exporter`; false when something else made from the view still holds memory.
pub(crate) fn end_loan(view: &Bound<'_, PyMemoryView>, exporter: &Bound<'_, Exporter>) -> bool {
    // Refused when the view itself has been lent on, which the count of borrowers shows as well.
    let released = view.call_method0(pyo3::intern!(view.py(), "release")).is_ok();
    exporter.get().revoke() && released
}

/// Bytes of any object with the buffer protocol, borrowed while the GIL is held.
pub(crate) struct BorrowedBytes(PyUntypedBuffer);

impl BorrowedBytes {
    /// Those of an argument, which errors name.
    pub(crate) fn of(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let buffer =
            PyUntypedBuffer::get(object).map_err(|error| arguments::not_bytes(object, name, error))?;
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err(format!(
                "{name}: the buffer is not C-contiguous; copy it first, for example with bytes(...) or \
                 numpy.ascontiguousarray(...)"
            )));
        }
        Ok(Self(buffer))
    }

    /// The bytes, for a caller that holds the GIL throughout.
    pub(crate) fn as_slice(&self, _py: Python<'_>) -> &[u8] {
        self.slice()
    }

    /// The bytes while the GIL may be released. The owner of the buffer was told, in the documentation of
    /// every function that does so, not to write it during the call.
    pub(crate) fn as_slice_detached(&self) -> &[u8] {
        self.slice()
    }

    fn slice(&self) -> &[u8] {
        let (address, length) = (self.0.buf_ptr().cast_const().cast::<u8>(), self.0.len_bytes());
        if length == 0 {
            return &[];
        }
        // SAFETY: the buffer is C-contiguous, so its `len` bytes lie from `buf` on, and its exporter may
        // neither move nor free them until the buffer is released, which self owns. Writers are excluded by
        // the GIL or by the documentation, as the two callers say.
        unsafe { std::slice::from_raw_parts(address, length) }
    }
}

/// Calls `handler(payload, header)`, or `handler(subscription, payload, header)`. Under the stable ABI of 3.11 the
/// ordinary way builds a tuple for each call, which costs a third of the time of an empty handler; this one does
/// not.
#[inline]
pub(crate) fn call_handler<'py>(
    handler: &Bound<'py, PyAny>,
    subscription: Option<&Bound<'py, PyAny>>,
    payload: &Bound<'py, PyAny>,
    header: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (handler, payload, header, py) = (handler.as_ptr(), payload.as_ptr(), header.as_ptr(), handler.py());
    let end = ptr::null_mut::<ffi::PyObject>();
    // SAFETY: live objects of an attached thread, ended by the null the function asks for. It returns a new
    // reference, or null with an exception set, which is what the conversion expects.
    unsafe {
        let result = match subscription {
            None => ffi::PyObject_CallFunctionObjArgs(handler, payload, header, end),
            Some(subscription) => {
                ffi::PyObject_CallFunctionObjArgs(handler, subscription.as_ptr(), payload, header, end)
            }
        };
        Bound::from_owned_ptr_or_err(py, result)
    }
}

/// As [`call_handler`], with four arguments.
#[inline]
pub(crate) fn call_with<'py>(
    handler: &Bound<'py, PyAny>,
    arguments: [&Bound<'py, PyAny>; 4],
) -> PyResult<Bound<'py, PyAny>> {
    let [first, second, third, fourth] = arguments.map(Bound::as_ptr);
    let end = ptr::null_mut::<ffi::PyObject>();
    // SAFETY: as in `call_handler`.
    unsafe {
        let result = ffi::PyObject_CallFunctionObjArgs(handler.as_ptr(), first, second, third, fourth, end);
        Bound::from_owned_ptr_or_err(handler.py(), result)
    }
}

/// True when `object` is the only reference to what it refers to.
#[inline]
pub(crate) fn is_unshared<T>(object: &Bound<'_, T>) -> bool {
    // SAFETY: a live object of an attached thread.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) == 1 }
}

/// The compiled handler at `address`.
pub(crate) fn native_handler(address: usize, context: usize) -> PyResult<NativeHandler> {
    // SAFETY: the caller of `poll_native` promises, as its documentation asks, a function of the documented
    // declaration and a context that suits it. Python has no way to check either.
    unsafe { NativeHandler::new(address, context) }
        .ok_or_else(|| PyValueError::new_err("handler=0: the address of a compiled handler is not 0"))
}
