//! Headrace's media driver: the conductor, sender and receiver agents, and the code that starts and stops them.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod affinity;
mod agent;
mod budget;
mod conductor;
pub mod config;
mod directory;
mod disk;
pub mod driver;
mod endpoint;
pub mod environment;
mod errors;
mod event_recorder;
mod interceptors;
mod mailbox;
mod names;
mod network;
pub mod printing;
mod processors;
mod proxy;
mod receiver;
mod resource_agent;
mod resource_tasks;
mod runner;
mod sender;
mod shared;
mod sparse_logs;
pub mod state_tables;
mod states;
mod stream_map;
mod timestamp;
pub mod transport;

pub use config::{ConfigError, DriverConfig, ThreadingMode};
pub use directory::DirectoryError;
pub use driver::{DriverError, MediaDriver};
pub use environment::Environment;
pub use mailbox::QUEUE_CAPACITY;
pub use runner::Invoker;
