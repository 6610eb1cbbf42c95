//! Subscriptions and images, and how their messages reach Python: one by one, in handlers, or as columns.

pub(crate) mod delivery;
pub(crate) mod fragment_batch;
pub(crate) mod header;
pub(crate) mod image;
pub(crate) mod message;
pub(crate) mod poller;
pub(crate) mod subscription;
