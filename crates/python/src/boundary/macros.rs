//! What the classes of every room are written with.

/// The docstring that the stub has for a class or a member, with its types; see `build.rs`.
macro_rules! docstring {
    ($($part:expr),+) => {
        include_str!(concat!(env!("OUT_DIR"), "/docstrings/", $($part),+))
    };
}

/// Properties of a class that its `inner` has as methods of the same names.
macro_rules! getters {
    ($class:ident: $($name:ident: $type:ty),+ $(,)?) => {
        #[pymethods]
        impl $class {
            $(
                #[doc = docstring!(stringify!($class), ".", stringify!($name))]
                #[getter]
                fn $name(&self) -> PyResult<$type> {
                    Ok(self.inner.get()?.$name())
                }
            )+
        }
    };
    ($class:ident.$part:ident: $($name:ident: $type:ty),+ $(,)?) => {
        #[pymethods]
        impl $class {
            $(
                #[doc = docstring!(stringify!($class), ".", stringify!($name))]
                #[getter]
                fn $name(&self) -> PyResult<$type> {
                    Ok(self.inner.get()?.$part().$name)
                }
            )+
        }
    };
}

/// What `with` calls: the end of the block closes the object.
macro_rules! closed_by_with {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
                slf
            }

            fn __exit__(
                &self,
                py: Python<'_>,
                _kind: &Bound<'_, PyAny>,
                _value: &Bound<'_, PyAny>,
                _traceback: &Bound<'_, PyAny>,
            ) {
                self.close(py);
            }
        }
    };
}
