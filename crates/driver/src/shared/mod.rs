//! What two agents' halves of one stream both touch.
//!
//! A stream has a half in the conductor (state machine, timers, limits) and a half in the sender or receiver
//! (what happens per datagram). The structs here are all they have in common. Every field names its writer;
//! the other half only reads it.

pub(crate) mod drops;
pub(crate) mod image;
pub(crate) mod publication;

pub(crate) use image::{ImageShared, ImageState, LossRange, StatusMessageDue};
pub(crate) use publication::{ConnectionState, PublicationShared};
