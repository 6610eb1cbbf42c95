//! The values that say what became of an offer: a position, or a member of `OfferResult`.

use headrace_client::Offer;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The members, looked up once, in the order of their codes -1 to -5.
static MEMBERS: PyOnceLock<[Py<PyAny>; 5]> = PyOnceLock::new();

fn member(py: Python<'_>, index: usize) -> PyResult<Py<PyAny>> {
    let members = MEMBERS.get_or_try_init(py, || -> PyResult<_> {
        let class = py.import("headrace._base.results")?.getattr("OfferResult")?;
        let member = |code: i32| class.call1((code,)).map(Bound::unbind);
        Ok([member(-1)?, member(-2)?, member(-3)?, member(-4)?, member(-5)?])
    })?;
    Ok(members[index].clone_ref(py))
}

/// What Python is given for `offer`.
#[inline]
pub(crate) fn to_python(py: Python<'_>, offer: Offer) -> PyResult<Py<PyAny>> {
    match offer {
        Offer::Position(position) => Ok(position.into_pyobject(py)?.into_any().unbind()),
        Offer::NotConnected => member(py, 0),
        Offer::BackPressured => member(py, 1),
        Offer::AdminAction => member(py, 2),
        Offer::Closed => member(py, 3),
        Offer::MaxPositionExceeded => member(py, 4),
    }
}
