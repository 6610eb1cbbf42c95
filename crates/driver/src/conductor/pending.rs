//! Commands that are not answered yet: the one that waits for the resource agent, which holds back those after it,
//! and those that wait for a name to be looked up, which hold back nothing.

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

/// A command that waits for a name, or for its turn once the name was answered.
pub(crate) struct Lookup {
    pending: Pending,
    found: Option<Result<UdpChannel, CommandError>>,
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
                let result = result.map(|log| log.with_doorbells(&self.doorbells));
                if !self.on_image_log(correlation_id, &result) {
                    self.on_log_created(correlation_id, result);
                }
            }
            ResourceOutcome::LookupBegun { correlation_id } => {
                let pending = self.take_pending(correlation_id);
                self.lookups
                    .extend(pending.map(|pending| Lookup { pending, found: None }));
            }
            ResourceOutcome::AddressesFound {
                correlation_id,
                result,
            } => {
                let result = result.map(|udp| *udp);
                match self.take_pending(correlation_id) {
                    Some(pending) => self.on_addresses(pending, result),
                    None => self.on_looked_up(correlation_id, result),
                }
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
        if let Ok(log) = &result {
            self.note_publisher(client_id, log);
        }
        let done = result.and_then(|log| match pending.step {
            Step::IpcLog(plan) => self.finish_ipc_publication(client_id, correlation_id, *plan, log),
            Step::NetworkLog(plan) => self.finish_network_publication(client_id, correlation_id, *plan, log),
            Step::PublicationAddresses(_) | Step::SubscriptionAddresses(_) | Step::SpyAddresses(_) => Ok(()),
        });
        if let Err(error) = done {
            self.refuse(correlation_id, &error);
        }
    }

    /// Remembers that a log may be written to by a client that wakes no waiter.
    pub(crate) fn note_publisher(&self, client_id: i64, log: &LogBuffers) {
        if !self.doorbells.is_registered(client_id) {
            log.doorbells().data.mark_foreign();
        }
    }

    /// Nothing if the command was given up meanwhile.
    fn on_looked_up(&mut self, correlation_id: i64, result: Result<UdpChannel, CommandError>) {
        let found = self
            .lookups
            .iter_mut()
            .find(|lookup| lookup.pending.correlation_id == correlation_id);
        if let Some(lookup) = found {
            lookup.found = Some(result);
        }
    }

    /// Goes on with a command whose name was answered, when no other command is in progress: two that make the
    /// same publication must see each other.
    pub(crate) fn resume_lookup(&mut self) -> usize {
        if self.pending.is_some() || self.is_congested() {
            return 0;
        }
        let next = self.lookups.iter().position(|lookup| lookup.found.is_some());
        let Some(lookup) = next.map(|index| self.lookups.remove(index)) else {
            return 0;
        };
        if let Some(found) = lookup.found {
            self.on_addresses(lookup.pending, found);
        }
        1
    }

    /// Gives up the command that would make a publication, if it waits for a name.
    pub(crate) fn cancel_publication_lookup(&mut self, correlation_id: i64) -> bool {
        self.cancel_lookup(correlation_id, |step| {
            matches!(step, Step::PublicationAddresses(_))
        })
    }

    /// As [`Self::cancel_publication_lookup`], of a subscription.
    pub(crate) fn cancel_subscription_lookup(&mut self, correlation_id: i64) -> bool {
        self.cancel_lookup(correlation_id, |step| {
            matches!(step, Step::SubscriptionAddresses(_) | Step::SpyAddresses(_))
        })
    }

    fn cancel_lookup(&mut self, correlation_id: i64, is_meant: impl Fn(&Step) -> bool) -> bool {
        let count = self.lookups.len();
        self.lookups.retain(|lookup| {
            lookup.pending.correlation_id != correlation_id || !is_meant(&lookup.pending.step)
        });
        self.lookups.len() < count
    }

    /// Gives up what a client that has gone waited for.
    pub(crate) fn cancel_lookups_of(&mut self, client_id: i64) {
        self.lookups
            .retain(|lookup| lookup.pending.client_id != client_id);
    }

    fn on_addresses(&mut self, pending: Pending, result: Result<UdpChannel, CommandError>) {
        let (client_id, correlation_id) = (pending.client_id, pending.correlation_id);
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
