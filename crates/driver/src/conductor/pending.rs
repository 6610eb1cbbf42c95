//! The one command that waits for the resource agent.

use headrace_buffers::log::LogBuffers;

use super::Conductor;
use super::ipc::IpcPlan;
use crate::errors::CommandError;

/// A command in progress: who sent it and what to do with the outcome.
pub(crate) struct Pending {
    pub(crate) client_id: i64,
    pub(crate) correlation_id: i64,
    pub(crate) step: Step,
}

/// What the command waits for.
pub(crate) enum Step {
    /// The log of an IPC publication.
    IpcLog(Box<IpcPlan>),
}

impl Conductor {
    pub(crate) fn on_log_created(&mut self, correlation_id: i64, result: Result<LogBuffers, CommandError>) {
        let Some(pending) = self
            .pending
            .take_if(|pending| pending.correlation_id == correlation_id)
        else {
            return;
        };
        let done = match (pending.step, result) {
            (Step::IpcLog(plan), Ok(log)) => {
                self.finish_ipc_publication(pending.client_id, correlation_id, *plan, log)
            }
            (_, Err(error)) => Err(error),
        };
        if let Err(error) = done {
            self.refuse(correlation_id, &error);
        }
    }
}
