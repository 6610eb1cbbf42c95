//! Targets: each takes any bytes and must return. What a decoder accepts is held against what it promises.
//!
//! Every target is a plain function, so that tests run it without a fuzzer. `seeds` are inputs that are well
//! formed, from which a fuzzer, or the tests' own mutations, find their way to the edges.

pub mod channel_uri;
pub mod cnc_file;
pub mod commands;
pub mod event_log;
pub mod events;
mod file;
pub mod log_file;
pub mod packets;

/// A target by name.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name of the binary that fuzzes it.
    pub name: &'static str,
    /// Takes any bytes. Panics only on a fault of the code under test.
    pub run: fn(&[u8]),
    /// Well-formed inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "packets",
        run: packets::run,
        seeds: packets::seeds,
    },
    Target {
        name: "commands",
        run: commands::run,
        seeds: commands::seeds,
    },
    Target {
        name: "events",
        run: events::run,
        seeds: events::seeds,
    },
    Target {
        name: "channel_uri",
        run: channel_uri::run,
        seeds: channel_uri::seeds,
    },
    Target {
        name: "cnc_file",
        run: cnc_file::run,
        seeds: cnc_file::seeds,
    },
    Target {
        name: "event_log",
        run: event_log::run,
        seeds: event_log::seeds,
    },
    Target {
        name: "log_file",
        run: log_file::run,
        seeds: log_file::seeds,
    },
];

#[cfg(test)]
mod tests;
