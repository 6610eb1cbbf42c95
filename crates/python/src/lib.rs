//! The binding of Headrace to Python: argument conversion, the GIL and error mapping, no logic.
//!
//! One file for each class. Docstrings live in the stub, `python/headrace/_core.pyi`, from where `docstring!` takes them.

#![deny(unsafe_code)]

/// The docstring that the stub has for a class or a member, with its types; see `build.rs`.
macro_rules! docstring {
    ($name:literal) => {
        include_str!(concat!(env!("OUT_DIR"), "/docstrings/", $name))
    };
}

mod answer;
mod arguments;
mod asking;
mod awaited;
mod batch;
mod batch_input;
mod batch_offer;
#[allow(unsafe_code)]
mod c_api;
mod changes;
mod channel_doubts;
mod checksum;
mod claim;
mod client;
mod clock;
mod columns;
mod commit;
mod counters;
mod delivery;
mod destinations;
mod driver;
mod errors;
mod event_log;
mod exclusive;
mod exit;
mod fork_guard;
mod frame_walk;
mod handlers;
mod header;
mod idle;
mod idle_methods;
mod images;
mod inner;
mod kept_client;
mod lock;
mod message;
mod no_doorbell;
mod node;
mod pending;
mod poller;
mod programs;
mod publication;
mod recorded;
mod recording;
mod results;
mod sequencer;
mod service;
mod settings;
mod shown;
mod subscription;
mod wait;
mod watched;
mod watcher;
mod world;

use pyo3::prelude::*;

// A free-threaded interpreter turns its GIL on when it loads this, and says so: the classes are made for it, their
// tests have not run without a GIL yet. See docs/design/0021-docstrings-and-wheels.md.
#[pymodule(gil_used = true)]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::batch::FragmentBatch;
    #[pymodule_export]
    use crate::batch_offer::BatchResult;
    #[pymodule_export]
    use crate::channel_doubts::channel_doubts;
    #[pymodule_export]
    use crate::checksum::Checksum;
    #[pymodule_export]
    use crate::claim::Claim;
    #[pymodule_export]
    use crate::client::Client;
    #[pymodule_export]
    use crate::counters::Counter;
    #[pymodule_export]
    use crate::driver::MediaDriver;
    #[pymodule_export]
    use crate::event_log::{EventLog, EventReader, state_tables};
    #[pymodule_export]
    use crate::exclusive::ExclusivePublication;
    #[pymodule_export]
    use crate::exit::hold_threads;
    #[pymodule_export]
    use crate::frame_walk::FrameWalk;
    #[pymodule_export]
    use crate::header::Header;
    #[pymodule_export]
    use crate::idle::IdleStrategy;
    #[pymodule_export]
    use crate::images::Image;
    #[pymodule_export]
    use crate::kept_client::close_clients;
    #[pymodule_export]
    use crate::message::Message;
    #[pymodule_export]
    use crate::node::Node;
    #[pymodule_export]
    use crate::pending::Pending;
    #[pymodule_export]
    use crate::poller::Poller;
    #[pymodule_export]
    use crate::publication::Publication;
    #[pymodule_export]
    use crate::recorded::RecordedBlock;
    #[pymodule_export]
    use crate::recording::{MessageFilter, RecordedFrames, RecordingReader};
    #[pymodule_export]
    use crate::sequencer::Sequencer;
    #[pymodule_export]
    use crate::service::{LogPlace, SessionSender};
    #[pymodule_export]
    use crate::settings::setting_declarations;
    #[pymodule_export]
    use crate::subscription::Subscription;
    #[pymodule_export]
    use crate::watcher::Watcher;
    #[pymodule_export]
    use crate::world::World;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("__commit__", crate::commit::COMMIT)
    }
}
