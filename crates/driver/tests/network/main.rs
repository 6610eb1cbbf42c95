//! Sender and receiver agents against a simulated network and a hand-set clock.

mod delivery;
mod hostile;
mod receiving;
mod sending;
mod simulated;
mod spies;
mod world;
