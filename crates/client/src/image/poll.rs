//! How far a poll goes, and what its handler may return.

use headrace_buffers::log::Action;

use crate::error::PollError;

/// How far a poll goes at most. A plain number limits the fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollLimit {
    /// So many fragments.
    pub fragments: usize,
    /// Only fragments that begin before this position.
    pub position: Option<i64>,
}

impl PollLimit {
    /// So many fragments.
    #[inline]
    pub fn fragments(count: usize) -> Self {
        Self {
            fragments: count,
            position: None,
        }
    }

    /// The same, but only fragments that begin before a position.
    #[inline]
    pub fn before(self, position: i64) -> Self {
        Self {
            position: Some(position),
            ..self
        }
    }
}

impl From<usize> for PollLimit {
    #[inline]
    fn from(count: usize) -> Self {
        Self::fragments(count)
    }
}

/// The result of a poll's handler: a value that says how the poll goes on, or a `Result` of one.
///
/// `()` continues the poll; an [`Action`] says how to go on. The first error ends the poll, which returns it; its
/// fragment is consumed.
pub trait HandlerResult {
    /// What a handler says that did not fail.
    type Value;
    /// What ends the poll.
    type Error: From<PollError>;

    /// The value, or the error.
    fn into_result(self) -> Result<Self::Value, Self::Error>;
}

/// Values of handlers that cannot fail.
macro_rules! values {
    ($($value:ty),*) => {
        $(impl HandlerResult for $value {
            type Value = Self;
            type Error = PollError;

            #[inline(always)]
            fn into_result(self) -> Result<Self, PollError> {
                Ok(self)
            }
        })*
    };
}

values!((), bool, Action);

impl<V, E: From<PollError>> HandlerResult for Result<V, E> {
    type Value = V;
    type Error = E;

    #[inline(always)]
    fn into_result(self) -> Self {
        self
    }
}
