//! What must hold between a channel and an endpoint that is open already.

use super::{UdpChannel, UdpChannelKind};
use crate::channel::{ChannelDefaults, ChannelError, keys};

impl UdpChannel {
    /// True if this channel names the endpoint of `existing` by one of the tags that the endpoint has.
    ///
    /// Fails if the tag is the same and the addresses are not. Addresses are compared as they resolve now.
    pub fn matches_tag(&self, existing: &UdpChannel, tags: &[i64]) -> Result<bool, ChannelError> {
        let Some(tag) = self.channel_tag.filter(|tag| tags.contains(tag)) else {
            return Ok(false);
        };
        if !self.kind.has_peer() && self.kind != existing.kind {
            return Err(ChannelError::generic(format!(
                "matching tag={tag} has mismatched control-mode: {} <> {}",
                self.uri, existing.uri
            )));
        }
        if self.is_wildcard() || (self.remote == existing.remote && self.local == existing.local) {
            return Ok(true);
        }
        Err(ChannelError::generic(format!(
            "matching tag={tag} has mismatched endpoint or control: {} <> {}",
            self.uri, existing.uri
        )))
    }

    /// True if this channel and `existing` share an endpoint by their addresses. One that was opened without a tag takes
    /// channels of any.
    pub fn matches_canonical_form(&self, existing: &UdpChannel) -> bool {
        let tags_differ =
            matches!((self.channel_tag, existing.channel_tag), (Some(own), Some(other)) if own != other);
        !tags_differ && self.canonical_form == existing.canonical_form
    }

    /// Fails if the channel can only refer to an endpoint, and there is none it refers to.
    pub fn check_original(&self) -> Result<(), ChannelError> {
        let needs_no_address = matches!(self.kind, UdpChannelKind::Manual | UdpChannelKind::Response);
        if self.is_wildcard() && !needs_no_address {
            return Err(ChannelError::generic(format!(
                "URI must have explicit control, endpoint, or be manual control-mode when original: {}",
                self.uri
            )));
        }
        Ok(())
    }

    /// Fails if only one of the two carries responses: the streams of such an endpoint go each to an address of its
    /// own.
    pub fn check_carries_responses(&self, existing: &UdpChannel) -> Result<(), ChannelError> {
        let [own, other] = [self, existing].map(|channel| channel.kind == UdpChannelKind::Response);
        if own != other && !self.is_wildcard() {
            return Err(ChannelError::generic(format!(
                "option conflicts with existing publication: control-mode=response must be on both or on neither: \
                 existingChannel={} channel={}",
                existing.uri, self.uri
            )));
        }
        Ok(())
    }

    /// Send buffer length to ask the system for; 0 leaves it to the system.
    pub fn effective_sndbuf_length(&self, defaults: &ChannelDefaults) -> usize {
        given(self.socket_sndbuf_length).unwrap_or(defaults.socket_sndbuf_length)
    }

    /// Receive buffer length to ask the system for; 0 leaves it to the system.
    pub fn effective_rcvbuf_length(&self, defaults: &ChannelDefaults) -> usize {
        given(self.socket_rcvbuf_length).unwrap_or(defaults.socket_rcvbuf_length)
    }

    /// Fails if the channel gives socket buffer lengths that the open endpoint of `existing` does not have.
    pub fn check_socket_buffers(
        &self,
        existing: &UdpChannel,
        defaults: &ChannelDefaults,
    ) -> Result<(), ChannelError> {
        for (key, own, other) in [
            (
                keys::SOCKET_SNDBUF,
                self.socket_sndbuf_length,
                existing.effective_sndbuf_length(defaults),
            ),
            (
                keys::SOCKET_RCVBUF,
                self.socket_rcvbuf_length,
                existing.effective_rcvbuf_length(defaults),
            ),
        ] {
            if let Some(own) = given(own)
                && own != other
            {
                let other = if other == 0 {
                    "OS default".to_owned()
                } else {
                    other.to_string()
                };
                return Err(ChannelError::generic(format!(
                    "{key}={own} does not match existing value of {other}: existingChannel={} channel={}",
                    existing.uri, self.uri
                )));
            }
        }
        Ok(())
    }

    /// Fails if a datagram of the publication does not fit the send buffer.
    pub fn check_mtu(&self, mtu_length: usize, socket_sndbuf_length: usize) -> Result<(), ChannelError> {
        if mtu_length > socket_sndbuf_length {
            return Err(ChannelError::generic(format!(
                "MTU greater than SO_SNDBUF for channel: mtu={mtu_length} so-sndbuf={socket_sndbuf_length} channel={}",
                self.uri
            )));
        }
        Ok(())
    }

    /// Fails if what the receiver grants does not fit the receive buffer.
    pub fn check_receiver_window(
        &self,
        window_length: i32,
        socket_rcvbuf_length: usize,
    ) -> Result<(), ChannelError> {
        if window_length as usize > socket_rcvbuf_length {
            return Err(ChannelError::generic(format!(
                "Initial window greater than SO_RCVBUF for channel: rcv-wnd={window_length} \
                 so-rcvbuf={socket_rcvbuf_length} channel={}",
                self.uri
            )));
        }
        Ok(())
    }
}

fn given(length: Option<usize>) -> Option<usize> {
    length.filter(|&length| length != 0)
}
