//! The way back to senders: control frames, counted and reported when they do not go.

use std::net::SocketAddr;

use super::counters::ReceiverCounters;
use crate::proxy::ConductorProxy;
use crate::transport::Transport;

/// What a receive endpoint answers with.
pub(super) struct Outgoing<'a> {
    pub(super) transport: &'a dyn Transport,
    pub(super) counters: &'a ReceiverCounters,
    pub(super) conductor: &'a ConductorProxy,
    pub(super) receiver_id: i64,
    pub(super) group_tag: Option<i64>,
}

impl Outgoing<'_> {
    /// Sends a control frame; a short send is counted, and repaired by whatever timer sent the frame.
    pub(super) fn send_frame(&mut self, frame: &[u8], to: SocketAddr) {
        let sent = match self.transport.send(frame, Some(to)) {
            Ok(sent) => sent,
            Err(error) => {
                self.conductor
                    .report(format!("WARN - failed to send datagram to {to}: {error}"));
                0
            }
        };
        if sent < frame.len() {
            self.counters.short_sends.get_and_add(1);
        }
    }
}
