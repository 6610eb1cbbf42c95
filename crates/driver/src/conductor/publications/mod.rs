//! The room of publications: streams that clients of this driver publish, over IPC or over the network.
//!
//! | file | has |
//! |---|---|
//! | `request.rs` | what a client asks for, and what is chosen for it |
//! | `stream.rs` | what all publications have in common |
//! | `table.rs` | what is done to all, whatever the kind |
//! | `publication.rs` | what the kinds do differently |
//! | `ipc.rs`, `network.rs` | the kinds |

mod ipc;
mod network;
mod publication;
mod request;
mod session_ids;
mod stream;
mod table;
mod unblock;

use headrace_buffers::log::LogBuffers;
use headrace_protocol::channel::PublicationParams;

pub(crate) use ipc::IpcPublication;
pub(crate) use network::{NetworkPublication, NetworkSpec};
pub(crate) use publication::Publication;
pub(crate) use request::{PublicationPlan, PublicationRequest};
pub(crate) use session_ids::SessionIds;
pub(crate) use stream::{PublicationState, RESPONDED_TWICE, Stream, StreamCounters};
pub(crate) use table::Table;

use super::channels::Channels;
use super::context::Context;
use super::subscriptions::{Subscription, Subscriptions};
use crate::errors::CommandError;
use crate::proxy::SenderCommand;

/// All publications, and where their session ids come from.
pub(crate) struct Publications {
    pub(crate) ipc: Table<IpcPublication>,
    pub(crate) network: Table<NetworkPublication>,
    pub(crate) session_ids: SessionIds,
}

impl Publications {
    pub(crate) fn new(session_ids: SessionIds) -> Self {
        Self {
            ipc: Table::default(),
            network: Table::default(),
            session_ids,
        }
    }

    /// An entity tag names one publication.
    pub(crate) fn check_entity_tag(
        &self,
        params: &PublicationParams,
        channel: &str,
    ) -> Result<(), CommandError> {
        match params.tags.entity {
            Some(tag) if self.ipc.has_tag(tag) || self.network.has_tag(tag) => Err(
                CommandError::invalid_channel(format!("entityTag={tag} already in use, channel={channel}")),
            ),
            _ => Ok(()),
        }
    }

    /// An id that no publication of the stream uses, on any channel.
    pub(crate) fn next_session_id(&mut self, stream_id: i32) -> i32 {
        let Self {
            ipc,
            network,
            session_ids,
        } = self;
        session_ids.allocate(|candidate| {
            ipc.is_session_id_used(candidate, stream_id) || network.is_session_id_used(candidate, stream_id)
        })
    }

    /// Drops a client's hold on a publication; a revoked one ends for all.
    pub(crate) fn release(&mut self, cx: &mut Context, registration_id: i64, revoke: bool) {
        if !self.ipc.release(cx, registration_id, revoke) {
            self.network.release(cx, registration_id, revoke);
        }
    }

    /// Links a new subscription to the publications it wants.
    pub(crate) fn link(&mut self, cx: &mut Context, subscription: &Subscription) {
        self.ipc.link(cx, subscription);
        self.network.link(cx, subscription);
    }

    /// True if one is there that a subscription reads or would read.
    pub(crate) fn has_for(&self, subscription: &Subscription) -> bool {
        self.ipc.has_for(subscription) || self.network.has_for(subscription)
    }

    /// Lets go of what a subscription reads.
    pub(crate) fn unlink(&mut self, cx: &mut Context, subscription_id: i64) {
        self.ipc.unlink(cx, subscription_id);
        self.network.unlink(cx, subscription_id);
    }

    /// Lets go of what a subscription no longer wants, of whom a destination is gone, and tells its reader.
    pub(crate) fn unlink_unwanted(
        &mut self,
        cx: &mut Context,
        subscription_id: i64,
        subscriptions: &Subscriptions,
    ) {
        self.ipc.unlink_unwanted(cx, subscription_id, subscriptions);
        self.network.unlink_unwanted(cx, subscription_id, subscriptions);
    }

    /// Moves every limit; returns the work done.
    #[inline]
    pub(crate) fn update_limits(&mut self) -> usize {
        self.network.update_limits() + self.ipc.update_limits()
    }

    /// The timer's step of IPC publications. Those that are done are freed: no other agent knows them.
    pub(crate) fn tick_ipc(&mut self, cx: &mut Context, subscriptions: &mut Subscriptions) {
        self.ipc.bring_waiting_responses(cx, subscriptions);
        if !self.ipc.tick(cx, subscriptions).is_empty() {
            for publication in self
                .ipc
                .take(|publication| publication.stream().state() == PublicationState::Done)
            {
                publication.into_stream().free(cx);
            }
        }
    }

    /// The timer's step of network publications. Those that are done are taken from the sender.
    pub(crate) fn tick_network(
        &mut self,
        cx: &mut Context,
        subscriptions: &Subscriptions,
        channels: &mut Channels,
    ) {
        for index in self.network.tick(cx, subscriptions) {
            let publication = self.network.get(index);
            let endpoint = publication.endpoint();
            cx.sender.send(SenderCommand::RemovePublication {
                endpoint,
                registration_id: publication.stream().spec.registration_id,
            });
            channels.send.release(cx, endpoint);
        }
    }

    /// The sender no longer touches a publication.
    pub(crate) fn on_released(&mut self, cx: &mut Context, registration_id: i64) {
        let released = self.network.take(|publication| {
            let stream = publication.stream();
            stream.spec.registration_id == registration_id && stream.state() == PublicationState::Done
        });
        for publication in released {
            publication.into_stream().free(cx);
        }
    }

    /// The logs that publishers of this host write to.
    pub(crate) fn logs(&self) -> impl Iterator<Item = &LogBuffers> {
        self.ipc
            .streams()
            .chain(self.network.streams())
            .map(|stream| &stream.spec.log)
    }
}
