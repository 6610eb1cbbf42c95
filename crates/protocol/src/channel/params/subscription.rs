//! Parameters of a subscription.

use super::defaults::{ChannelDefaults, GroupConsideration};
use super::publication::untethered_linger;
use super::response::is_response;
use super::sharing::told;
use super::timestamps::{ReceiveTimestamps, TimestampOffset};
use super::{Tags, boolean, duration_ns, number, size_i32};
use crate::channel::{ChannelError, ChannelUri, Media, keys, unsupported};

/// How a receiver finds the room that it grants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionControlKind {
    /// The same window always.
    #[default]
    Static,
    /// A window that shrinks with loss and grows with time.
    Cubic,
}

impl CongestionControlKind {
    fn from_uri(uri: &ChannelUri) -> Result<Self, ChannelError> {
        match uri.get(keys::CONGESTION_CONTROL) {
            None | Some("static") => Ok(Self::Static),
            Some("cubic") => Ok(Self::Cubic),
            Some(other) => Err(ChannelError::generic(format!(
                "unsupported congestion control : cc={other}, must be static or cubic, channel={uri}"
            ))),
        }
    }
}

/// Every parameter of a subscription, defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionParams {
    /// UDP or IPC.
    pub media: Media,
    /// Names of the transport and of the subscription.
    pub tags: Tags,
    /// The only session accepted, if the channel names one.
    pub session_id: Option<i32>,
    /// It reads responses: until the driver learns their session it wants no stream.
    pub is_response: bool,
    /// Stream id the channel names, for builders and tools.
    pub stream_id: Option<i32>,
    /// Ask for missing bytes; otherwise skip them.
    pub is_reliable: bool,
    /// Leave the blocks of images unallocated until written.
    pub is_sparse: bool,
    /// Hold the stream back when slow; otherwise be dropped from it.
    pub is_tethered: bool,
    /// Accept a stream again after it went inactive.
    pub is_rejoin: bool,
    /// Report loss as a group.
    pub group: GroupConsideration,
    /// Room granted to each sender, before it is cut to half the term.
    pub receiver_window_length: i32,
    /// The most that is granted to a sender on this host, where that is more: 0 if the channel gives a window.
    pub local_window_length: usize,
    /// How that room changes.
    pub congestion_control: CongestionControlKind,
    /// Group that status messages and error frames claim, if the channel names one.
    pub group_tag: Option<i64>,
    /// Delay before loss is reported, if the channel gives one.
    pub nak_delay_ns: Option<i64>,
    /// How long the subscriber may stay at the window's limit when not tethered.
    pub untethered_window_limit_timeout_ns: i64,
    /// How long it then lingers.
    pub untethered_linger_timeout_ns: i64,
    /// How long it then rests before it joins again.
    pub untethered_resting_timeout_ns: i64,
    /// Where the times of receiving are written. None for IPC and for spies, which receive nothing.
    pub receive_timestamps: ReceiveTimestamps,
    /// Name for people and tools.
    pub alias: Option<String>,
}

impl SubscriptionParams {
    /// Reads and checks everything the channel says. Fails with the code and text of the driver's reply.
    pub fn from_uri(uri: &ChannelUri, defaults: &ChannelDefaults) -> Result<Self, ChannelError> {
        Self::parsed(uri, defaults).map_err(|error| error.in_channel(uri))
    }

