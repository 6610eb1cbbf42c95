//! The conductor driven through commands, with time standing still until a test moves it.

#![allow(dead_code)] // what moved tests used of the harness goes with its end

mod harness;
mod images;
mod network_channels;
mod network_publications;
mod queues;
mod random;
mod spies;
mod timeouts;
mod world;
