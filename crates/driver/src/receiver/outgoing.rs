//! Sends control frames back to senders; counts and reports those that fail.

use super::connections::Source;
use super::counters::ReceiverCounters;
use super::paths::Paths;
use crate::proxy::ConductorProxy;

/// Sends the feedback and the questions of a receive endpoint.
pub(super) struct Outgoing<'a> {
    pub(super) paths: &'a Paths,
    pub(super) counters: &'a ReceiverCounters,
    pub(super) conductor: &'a ConductorProxy,
    pub(super) receiver_id: i64,
    pub(super) group_tag: Option<i64>,
}

impl Outgoing<'_> {
    /// Sends a control frame back on a path; a short send is counted, and repaired by whatever timer sent the frame.
    pub(super) fn send_frame(&mut self, frame: &[u8], to: Source) {
        let Some(path) = self.paths.get(to.path) else {
            return; // a client removed it
        };
        let address = to.address;
        let sent = match path.spec.transport.send(frame, Some(address)) {
            Ok(sent) => sent,
            Err(error) => {
                self.conductor
                    .report(format!("WARN - failed to send datagram to {address}: {error}"));
                0
            }
        };
        if sent < frame.len() {
            self.counters.short_sends.get_and_add(1);
        }
    }
}
