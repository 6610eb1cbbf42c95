//! Headrace's media driver: conductor, sender and receiver agents, and what starts and stops them.

#![forbid(unsafe_code)]

pub mod agent;
mod conductor;
pub mod config;
pub mod directory;
mod disk;
pub mod driver;
pub mod endpoint;
pub mod environment;
mod errors;
mod event_recorder;
pub mod mailbox;
mod name_lookups;
mod network;
pub mod proxy;
pub mod receiver;
mod resource_agent;
mod resource_tasks;
pub mod runner;
pub mod sender;
pub mod shared;
mod sparse_logs;
pub mod state_tables;
pub mod states;
mod stream_map;
mod timestamp;
pub mod transport;

pub use config::{ConfigError, DriverConfig, ThreadingMode};
pub use driver::{DriverError, MediaDriver};
pub use environment::Environment;
pub use errors::ErrorRecorder;
pub use event_recorder::EventRecorder;
pub use runner::Invoker;