    fn parsed(uri: &ChannelUri, defaults: &ChannelDefaults) -> Result<Self, ChannelError> {
        unsupported::check(uri)?;
        let window_limit = duration_ns(uri, keys::UNTETHERED_WINDOW_LIMIT_TIMEOUT)?
            .unwrap_or(defaults.untethered_window_limit_timeout_ns);
        // A spy has no receiver, and IPC has no network: what is said of them there belongs to others.
        let has_receiver = uri.media() == Media::Udp && !uri.is_spy();
        let (congestion_control, group_tag, receive_timestamps) = if has_receiver {
            // That of sending may stand in a channel that both sides use: it is checked, and does nothing here.
            TimestampOffset::from_uri(uri, keys::CHANNEL_SEND_TIMESTAMP_OFFSET)?;
            (
                CongestionControlKind::from_uri(uri)?,
                number(uri, keys::GROUP_TAG)?,
                ReceiveTimestamps::from_uri(uri)?,
            )
        } else {
            Default::default()
        };
        let window_length = size_i32(uri, keys::RECEIVER_WINDOW)?;
        Ok(Self {
            media: uri.media(),
            tags: Tags::from_uri(uri)?,
            session_id: number(uri, keys::SESSION_ID)?,
            // A spy reads what a publication sends: it waits for no session.
            is_response: is_response(uri) && !uri.is_spy(),
            stream_id: number(uri, keys::STREAM_ID)?,
            is_reliable: boolean(uri, keys::RELIABLE)?.unwrap_or(defaults.is_reliable),
            is_sparse: boolean(uri, keys::SPARSE)?.unwrap_or(defaults.is_sparse),
            is_tethered: boolean(uri, keys::TETHER)?.unwrap_or(defaults.is_tethered),
            is_rejoin: boolean(uri, keys::REJOIN)?.unwrap_or(defaults.is_rejoin),
            group: uri
                .get(keys::GROUP)
                .map_or(defaults.group, GroupConsideration::parse),
            receiver_window_length: window_length.unwrap_or(defaults.receiver_window_length),
            local_window_length: window_length.map_or(defaults.local_window_length, |_| 0),
            congestion_control,
            group_tag,
            nak_delay_ns: duration_ns(uri, keys::NAK_DELAY)?,
            untethered_window_limit_timeout_ns: window_limit,
            untethered_linger_timeout_ns: untethered_linger(uri, defaults, window_limit)?,
            untethered_resting_timeout_ns: duration_ns(uri, keys::UNTETHERED_RESTING_TIMEOUT)?
                .unwrap_or(defaults.untethered_resting_timeout_ns),
            receive_timestamps,
            alias: uri.get(keys::ALIAS).map(str::to_owned),
        })
    }

    /// A sentence if the channel names another group than the open endpoint claims, whose receivers keep their own.
    pub fn group_tag_without_effect(&self, claimed: Option<i64>) -> Option<String> {
        let own = self.group_tag.filter(|_| self.group_tag != claimed)?;
        let key = keys::GROUP_TAG;
        let has = claimed.map_or_else(|| format!("without {key}"), |tag| format!("with {key}={tag}"));
        Some(format!(
            "channel parameter {key}={own} has no effect here: the endpoint was opened {has}; give all subscriptions to \
             the endpoint the same value"
        ))
    }

    /// One sentence for each parameter of the channel that has no effect, since the first subscription to the stream there
    /// says otherwise: its images are for all.
    pub fn without_effect(
        &self,
        channel: &ChannelUri,
        first: &SubscriptionParams,
        first_channel: &ChannelUri,
    ) -> Vec<String> {
        let window = |params: &Self| (params.receiver_window_length, params.local_window_length);
        let differs = [
            (keys::RECEIVER_WINDOW, window(self) != window(first)),
            (
                keys::CONGESTION_CONTROL,
                self.congestion_control != first.congestion_control,
            ),
            (keys::GROUP, self.group != first.group),
            (keys::NAK_DELAY, self.nak_delay_ns != first.nak_delay_ns),
            (keys::SPARSE, self.is_sparse != first.is_sparse),
            (
                keys::UNTETHERED_WINDOW_LIMIT_TIMEOUT,
                self.untethered_window_limit_timeout_ns != first.untethered_window_limit_timeout_ns,
            ),
            (
                keys::UNTETHERED_LINGER_TIMEOUT,
                self.untethered_linger_timeout_ns != first.untethered_linger_timeout_ns,
            ),
            (
                keys::UNTETHERED_RESTING_TIMEOUT,
                self.untethered_resting_timeout_ns != first.untethered_resting_timeout_ns,
            ),
        ];
        let what = "the first subscription to the stream on this channel was added";
        let advice = "give all subscriptions to the stream the same value";
        told(differs, channel, first_channel, what, advice)
    }

    /// Fails if this subscription cannot share the endpoint, stream and session filter of an existing one.
    pub fn check_matches(
        &self,
        channel: &str,
        existing: &SubscriptionParams,
        existing_channel: &str,
    ) -> Result<(), ChannelError> {
        for (key, own, other) in [
            (keys::RELIABLE, self.is_reliable, existing.is_reliable),
            (keys::REJOIN, self.is_rejoin, existing.is_rejoin),
            ("isResponse", self.is_response, existing.is_response),
        ] {
            if own != other {
                return Err(ChannelError::generic(format!(
                    "option conflicts with existing subscription: {key}={own} \
                     existingChannel={existing_channel} channel={channel}"
                )));
            }
        }
        Ok(())
    }
}
