//! What Python can wait for: messages of subscriptions, room in publications.

use std::sync::Arc;

use headrace_client::{Awaited, Doorbells, Interests};

use crate::inner::Inner;

/// One thing that is waited for.
pub(crate) enum Watched {
    Messages(Arc<headrace_client::Subscription>),
    Room(Arc<Inner>),
}

impl Watched {
    pub(crate) fn is_ready(&self) -> bool {
        match self {
            Self::Messages(subscription) => subscription.has_fragments() || subscription.is_closed(),
            Self::Room(publication) => publication.is_writable(),
        }
    }

    fn awaited(&self) -> &dyn Awaited {
        match self {
            Self::Messages(subscription) => &**subscription,
            Self::Room(publication) => publication.handle(),
        }
    }
}

/// Waits for the first of several things to happen.
pub(crate) struct AnyOf(pub(crate) Vec<Watched>);

impl AnyOf {
    pub(crate) fn is_ready(&self) -> bool {
        self.0.iter().any(Watched::is_ready)
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
        for awaited in self.0.iter().map(Watched::awaited) {
            if awaited.doorbells().is_same_driver(&own) {
                awaited.describe(interests);
            } else {
                interests.may_come_unrung();
            }
        }
    }
}
