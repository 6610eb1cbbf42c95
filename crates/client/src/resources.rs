//! What the client does for its resources.

use std::sync::Arc;

use headrace_buffers::counters::CountersReader;
use headrace_buffers::doorbell::Doorbells;
use headrace_protocol::command::Command;

use crate::core::Core;
use crate::error::ClientError;
use crate::home::Home;
use crate::requests::Kind;
use crate::state::EXPLICIT_CLOSE_LINGER_NS;

impl Home for Core {
    fn client_id(&self) -> i64 {
        self.client_id
    }

    fn counters(&self) -> &CountersReader {
        Core::counters(self)
    }

    fn doorbells(&self) -> Doorbells {
        self.doorbells.clone()
    }

    fn ended_by(&self) -> Option<ClientError> {
        self.state().ended.clone()
    }

    fn request<'a>(
        &self,
        operation: &'static str,
        command: &dyn Fn(i64) -> Command<'a>,
    ) -> Result<i64, ClientError> {
        self.submit(operation, |id| Kind::of_operation(&command(id)), command)
    }

    fn wait_for(self: Arc<Self>, correlation_id: i64) -> Result<(), ClientError> {
        self.wait(correlation_id).map(|_| ())
    }

    fn forget_publication(&self, registration_id: i64, log_id: i64, revoke: bool) {
        let now_ns = self.now_ns(); // of a clock that may be the program's: not under the lock
        let mut state = self.state();
        if state.publications.remove(&registration_id).is_some() {
            state.mappings.release(log_id, now_ns, EXPLICIT_CLOSE_LINGER_NS);
            let command = Command::RemovePublication {
                client_id: self.client_id,
                correlation_id: self.next_correlation_id(),
                registration_id,
                revoke,
            };
            self.send_removal(&mut state, "remove publication", &command);
        }
    }

    fn forget_subscription(&self, registration_id: i64) -> bool {
        let now_ns = self.now_ns();
        let mut state = self.state();
        let removed = state.drop_subscription(registration_id, now_ns);
        if removed {
            let command = Command::RemoveSubscription {
                client_id: self.client_id,
                correlation_id: self.next_correlation_id(),
                registration_id,
            };
            self.send_removal(&mut state, "remove subscription", &command);
        }
        removed
    }

    fn forget_counter(&self, registration_id: i64) {
        let mut state = self.state();
        state.counters.remove(&registration_id);
        let command = Command::RemoveCounter {
            client_id: self.client_id,
            correlation_id: self.next_correlation_id(),
            registration_id,
        };
        self.send_removal(&mut state, "remove counter", &command);
    }

    fn run_callbacks_now(&self) {
        Core::run_callbacks_now(self);
    }

    fn run_callbacks_if_free(&self) {
        Core::run_callbacks_if_free(self);
    }
}
