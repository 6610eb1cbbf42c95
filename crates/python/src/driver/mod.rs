//! Drivers of this process, real or of a simulated world; their settings and event logs.

pub(crate) mod event_log;
mod link;
pub(crate) mod media_driver;
pub(crate) mod node;
mod programs;
pub(crate) mod settings;
pub(crate) mod world;
