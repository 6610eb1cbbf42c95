//! Sender and receiver agents against a simulated network and a hand-set clock.

mod delivery;
mod groups;
mod hostile;
mod receiving;
mod round_trips;
mod sending;
mod simulated;
mod spies;
mod world;
