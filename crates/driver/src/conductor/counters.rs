//! Allocation of the driver's counters: keys, labels and owners as every tool expects them.

use std::collections::HashSet;

use headrace_buffers::counters::{Counter, CountersManager, type_ids};
use headrace_protocol::text::truncated;

use crate::errors::CommandError;

/// How datagrams of a channel travel: 0 cut and joined by the kernel, 1 several a call, 2 one a call. An id of
/// this driver's own, in the range that applications use.
pub(crate) const OFFLOAD_MODE: i32 = 2101;

/// Repairs that the sender sent of one stream. An id of this driver's own as well.
pub(crate) const SENDER_RETRANSMITS: i32 = 2106;

/// What the counters of one stream say about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamKey<'a> {
    /// Registration id of the resource; correlation id of the image for `rcv-*`.
    pub(crate) registration_id: i64,
    pub(crate) owner_id: i64,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) channel: &'a str,
}

/// Owner of a counter that no client owns.
pub(crate) const NO_OWNER: i64 = -1;

impl StreamKey<'_> {
    /// The same stream, for a counter that is the driver's own.
    pub(crate) fn of_driver(self) -> Self {
        Self {
            owner_id: NO_OWNER,
            ..self
        }
    }
}

/// Longest channel kept in the key of a stream counter.
const STREAM_CHANNEL_LENGTH_MAX: usize = 92;
/// Longest channel kept in the key of a channel counter.
const CHANNEL_LENGTH_MAX: usize = 108;
/// Longest text kept in the label, beyond which the join position is left out.
const LABEL_LENGTH_FOR_SUFFIX_MAX: usize = 360;

/// Allocates and frees counters at the time of the current duty cycle.
pub(crate) struct Counters {
    manager: CountersManager,
    /// Those that live as long as the driver, because clients asked for that.
    static_ids: HashSet<i32>,
    now_ms: i64,
}

impl Counters {
    pub(crate) fn new(manager: CountersManager) -> Self {
        Self {
            manager,
            static_ids: HashSet::new(),
            now_ms: 0,
        }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.now_ms
    }

    pub(crate) fn set_time(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
    }

    /// A counter with nothing but what is given.
    pub(crate) fn allocate(
        &mut self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
        owner_id: i64,
    ) -> Result<Counter, CommandError> {
        let id = self
            .manager
            .allocate(type_id, key, label, self.now_ms)
            .map_err(|error| {
                CommandError::generic(format!("unable to allocate counter label={label}: {error}"))
            })?;
        self.manager.set_registration_id(id, registration_id);
        self.manager.set_owner_id(id, owner_id);
        Ok(self.manager.counter(id))
    }

    /// A counter of one stream, such as `pub-lmt`, starting at `value`.
    pub(crate) fn stream(
        &mut self,
        type_id: i32,
        name: &str,
        stream: StreamKey<'_>,
        value: i64,
    ) -> Result<Counter, CommandError> {
        let label = stream_label(name, stream);
        let counter = self.allocate(
            type_id,
            &stream_key(stream),
            &label,
            stream.registration_id,
            stream.owner_id,
        )?;
        counter.set_release(value);
        Ok(counter)
    }

    /// Several counters of one stream, all or none: type id, name and first value of each.
    pub(crate) fn stream_set<const COUNT: usize>(
        &mut self,
        stream: StreamKey<'_>,
        rows: [(i32, &str, i64); COUNT],
    ) -> Result<[Counter; COUNT], CommandError> {
        let mut made = Vec::with_capacity(COUNT);
        for (type_id, name, value) in rows {
            match self.stream(type_id, name, stream, value) {
                Ok(counter) => made.push(counter),
                Err(error) => {
                    self.free_all(&made);
                    return Err(error);
                }
            }
        }
        Ok(made.try_into().expect("one counter was made for each row"))
    }

    /// The position of one subscription on the stream `image_correlation_id`.
    pub(crate) fn subscriber_position(
        &mut self,
        subscription: StreamKey<'_>,
        image_correlation_id: i64,
        join_position: i64,
    ) -> Result<Counter, CommandError> {
        let mut label = stream_label("sub-pos", subscription);
        if label.len() < LABEL_LENGTH_FOR_SUFFIX_MAX {
            label.push_str(&format!(" @{join_position}"));
        }
        let key = stream_key(subscription);
        let counter = self.allocate(
            type_ids::SUBSCRIBER_POSITION,
            &key,
            &label,
            subscription.registration_id,
            subscription.owner_id,
        )?;
        self.manager.set_reference_id(counter.id(), image_correlation_id);
        counter.set_release(join_position);
        Ok(counter)
    }

