//! The one command that waits for the resource agent.

use headrace_buffers::log::LogBuffers;
use headrace_protocol::channel::UdpChannel;

use super::Conductor;
use super::ipc::IpcPlan;
use super::network::{NetworkPlan, NetworkRequest};
use super::network_subscriptions::SubscriptionRequest;
use crate::errors::CommandError;
use crate::resource_agent::ResourceOutcome;

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
    /// The addresses of a network publication's channel.
    PublicationAddresses(Box<NetworkRequest>),
    /// The log of a network publication.
    NetworkLog(Box<NetworkPlan>),
    /// The addresses of a network subscription's channel.
    SubscriptionAddresses(Box<SubscriptionRequest>),
    /// The addresses of the channel that a spy watches.
    SpyAddresses(Box<SubscriptionRequest>),
}

impl Conductor {
    pub(crate) fn process_outcome(&mut self) -> usize {
        let Some(outcome) = self.outcomes.pop() else {
            return 0;
        };
        match outcome {
            ResourceOutcome::LogCreated {
                correlation_id,
                result,
            } => {
                if !self.on_image_log(correlation_id, &result) {
                    self.on_log_created(correlation_id, result);
                }
            }
            ResourceOutcome::AddressesFound {
                correlation_id,
                result,
            } => {
                self.on_addresses(correlation_id, result.map(|udp| *udp));
            }
            ResourceOutcome::Resolved { endpoint, result } => self.on_resolved(endpoint, result),
        }
        1
    }

    fn take_pending(&mut self, correlation_id: i64) -> Option<Pending> {
        self.pending
            .take_if(|pending| pending.correlation_id == correlation_id)
    }

    fn on_log_created(&mut self, correlation_id: i64, result: Result<LogBuffers, CommandError>) {
        let Some(pending) = self.take_pending(correlation_id) else {
            return;
        };
        let client_id = pending.client_id;
        let done = result.and_then(|log| match pending.step {
            Step::IpcLog(plan) => self.finish_ipc_publication(client_id, correlation_id, *plan, log),
            Step::NetworkLog(plan) => self.finish_network_publication(client_id, correlation_id, *plan, log),
            Step::PublicationAddresses(_) | Step::SubscriptionAddresses(_) | Step::SpyAddresses(_) => Ok(()),
        });
        if let Err(error) = done {
            self.refuse(correlation_id, &error);
        }
    }

    fn on_addresses(&mut self, correlation_id: i64, result: Result<UdpChannel, CommandError>) {
        let Some(pending) = self.take_pending(correlation_id) else {
            return;
        };
        let client_id = pending.client_id;
        let done = result.and_then(|udp| match pending.step {
            Step::PublicationAddresses(request) => {
                self.on_publication_addresses(client_id, correlation_id, *request, udp)
            }
            Step::SubscriptionAddresses(request) => {
                self.on_subscription_addresses(client_id, correlation_id, *request, udp)
            }
            Step::SpyAddresses(request) => self.on_spy_addresses(client_id, correlation_id, *request, udp),
            Step::IpcLog(_) | Step::NetworkLog(_) => Ok(()),
        });
        if let Err(error) = done {
            self.refuse(correlation_id, &error);
        }
    }
}
