//! Parameters of a publication.

use super::defaults::ChannelDefaults;
use super::flow_control::FlowControlParam;
use super::lengths::{check_mtu_length, check_term_length, max_message_length};
use super::response::{ResponseCorrelation, check_response, is_response};
use super::timestamps::{ReceiveTimestamps, TimestampOffset};
use super::{InitialPosition, Tags, boolean, duration_ns, number, number_by, size, size_i32};
use crate::ErrorCode;
use crate::channel::{ChannelError, ChannelUri, Media, keys, unsupported};
use crate::frame::TERM_LENGTH_MIN;

const MAX_RESEND_MAX: i64 = 256;

/// A session id as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionIdParam {
    /// This one.
    Number(i32),
    /// That of the live publication whose entity tag this is, and its MTU and term length with it.
    Tag(i64),
}

/// Every parameter of a publication, defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationParams {
    /// UDP or IPC.
    pub media: Media,
    /// Names of the transport and of the publication.
    pub tags: Tags,
    /// The session id, if the channel asks for one.
    pub session_id: Option<SessionIdParam>,
    /// Longest frame.
    pub mtu_length: usize,
    /// The channel gave the MTU.
    pub has_mtu_length: bool,
    /// Length of each term.
    pub term_length: usize,
    /// The channel gave the term length.
    pub has_term_length: bool,
    /// Where to start, if the channel says.
    pub initial_position: Option<InitialPosition>,
    /// How far a publisher may run ahead of its slowest reader.
    pub publication_window_length: usize,
    /// How long the publication stays after it is drained.
    pub linger_timeout_ns: i64,
    /// Leave the blocks of the log unallocated until written.
    pub is_sparse: bool,
    /// Tell receivers when the stream ends.
    pub signals_end_of_stream: bool,
    /// Retransmits that can be in progress at once, where receivers form a group.
    pub max_resend: usize,
    /// Flow control, where receivers form a group.
    pub flow_control: FlowControlParam,
    /// The channel gave the flow control.
    pub has_flow_control: bool,
    /// Stream id the channel names; see [`PublicationParams::check_stream_id`].
    pub stream_id: Option<i32>,
    /// How long an untethered subscriber may stay at the window's limit.
    pub untethered_window_limit_timeout_ns: i64,
    /// How long it then lingers.
    pub untethered_linger_timeout_ns: i64,
    /// How long it then rests before it joins again.
    pub untethered_resting_timeout_ns: i64,
    /// Spies alone make the publication connected. Always false for IPC, which has none.
    pub spies_simulate_connection: bool,
    /// It carries responses.
    pub is_response: bool,
    /// Which requests it responds to, or which subscription reads its responses.
    pub response_correlation: ResponseCorrelation,
    /// Where a peer may respond; carried for clients, without meaning to a driver.
    pub response_endpoint: Option<String>,
    /// Where the time of sending is written. Always none for IPC, which sends nothing.
    pub send_timestamp: Option<TimestampOffset>,
    /// Name for people and tools.
    pub alias: Option<String>,
}

impl PublicationParams {
    /// Reads and checks everything the channel says. Fails with the code and text of the driver's reply.
    pub fn from_uri(uri: &ChannelUri, defaults: &ChannelDefaults) -> Result<Self, ChannelError> {
        Self::parsed(uri, defaults).map_err(|error| error.in_channel(uri))
    }

    fn parsed(uri: &ChannelUri, defaults: &ChannelDefaults) -> Result<Self, ChannelError> {
        if uri.is_spy() {
            return Err(ChannelError::invalid(format!(
                "spies are invalid as publications: {uri}"
            )));
        }
        unsupported::check(uri)?;
        let (default_mtu, default_term) = match uri.media() {
            Media::Udp => (defaults.mtu_length, defaults.term_length),
            Media::Ipc => (defaults.ipc_mtu_length, defaults.ipc_term_length),
        };
        let is_response = is_response(uri);
        let response_correlation = ResponseCorrelation::from_uri(uri)?;
        check_response(is_response, response_correlation)?;
        let mtu_length = size(uri, keys::MTU)?.map(check_mtu_length).transpose()?;
        let term_length = size(uri, keys::TERM_LENGTH)?.map(check_term_length).transpose()?;
        let window_limit = duration_ns(uri, keys::UNTETHERED_WINDOW_LIMIT_TIMEOUT)?
            .unwrap_or(defaults.untethered_window_limit_timeout_ns);
        let flow_control = flow_control(uri, defaults)?;
        let mut params = Self {
            media: uri.media(),
            tags: Tags::from_uri(uri)?,
            session_id: session_id(uri)?,
            mtu_length: mtu_length.unwrap_or(default_mtu),
            has_mtu_length: mtu_length.is_some(),
            term_length: term_length.unwrap_or(default_term),
            has_term_length: term_length.is_some(),
            initial_position: None,
            publication_window_length: 0,
            linger_timeout_ns: duration_ns(uri, keys::LINGER)?.unwrap_or(defaults.linger_timeout_ns),
            is_sparse: boolean(uri, keys::SPARSE)?.unwrap_or(defaults.is_sparse),
            signals_end_of_stream: boolean(uri, keys::END_OF_STREAM)?.unwrap_or(true),
            max_resend: max_resend(uri)?.unwrap_or(defaults.max_resend),
            flow_control: flow_control.unwrap_or(defaults.flow_control),
            has_flow_control: flow_control.is_some(),
            stream_id: number(uri, keys::STREAM_ID)?,
            untethered_window_limit_timeout_ns: window_limit,
            untethered_linger_timeout_ns: untethered_linger(uri, defaults, window_limit)?,
            untethered_resting_timeout_ns: duration_ns(uri, keys::UNTETHERED_RESTING_TIMEOUT)?
                .unwrap_or(defaults.untethered_resting_timeout_ns),
            spies_simulate_connection: spies_simulate_connection(uri, defaults)?,
            is_response,
            response_correlation,
            response_endpoint: uri.get(keys::RESPONSE_ENDPOINT).map(str::to_owned),
            send_timestamp: send_timestamp(uri)?,
            alias: uri.get(keys::ALIAS).map(str::to_owned),
        };
        if is_response && response_correlation == ResponseCorrelation::Prototype {
            // It never carries anything.
            params.term_length = TERM_LENGTH_MIN as usize;
        }
        params.apply_lengths(uri, defaults)?;
        Ok(params)
    }

