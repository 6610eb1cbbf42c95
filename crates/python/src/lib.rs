//! The binding of Headrace to Python: argument conversion, the GIL and error mapping, no logic.

use pyo3::prelude::*;

#[pymodule]
mod _core {}
