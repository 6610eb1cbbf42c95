//! The room of channels: sockets handed to the sender or the receiver, who uses them, and their ports.

mod destination_counters;
mod endpoint;
mod interests;
mod ports;
mod receive;
mod receive_paths;
mod send;
mod sockets;
mod unresolved;

use std::sync::Arc;

use headrace_protocol::channel::UdpChannel;

pub(crate) use endpoint::ChannelState;
pub(crate) use interests::{Interest, Sessions};
pub(crate) use receive::{DestinationRequest, ReceiveChannels, ReceiveRequest};
pub(crate) use send::{SendChannel, SendChannels, SendRequest, wanted_send_buffer_length};

use super::context::Context;
use crate::config::DriverConfig;
use crate::endpoint::{EndpointId, GroupSockets};
use crate::environment::Network;
use crate::errors::CommandError;
use ports::Ports;
use sockets::Sockets;

/// All open channels.
pub(crate) struct Channels {
    pub(crate) send: SendChannels,
    pub(crate) receive: ReceiveChannels,
    sockets: Sockets,
}

impl Channels {
    pub(crate) fn new(config: &DriverConfig, network: Arc<dyn Network>, first_receiver_id: i64) -> Self {
        Self {
            send: SendChannels::new(Ports::new(config.sender_wildcard_port_range)),
            receive: ReceiveChannels::new(Ports::new(config.receiver_wildcard_port_range), first_receiver_id),
            sockets: Sockets::new(network),
        }
    }

    /// Adds a publication to a channel, which is opened if it is the first.
    pub(crate) fn join_send(
        &mut self,
        cx: &mut Context,
        request: SendRequest<'_>,
    ) -> Result<&SendChannel, CommandError> {
        self.note_leaving();
        self.send.join(cx, &mut self.sockets, request)
    }

    /// Opens the sockets of a destination that a client adds to a send channel, if it is a group.
    pub(crate) fn open_send_group(
        &self,
        cx: &Context,
        id: EndpointId,
        destination: UdpChannel,
    ) -> Result<Option<GroupSockets>, CommandError> {
        self.send.open_group(cx, &self.sockets, id, destination)
    }

    /// Opens a channel for a first subscription.
    pub(crate) fn open_receive(
        &mut self,
        cx: &mut Context,
        request: ReceiveRequest,
    ) -> Result<EndpointId, CommandError> {
        self.note_leaving();
        self.receive.open(cx, &mut self.sockets, request)
    }

    /// Opens a socket for a destination that a client adds to a channel.
    pub(crate) fn add_receive_destination(
        &mut self,
        cx: &mut Context,
        request: DestinationRequest,
    ) -> Result<(), CommandError> {
        self.note_leaving();
        self.receive.add_destination(cx, &self.sockets, request)
    }

    fn note_leaving(&mut self) {
        let ports = self.send.leaving_ports().chain(self.receive.leaving_ports());
        self.sockets.note_leaving(ports);
    }
}
