//! What publications and subscriptions have in common: methods, channels and destinations.

#[macro_use]
mod methods;

pub(crate) mod channel_status;
pub(crate) mod destination_change;
pub(crate) mod destination_request;
pub(crate) mod destinations;
