//! Where drivers write times into the messages of a channel.

use std::fmt;

use super::unparsable;
use crate::channel::{ChannelError, ChannelUri, keys};
use crate::frame::{DATA_HEADER_LENGTH, TIMESTAMP_LENGTH};

/// The header's reserved value, counted from the start of the payload.
const RESERVED_VALUE: i32 = -8;
const RESERVED_VALUE_NAME: &str = "reserved";
const TIMESTAMP_OFFSET_RULE: &str = "reserved, or a number of bytes from the start of the payload";

/// Place of a time in a message: eight bytes of its payload, or the reserved value of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampOffset(i32);

impl TimestampOffset {
    /// What the channel says under `key`. Negative numbers, except the reserved value's own, ask for no time.
    pub(crate) fn from_uri(uri: &ChannelUri, key: &str) -> Result<Option<Self>, ChannelError> {
        let offset = match uri.get(key) {
            None => return Ok(None),
            Some(RESERVED_VALUE_NAME) => RESERVED_VALUE,
            Some(value) => value
                .parse()
                .map_err(|_| unparsable(uri, key, value, TIMESTAMP_OFFSET_RULE))?,
        };
        Ok(Some(Self(offset)).filter(|_| offset >= 0 || offset == RESERVED_VALUE))
    }

    /// Where it lies, counted from the start of the frame.
    pub fn in_frame(self) -> usize {
        DATA_HEADER_LENGTH.wrapping_add_signed(self.0 as isize)
    }

    fn overlaps(self, other: Self) -> bool {
        self.in_frame().abs_diff(other.in_frame()) < TIMESTAMP_LENGTH
    }
}

impl fmt::Display for TimestampOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            RESERVED_VALUE => f.write_str(RESERVED_VALUE_NAME),
            offset => write!(f, "{offset}"),
        }
    }
}

/// Times that a receiver writes into what arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveTimestamps {
    /// When the kernel got the datagram.
    pub media: Option<TimestampOffset>,
    /// When the receiver took it from the socket.
    pub channel: Option<TimestampOffset>,
}

impl ReceiveTimestamps {
    pub(super) fn from_uri(uri: &ChannelUri) -> Result<Self, ChannelError> {
        let stamps = Self {
            media: TimestampOffset::from_uri(uri, keys::MEDIA_RECEIVE_TIMESTAMP_OFFSET)?,
            channel: TimestampOffset::from_uri(uri, keys::CHANNEL_RECEIVE_TIMESTAMP_OFFSET)?,
        };
        match (stamps.media, stamps.channel) {
            (Some(media), Some(channel)) if media.overlaps(channel) => Err(ChannelError::generic(format!(
                "{}={media} and {}={channel} overlap: a timestamp takes {TIMESTAMP_LENGTH} bytes, channel={uri}",
                keys::MEDIA_RECEIVE_TIMESTAMP_OFFSET,
                keys::CHANNEL_RECEIVE_TIMESTAMP_OFFSET,
            ))),
            _ => Ok(stamps),
        }
    }

    /// Fails if the open endpoint of `existing_channel` writes other times than the channel asks for.
    pub fn check_matches(
        self,
        channel: &str,
        existing: Self,
        existing_channel: &str,
    ) -> Result<(), ChannelError> {
        let media = keys::MEDIA_RECEIVE_TIMESTAMP_OFFSET;
        check_same(media, self.media, channel, existing.media, existing_channel)?;
        let receive = keys::CHANNEL_RECEIVE_TIMESTAMP_OFFSET;
        check_same(receive, self.channel, channel, existing.channel, existing_channel)
    }
}

/// Fails if the open endpoint of `existing_channel` writes the time of sending elsewhere, or not at all.
pub fn check_send_timestamp(
    own: Option<TimestampOffset>,
    channel: &str,
    existing: Option<TimestampOffset>,
    existing_channel: &str,
) -> Result<(), ChannelError> {
    let key = keys::CHANNEL_SEND_TIMESTAMP_OFFSET;
    check_same(key, own, channel, existing, existing_channel)
}

/// The text says "subscription" for publications, too: peers look for it.
fn check_same(
    key: &str,
    own: Option<TimestampOffset>,
    channel: &str,
    existing: Option<TimestampOffset>,
    existing_channel: &str,
) -> Result<(), ChannelError> {
    if own == existing {
        return Ok(());
    }
    let shown = |offset: Option<TimestampOffset>| offset.map_or("none".to_owned(), |at| at.to_string());
    Err(ChannelError::generic(format!(
        "option conflicts with existing subscription: {key}={} existing={} existingChannel={existing_channel} \
         channel={channel}",
        shown(own),
        shown(existing),
    )))
}
