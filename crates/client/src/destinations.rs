//! Destinations that the program adds to and removes from a stream whose channel has `control-mode=manual`.

use std::sync::{Arc, Weak};

use headrace_protocol::command::Command;

use crate::conductor_proxy::{self, ConductorProxy};
use crate::error::ClientError;

/// Whose destinations they are.
#[derive(Clone, Copy)]
pub(crate) enum Owner {
    Publication,
    Subscription,
}

/// The destinations of a publication or a subscription.
///
/// The driver answers each change. Calls named `async_` do not wait for that and return the id of the request; see
/// [`crate::Requests::find_operation`].
pub struct Destinations<'a> {
    conductor: &'a Weak<dyn ConductorProxy>,
    owner: Owner,
    // Destinations of a publication belong to its log, whichever handle adds them.
    registration_id: i64,
    is_open: bool,
}

impl<'a> Destinations<'a> {
    pub(crate) fn new(
        conductor: &'a Weak<dyn ConductorProxy>,
        owner: Owner,
        registration_id: i64,
        is_open: bool,
    ) -> Self {
        Self {
            conductor,
            owner,
            registration_id,
            is_open,
        }
    }

    /// Adds a destination, waits for the driver to do so and returns its registration id.
    pub fn add(&self, channel: &str) -> Result<i64, ClientError> {
        let id = self.async_add(channel)?;
        self.wait(id).map(|()| id)
    }

    /// Removes a destination by its channel and waits for the driver to do so.
    pub fn remove(&self, channel: &str) -> Result<(), ClientError> {
        self.wait(self.async_remove(channel)?)
    }

    /// Removes a destination by its registration id and waits for the driver to do so. Other drivers may support this
    /// for publications only.
    pub fn remove_by_id(&self, destination_registration_id: i64) -> Result<(), ClientError> {
        self.wait(self.async_remove_by_id(destination_registration_id)?)
    }

    /// As [`Self::add`] without waiting.
    pub fn async_add(&self, channel: &str) -> Result<i64, ClientError> {
        let registration_id = self.registration_id;
        self.open()?
            .request("add destination", &|client_id, correlation_id| match self.owner {
                Owner::Publication => Command::AddDestination {
                    client_id,
                    correlation_id,
                    registration_id,
                    channel: channel.into(),
                },
                Owner::Subscription => Command::AddReceiveDestination {
                    client_id,
                    correlation_id,
                    registration_id,
                    channel: channel.into(),
                },
            })
    }

    /// As [`Self::remove`] without waiting.
    pub fn async_remove(&self, channel: &str) -> Result<i64, ClientError> {
        let registration_id = self.registration_id;
        self.open()?.request(
            "remove destination",
            &|client_id, correlation_id| match self.owner {
                Owner::Publication => Command::RemoveDestination {
                    client_id,
                    correlation_id,
                    registration_id,
                    channel: channel.into(),
                },
                Owner::Subscription => Command::RemoveReceiveDestination {
                    client_id,
                    correlation_id,
                    registration_id,
                    channel: channel.into(),
                },
            },
        )
    }

    /// As [`Self::remove_by_id`] without waiting.
    pub fn async_remove_by_id(&self, destination_registration_id: i64) -> Result<i64, ClientError> {
        let registration_id = self.registration_id;
        self.open()?
            .request("remove destination", &|client_id, correlation_id| {
                Command::RemoveDestinationById {
                    client_id,
                    correlation_id,
                    registration_id,
                    destination_registration_id,
                }
            })
    }

    fn open(&self) -> Result<Arc<dyn ConductorProxy>, ClientError> {
        let what = match self.owner {
            Owner::Publication => "publication",
            Owner::Subscription => "subscription",
        };
        conductor_proxy::open(self.conductor, self.is_open, what)
    }

    fn wait(&self, correlation_id: i64) -> Result<(), ClientError> {
        conductor_proxy::open(self.conductor, true, "client")?.wait_for(correlation_id)
    }
}
