//! How a call waits without the GIL: for messages, for room, or for what the driver answers.

pub(crate) mod deferred_error;
pub(crate) mod doorbells;
pub(crate) mod idle_strategy;
pub(crate) mod request;
pub(crate) mod waitable;
pub(crate) mod waiter;
