//! Requests that the driver did not answer in time, or that the program gave up.

use headrace_protocol::command::Command;

use crate::core::Core;
use crate::error::ClientError;
use crate::requests::Kind;
use crate::state::State;

impl Core {
    /// Fails the requests whose deadline has passed. True if `watched` is among them.
    pub(crate) fn expire_requests(&self, watched: Option<i64>) -> bool {
        let now_ns = self.now_ns();
        let mut state = self.state();
        let expired: Vec<i64> = state
            .requests
            .iter()
            .filter(|(_, request)| request.is_awaiting() && request.deadline_ns < now_ns)
            .map(|(correlation_id, _)| *correlation_id)
            .collect();
        for correlation_id in &expired {
            self.remove_at_driver(&mut state, *correlation_id);
            if let Some(request) = state.requests.get_mut(correlation_id) {
                let reason = request.unanswered(*correlation_id, self.config.driver_timeout_ms);
                request.result = Some(Err(ClientError::DriverTimeout { reason }));
            }
        }
        watched.is_some_and(|watched| expired.contains(&watched))
    }

    /// Forgets a request. What it asked for is removed at the driver, which works through commands in order, so
    /// the removal finds the resource even if it has not been made yet. False when the id is unknown, as all are to a
    /// client that has ended: what it asked for went with it.
    pub(crate) fn cancel(&self, correlation_id: i64) -> Result<bool, ClientError> {
        self.refuse_reentry("cancel")?;
        // An outcome that is ready but not taken closes itself when dropped, which needs the lock.
        let request = {
            let mut state = self.state();
            if state
                .requests
                .get(&correlation_id)
                .is_some_and(|request| request.is_awaiting())
            {
                self.remove_at_driver(&mut state, correlation_id);
            }
            state.requests.remove(&correlation_id)
        };
        Ok(request.is_some())
    }

    /// Undoes a pending request at the driver, and what the client has noted down for it.
    fn remove_at_driver(&self, state: &mut State, correlation_id: i64) {
        let Some(request) = state.requests.get(&correlation_id) else {
            return;
        };
        let (client_id, registration_id) = (self.client_id, correlation_id);
        let removal_id = self.next_correlation_id();
        match request.kind {
            Kind::Publication { .. } | Kind::ExclusivePublication { .. } => {
                let command = Command::RemovePublication {
                    client_id,
                    correlation_id: removal_id,
                    registration_id,
                    revoke: false,
                };
                self.send_removal(state, "remove publication", &command);
            }
            Kind::Subscription(_) => {
                state.drop_subscription(registration_id, self.now_ns());
                let command = Command::RemoveSubscription {
                    client_id,
                    correlation_id: removal_id,
                    registration_id,
                };
                self.send_removal(state, "remove subscription", &command);
            }
            Kind::Counter => {
                let command = Command::RemoveCounter {
                    client_id,
                    correlation_id: removal_id,
                    registration_id,
                };
                self.send_removal(state, "remove counter", &command);
            }
            // A static counter outlives its client, and the others leave nothing in the driver.
            Kind::StaticCounter { .. }
            | Kind::SessionId
            | Kind::Operation
            | Kind::DestinationRemoval { .. } => {}
        }
    }
}
