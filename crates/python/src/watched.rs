//! From an object of Python to what is waited for.

use pyo3::prelude::*;

use crate::arguments;
use crate::awaited::Watched;
use crate::publication::Publication;
use crate::subscription::Subscription;

/// The messages of a subscription, or the room in a publication.
pub(crate) fn watched(object: &Bound<'_, PyAny>) -> PyResult<Watched> {
    if let Ok(subscription) = object.cast::<Subscription>() {
        return subscription.get().shared().map(Watched::Messages);
    }
    if let Ok(publication) = object.cast::<Publication>() {
        return publication.get().shared().map(Watched::Room);
    }
    let rule = "must be a subscription or a publication";
    Err(arguments::wrong_type(object, "awaited", rule))
}
