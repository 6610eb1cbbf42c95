//! What a thread or an event loop waits for: messages of subscriptions, room in publications.

use std::sync::Arc;

use headrace_client::{Awaited, Doorbells, Interests};

/// One thing that is waited for.
pub(crate) trait Waitable: Send + Sync {
    fn is_ready(&self) -> bool;

    /// What rings when it may be ready.
    fn awaited(&self) -> &(dyn Awaited + Sync);
}

/// Waits for the first of several things to happen.
pub(crate) struct AnyOf(pub(crate) Vec<Arc<dyn Waitable>>);

impl AnyOf {
    pub(crate) fn is_ready(&self) -> bool {
        self.0.iter().any(|waitable| waitable.is_ready())
    }
}

impl Awaited for AnyOf {
    /// The doorbells of the first.
    fn doorbells(&self) -> Doorbells {
        self.0
            .first()
            .map_or_else(Doorbells::none, |first| first.awaited().doorbells())
    }

    /// A waiter is woken through one driver's directory; what belongs to another it looks at every millisecond.
    fn describe(&self, interests: &mut Interests) {
        let own = self.doorbells();
        for awaited in self.0.iter().map(|waitable| waitable.awaited()) {
            if awaited.doorbells().is_same_driver(&own) {
                awaited.describe(interests);
            } else {
                interests.may_come_unrung();
            }
        }
    }
}
