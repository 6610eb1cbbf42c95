//! What can go wrong with a world itself, apart from what it simulates.

use headrace_client::ClientError;
use headrace_driver::DriverError;
use thiserror::Error;

/// Why a world cannot do what it is asked for.
#[derive(Debug, Error)]
pub enum WorldError {
    /// The driver of a node did not start or stop.
    #[error("driver of node={node}: {source}")]
    Driver {
        /// The node.
        node: String,
        /// Why.
        source: DriverError,
    },
    /// A client was refused or has ended.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A name or a state that does not fit.
    #[error("node={node} {rule}")]
    Node {
        /// The node.
        node: String,
        /// What it must be, and is not.
        rule: &'static str,
    },
    /// A rule about positions, limits, counts or queues did not hold after a step. Every later step fails as well.
    #[error(
        "node={node}: {rule} does not hold: {what}\nreplay with seed={seed}; the last of its trace:\n{trace}"
    )]
    Broken {
        /// The node.
        node: String,
        /// Name of the rule, as in `docs/internals/world.md`.
        rule: &'static str,
        /// The values that contradict it.
        what: String,
        /// Seed of the world.
        seed: u64,
        /// What happened last.
        trace: String,
    },
    /// A condition did not come true in its time.
    #[error(
        "{what}: not after {within_ns} ns of virtual time\nreplay with seed={seed}; the last of its trace:\n{trace}"
    )]
    NotInTime {
        /// What was waited for.
        what: String,
        /// For how long.
        within_ns: i64,
        /// Seed of the world.
        seed: u64,
        /// What happened last.
        trace: String,
    },
}
