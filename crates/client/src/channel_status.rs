//! Status and addresses of a channel, as the driver shows them in counters.

use std::sync::{Arc, Weak};

use headrace_buffers::counters::{CountersReader, type_ids};

use crate::conductor_proxy::ConductorProxy;

/// State of the endpoint of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelStatus {
    /// Being set up.
    Initializing,
    /// In use. Also the status of channels without an endpoint, such as IPC.
    Active,
    /// Being closed.
    Closing,
    /// The socket failed; the driver's error log says how.
    Errored,
    /// The publication or subscription itself is closed.
    Closed,
}

/// The endpoint of a publication's or a subscription's channel.
pub struct EndpointStatus {
    /// None once the publication or subscription is closed.
    conductor: Option<Arc<dyn ConductorProxy>>,
    counter_id: i32,
}

impl EndpointStatus {
    pub(crate) fn new(conductor: &Weak<dyn ConductorProxy>, counter_id: i32, is_open: bool) -> Self {
        Self {
            conductor: conductor.upgrade().filter(|_| is_open),
            counter_id,
        }
    }

    /// Id of the counter with the status; -1 for channels that have none, such as IPC.
    pub fn counter_id(&self) -> i32 {
        self.counter_id
    }

    /// State of the endpoint now.
    pub fn state(&self) -> ChannelStatus {
        match &self.conductor {
            Some(conductor) => channel_status(conductor.counters(), self.counter_id),
            None => ChannelStatus::Closed,
        }
    }

    /// Addresses the endpoint's sockets are bound to, once it is active.
    pub fn local_socket_addresses(&self) -> Vec<String> {
        match &self.conductor {
            Some(conductor) => local_socket_addresses(conductor.counters(), self.counter_id),
            None => Vec::new(),
        }
    }
}

/// No status counter is allocated.
pub(crate) const NO_STATUS_COUNTER: i32 = -1;

const STATUS_ACTIVE: i64 = 1;

/// Address counters: id of the status counter, then the address as counted text.
const KEY_STATUS_ID_OFFSET: usize = 0;
const KEY_ADDRESS_LENGTH_OFFSET: usize = 4;
const KEY_ADDRESS_OFFSET: usize = 8;

fn channel_status(counters: &CountersReader, status_id: i32) -> ChannelStatus {
    if status_id == NO_STATUS_COUNTER {
        return ChannelStatus::Active;
    }
    match counters.value(status_id) {
        Some(0) | None => ChannelStatus::Initializing,
        Some(STATUS_ACTIVE) => ChannelStatus::Active,
        Some(2) => ChannelStatus::Closing,
        Some(_) => ChannelStatus::Errored,
    }
}

/// Addresses the channel's sockets are bound to, none while the channel is not active.
fn local_socket_addresses(counters: &CountersReader, status_id: i32) -> Vec<String> {
    let mut addresses = Vec::new();
    if status_id == NO_STATUS_COUNTER || counters.value(status_id) != Some(STATUS_ACTIVE) {
        return addresses;
    }
    counters.for_each(|record| {
        if record.type_id != type_ids::LOCAL_SOCKET_ADDRESS || record.value != STATUS_ACTIVE {
            return;
        }
        if key_i32(&record.key, KEY_STATUS_ID_OFFSET) == status_id {
            addresses.extend(key_address(&record.key));
        }
    });
    addresses
}

/// Subscriptions of this host that read the log of a publication.
pub(crate) fn reader_count(counters: &CountersReader, log_registration_id: i64) -> usize {
    let mut count = 0;
    counters.for_each(|record| {
        let reads_it =
            record.type_id == type_ids::SUBSCRIBER_POSITION && record.reference_id == log_registration_id;
        count += usize::from(reads_it);
    });
    count
}

/// Receivers of a publication; nothing where flow control does not count them.
pub(crate) fn receiver_count(counters: &CountersReader, log_registration_id: i64) -> Option<usize> {
    let id = counters.find(type_ids::FLOW_CONTROL_RECEIVERS, log_registration_id)?;
    usize::try_from(counters.value(id)?).ok()
}

fn key_i32(key: &[u8; 112], offset: usize) -> i32 {
    i32::from_le_bytes([key[offset], key[offset + 1], key[offset + 2], key[offset + 3]])
}

// The length was written by another process.
fn key_address(key: &[u8; 112]) -> Option<String> {
    let length = usize::try_from(key_i32(key, KEY_ADDRESS_LENGTH_OFFSET)).ok()?;
    let bytes = key.get(KEY_ADDRESS_OFFSET..KEY_ADDRESS_OFFSET.checked_add(length)?)?;
    let text = std::str::from_utf8(bytes).ok()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// `channel` with port 0 of its endpoint replaced by the one the system chose, once that is known.
pub(crate) fn resolve_endpoint_port(channel: &str, bound: Option<&str>) -> Option<String> {
    let endpoint = channel
        .split(['?', '|'])
        .find_map(|parameter| parameter.strip_prefix("endpoint="))?;
    if !endpoint.ends_with(":0") {
        return Some(channel.to_owned());
    }
    let (_, port) = bound?.rsplit_once(':')?;
    let resolved = format!("endpoint={}:{port}", &endpoint[..endpoint.len() - 2]);
    Some(channel.replacen(&format!("endpoint={endpoint}"), &resolved, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_port_is_replaced_by_the_bound_one() {
        let channel = "aeron:udp?term-length=64k|endpoint=127.0.0.1:0|alias=a";
        assert_eq!(
            resolve_endpoint_port(channel, Some("127.0.0.1:40123")).as_deref(),
            Some("aeron:udp?term-length=64k|endpoint=127.0.0.1:40123|alias=a")
        );
        assert_eq!(resolve_endpoint_port(channel, None), None);
        let fixed = "aeron:udp?endpoint=127.0.0.1:4000";
        assert_eq!(resolve_endpoint_port(fixed, None).as_deref(), Some(fixed));
        let ipv6 = "aeron:udp?endpoint=[::1]:0";
        assert_eq!(
            resolve_endpoint_port(ipv6, Some("[::1]:4001")).as_deref(),
            Some("aeron:udp?endpoint=[::1]:4001")
        );
    }

    #[test]
    fn an_address_longer_than_its_key_is_ignored() {
        let mut key = [0; 112];
        key[4..8].copy_from_slice(&105i32.to_le_bytes());
        assert_eq!(key_address(&key), None);
        key[4..8].copy_from_slice(&(-1i32).to_le_bytes());
        assert_eq!(key_address(&key), None);
        key[4..8].copy_from_slice(&4i32.to_le_bytes());
        key[8..12].copy_from_slice(b"a:12");
        assert_eq!(key_address(&key).as_deref(), Some("a:12"));
    }
}
