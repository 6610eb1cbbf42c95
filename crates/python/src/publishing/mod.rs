//! Publications, and each way to send with them: offers, batches, claims and recorded blocks.

pub(crate) mod any_publication;
pub(crate) mod batch_input;
pub(crate) mod batch_offer;
pub(crate) mod claim;
pub(crate) mod exclusive_publication;
pub(crate) mod offer_result;
pub(crate) mod publication;
pub(crate) mod recorded_block;
