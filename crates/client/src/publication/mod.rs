//! Publications: streams of messages that this program sends.

mod concurrent;
mod exclusive;
mod handle;

pub use concurrent::Publication;
pub use exclusive::{ExclusivePublication, Writer};
pub(crate) use handle::HandleParts;
pub use handle::{LogLimits, PublicationHandle, SubscriberCount};
