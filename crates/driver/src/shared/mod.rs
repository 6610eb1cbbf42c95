//! The state that two agents' halves of one stream share.
//!
//! A stream has a half in the conductor (state machine, timers, limits) and a half in the sender or receiver (what
//! happens per datagram). They share only the structs here. Every field names its writer; the other half only reads it.

pub(crate) mod drops;
pub(crate) mod image;
pub(crate) mod publication;
pub(crate) mod requests;

pub(crate) use image::{ImageShared, ImageState, LossRange, StatusMessageDue};
pub(crate) use publication::{ConnectionState, PublicationShared};
