//! The binding of Headrace to Python: argument conversion, the GIL and error mapping, no logic.
//!
//! Each room uses only those before it: `boundary`, `waiting`, `streams`, `publishing`, `cluster`, `receiving`, `archive`,
//! `driver`, `client`. Docstrings live in the stub, `python/headrace/_core.pyi`, from where `docstring!` takes them.

#![deny(unsafe_code)]

#[macro_use]
mod boundary;
#[macro_use]
mod streams;

mod archive;
mod client;
mod cluster;
mod driver;
mod publishing;
mod receiving;
mod waiting;

use pyo3::prelude::*;

// A free-threaded interpreter turns its GIL on when it loads this, and says so: the classes are made for it, their
// tests have not run without a GIL yet. See docs/internals/python.md.
#[pymodule(gil_used = true)]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::archive::checksum::Checksum;
    #[pymodule_export]
    use crate::archive::frame_walk::FrameWalk;
    #[pymodule_export]
    use crate::archive::recording_reader::{MessageFilter, RecordedFrames, RecordingReader};
    #[pymodule_export]
    use crate::boundary::client_ref::close_clients;
    #[pymodule_export]
    use crate::boundary::interpreter_exit::hold_threads;
    #[pymodule_export]
    use crate::client::connection::Client;
    #[pymodule_export]
    use crate::client::counter::Counter;
    #[pymodule_export]
    use crate::client::event_loop::Watcher;
    #[pymodule_export]
    use crate::client::pending_request::Pending;
    #[pymodule_export]
    use crate::client::session_streams::SessionStreams;
    #[pymodule_export]
    use crate::cluster::log_place::LogPlace;
    #[pymodule_export]
    use crate::cluster::sequencer::Sequencer;
    #[pymodule_export]
    use crate::cluster::session_sender::SessionSender;
    #[pymodule_export]
    use crate::driver::event_log::{EventLog, EventReader, state_tables};
    #[pymodule_export]
    use crate::driver::media_driver::MediaDriver;
    #[pymodule_export]
    use crate::driver::node::Node;
    #[pymodule_export]
    use crate::driver::settings::setting_declarations;
    #[pymodule_export]
    use crate::driver::world::World;
    #[pymodule_export]
    use crate::publishing::batch_offer::BatchResult;
    #[pymodule_export]
    use crate::publishing::claim::Claim;
    #[pymodule_export]
    use crate::publishing::exclusive_publication::ExclusivePublication;
    #[pymodule_export]
    use crate::publishing::publication::Publication;
    #[pymodule_export]
    use crate::publishing::recorded_block::RecordedBlock;
    #[pymodule_export]
    use crate::receiving::fragment_batch::FragmentBatch;
    #[pymodule_export]
    use crate::receiving::header::Header;
    #[pymodule_export]
    use crate::receiving::image::Image;
    #[pymodule_export]
    use crate::receiving::message::Message;
    #[pymodule_export]
    use crate::receiving::poller::Poller;
    #[pymodule_export]
    use crate::receiving::subscription::Subscription;
    #[pymodule_export]
    use crate::waiting::idle_strategy::IdleStrategy;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("__commit__", crate::boundary::build_info::COMMIT)
    }
}