    /// Fails if the channel names a stream id other than the command's.
    pub fn check_stream_id(&self, stream_id: i32) -> Result<(), ChannelError> {
        match self.stream_id {
            Some(own) if own != stream_id => Err(ChannelError::invalid(format!(
                "stream-id={own} does not match provided streamId={stream_id}"
            ))),
            _ => Ok(()),
        }
    }

    /// Everything that depends on the MTU and the term length.
    pub(super) fn apply_lengths(
        &mut self,
        uri: &ChannelUri,
        defaults: &ChannelDefaults,
    ) -> Result<(), ChannelError> {
        let message_length_max = max_message_length(self.term_length);
        if self.mtu_length > message_length_max {
            return Err(ChannelError::new(
                ErrorCode::InvalidChannel,
                format!(
                    "mtu={} is more than the max message length={message_length_max} of term-length={}, channel={uri}",
                    self.mtu_length, self.term_length
                ),
            ));
        }
        self.initial_position = InitialPosition::from_uri(uri, self.term_length)?;
        self.publication_window_length = self.window_length(uri, defaults)?;
        Ok(())
    }

    fn window_length(&self, uri: &ChannelUri, defaults: &ChannelDefaults) -> Result<usize, ChannelError> {
        let half_term = self.term_length / 2;
        let Some(window) = size_i32(uri, keys::PUBLICATION_WINDOW)? else {
            let setting = match self.media {
                Media::Udp => defaults.publication_window_length,
                Media::Ipc => defaults.ipc_publication_window_length,
            };
            return Ok(if setting == 0 {
                half_term
            } else {
                setting.min(half_term)
            });
        };
        let window = window as usize;
        if window < self.mtu_length {
            return Err(ChannelError::generic(format!(
                "pub-wnd={window} cannot be less than the mtu={}, channel={uri}",
                self.mtu_length
            )));
        }
        if window > half_term {
            return Err(ChannelError::generic(format!(
                "pub-wnd={window} must not exceed half the term-length={}, channel={uri}",
                self.term_length
            )));
        }
        Ok(window)
    }
}

const SESSION_TAG_RULE: &str = "a whole number, or tag: and the entity tag of a publication";

fn session_id(uri: &ChannelUri) -> Result<Option<SessionIdParam>, ChannelError> {
    match uri
        .get(keys::SESSION_ID)
        .and_then(|value| value.strip_prefix("tag:"))
    {
        Some(tag) => match tag.parse() {
            Ok(tag) => Ok(Some(SessionIdParam::Tag(tag))),
            Err(_) => Err(super::unparsable(
                uri,
                keys::SESSION_ID,
                &format!("tag:{tag}"),
                SESSION_TAG_RULE,
            )),
        },
        None => Ok(number(uri, keys::SESSION_ID)?.map(SessionIdParam::Number)),
    }
}

fn spies_simulate_connection(uri: &ChannelUri, defaults: &ChannelDefaults) -> Result<bool, ChannelError> {
    match uri.media() {
        Media::Udp => {
            Ok(boolean(uri, keys::SPIES_SIMULATE_CONNECTION)?.unwrap_or(defaults.spies_simulate_connection))
        }
        Media::Ipc => Ok(false),
    }
}

/// Those of receiving may stand in a channel that both sides use: they are checked, and do nothing here.
fn send_timestamp(uri: &ChannelUri) -> Result<Option<TimestampOffset>, ChannelError> {
    match uri.media() {
        Media::Udp => {
            ReceiveTimestamps::from_uri(uri)?;
            TimestampOffset::from_uri(uri, keys::CHANNEL_SEND_TIMESTAMP_OFFSET)
        }
        Media::Ipc => Ok(None),
    }
}

/// IPC has no use for it.
fn flow_control(
    uri: &ChannelUri,
    defaults: &ChannelDefaults,
) -> Result<Option<FlowControlParam>, ChannelError> {
    match uri.media() {
        Media::Udp => FlowControlParam::from_uri(uri, &defaults.flow_control),
        Media::Ipc => Ok(None),
    }
}

fn max_resend(uri: &ChannelUri) -> Result<Option<usize>, ChannelError> {
    match number_by::<i64>(uri, keys::MAX_RESEND, "a whole number from 1 to 256")? {
        Some(count) if !(1..=MAX_RESEND_MAX).contains(&count) => Err(ChannelError::generic(format!(
            "invalid max-resend={count}, must be > 0 and <= {MAX_RESEND_MAX}"
        ))),
        count => Ok(count.map(|count| count as usize)),
    }
}

/// 0 inherits, like leaving it out: first the setting, then the window limit timeout.
pub(super) fn untethered_linger(
    uri: &ChannelUri,
    defaults: &ChannelDefaults,
    window_limit_timeout_ns: i64,
) -> Result<i64, ChannelError> {
    Ok(duration_ns(uri, keys::UNTETHERED_LINGER_TIMEOUT)?
        .filter(|&timeout_ns| timeout_ns != 0)
        .or(defaults.untethered_linger_timeout_ns)
        .unwrap_or(window_limit_timeout_ns))
}
