//! What two agents' halves of one stream both touch.
//!
//! A stream has a half in the conductor (state machine, timers, limits) and a half in the sender or receiver
//! (what happens per datagram). The structs here are all they have in common. Every field names its writer;
//! the other half only reads it.

pub mod image;
pub mod publication;

pub use image::{ImageShared, ImageState, LossRange, StatusMessageDue};
pub use publication::{ConnectionState, PublicationShared};