    /// The status of a channel, `snd-channel` or `rcv-channel`.
    pub(crate) fn channel_status(
        &mut self,
        type_id: i32,
        name: &str,
        registration_id: i64,
        channel: &str,
    ) -> Result<Counter, CommandError> {
        let text = truncated(channel, CHANNEL_LENGTH_MAX);
        let mut key = (text.len() as i32).to_le_bytes().to_vec();
        key.extend_from_slice(text.as_bytes());
        self.allocate(type_id, &key, &format!("{name}: {channel}"), registration_id, 0)
    }

    /// The address a channel is bound to.
    pub(crate) fn local_address(
        &mut self,
        name: &str,
        channel_status_id: i32,
        registration_id: i64,
        address: &str,
    ) -> Result<Counter, CommandError> {
        let type_id = type_ids::LOCAL_SOCKET_ADDRESS;
        self.address(type_id, name, channel_status_id, registration_id, address)
    }

    /// An address that has to do with a channel.
    pub(crate) fn address(
        &mut self,
        type_id: i32,
        name: &str,
        channel_status_id: i32,
        registration_id: i64,
        address: &str,
    ) -> Result<Counter, CommandError> {
        let mut key = channel_status_id.to_le_bytes().to_vec();
        key.extend_from_slice(&(address.len() as i32).to_le_bytes());
        key.extend_from_slice(address.as_bytes());
        let label = format!("{name}: {channel_status_id} {address}");
        self.allocate(type_id, &key, &label, registration_id, 0)
    }

    /// The allocated counter of a type and registration id.
    pub(crate) fn find(&self, type_id: i32, registration_id: i64) -> Option<i32> {
        self.manager.reader().find(type_id, registration_id)
    }

    /// A counter that outlives the client that asks for it.
    pub(crate) fn allocate_static(
        &mut self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<i32, CommandError> {
        let counter_id = self
            .allocate(type_id, key, label, registration_id, NO_OWNER)?
            .id();
        self.static_ids.insert(counter_id);
        Ok(counter_id)
    }

    /// Whether clients asked for the counter as one that outlives them. The driver's own have no owner either.
    pub(crate) fn is_static(&self, counter_id: i32) -> bool {
        self.static_ids.contains(&counter_id)
    }

    /// Replaces a label.
    pub(crate) fn set_label(&mut self, id: i32, label: &str) {
        self.manager.set_label(id, label);
    }

    /// Replaces what the label of a stream's counter says after the stream.
    pub(crate) fn set_stream_label(&mut self, id: i32, name: &str, stream: StreamKey<'_>, suffix: &str) {
        self.set_label(id, &(stream_label(name, stream) + suffix));
    }

    /// Adds to the end of a label.
    pub(crate) fn append_to_label(&mut self, id: i32, text: &str) {
        self.manager.append_to_label(id, text);
    }

    /// What a label says now; a client may have added to it.
    pub(crate) fn label(&self, id: i32) -> Option<String> {
        self.manager.reader().label(id)
    }

    /// Gives a counter back; its id rests before it is used again.
    pub(crate) fn free(&mut self, id: i32) {
        self.manager.free(id, self.now_ms);
    }

    pub(crate) fn free_all<'a>(&mut self, counters: impl IntoIterator<Item = &'a Counter>) {
        for counter in counters {
            self.free(counter.id());
        }
    }
}

fn stream_label(name: &str, stream: StreamKey<'_>) -> String {
    format!(
        "{name}: {} {} {} {}",
        stream.registration_id, stream.session_id, stream.stream_id, stream.channel
    )
}

fn stream_key(stream: StreamKey<'_>) -> Vec<u8> {
    let channel = truncated(stream.channel, STREAM_CHANNEL_LENGTH_MAX);
    let mut key = Vec::with_capacity(112);
    key.extend_from_slice(&stream.registration_id.to_le_bytes());
    key.extend_from_slice(&stream.session_id.to_le_bytes());
    key.extend_from_slice(&stream.stream_id.to_le_bytes());
    key.extend_from_slice(&(channel.len() as i32).to_le_bytes());
    key.extend_from_slice(channel.as_bytes());
    key
}
