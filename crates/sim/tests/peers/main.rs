//! One real driver and a peer that the test plays frame by frame: what each end puts on the wire and when, and what it
//! does not believe.

#[path = "../common/mod.rs"]
mod common;
mod groups;
mod hostile;
mod peer;
mod receiving;
mod round_trips;
mod sending;
