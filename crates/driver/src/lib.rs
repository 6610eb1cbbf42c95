//! Headrace's media driver: conductor, sender and receiver agents, and what starts and stops them.

#![forbid(unsafe_code)]

pub mod agent;
mod conductor;
pub mod config;
pub mod directory;
pub mod driver;
mod errors;
pub mod mailbox;
mod resource_agent;
pub mod runner;
mod timestamp;

pub use config::{ConfigError, DriverConfig, ThreadingMode};
pub use driver::{DriverError, MediaDriver};
pub use errors::ErrorRecorder;
pub use runner::Invoker;
