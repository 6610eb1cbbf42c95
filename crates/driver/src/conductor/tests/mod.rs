//! The conductor driven through commands, with time standing still until a test moves it.

mod clients;
mod harness;
mod ipc_life;
mod ipc_links;
mod refusals;
mod world;
