//! The machine of a node. Nodes are invoked, so it decides nothing.

use std::path::Path;

use headrace_driver::environment::Machine;

/// One processor, and no limit.
pub(crate) struct SimulatedMachine;

impl Machine for SimulatedMachine {
    fn read(&self, _path: &Path) -> Option<String> {
        None
    }

    fn processor_count(&self) -> usize {
        1
    }

    fn allowed_processors(&self) -> Vec<usize> {
        vec![0]
    }
}
