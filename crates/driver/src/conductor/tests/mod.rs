//! The conductor driven through commands, with time standing still until a test moves it.

mod clients;
mod harness;
mod images;
mod ipc_life;
mod ipc_links;
mod lookups;
mod network_channels;
mod network_publications;
mod processes;
mod queues;
mod random;
mod refusals;
mod spies;
mod timeouts;
mod world;
