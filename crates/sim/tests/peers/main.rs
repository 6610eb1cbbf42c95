//! One real driver and a peer that the test plays frame by frame: what each end puts on the wire and when, and what it
//! does not believe.

mod amplification;
#[path = "../common/mod.rs"]
mod common;
mod groups;
mod hostile;
mod receiving;
mod retained;
mod round_trips;
mod sending;

const SESSION: i32 = -77;
const TERM_LENGTH: i32 = 64 * 1024;
/// What a receiver grants, here and in the channels of the tests.
const WINDOW: i32 = 16 * 1024;
