//! The text of a channel, taken apart.
//!
//! ```text
//! channel := [ "aeron-spy:" ] "aeron:" ( "udp" | "ipc" ) [ "?" key "=" value *( "|" key "=" value ) ]
//! ```
//!
//! Case counts and nothing is escaped. Where the two reference implementations differ: the last of several
//! values of one key wins, and an empty value is as if the key were not there.

use std::fmt;
use std::str::FromStr;

use super::{CHANNEL_LENGTH_MAX, ChannelError, keys};

const SCHEME: &str = "aeron:";
const SPY_PREFIX: &str = "aeron-spy:";

/// How a channel moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Media {
    /// Through the network.
    Udp,
    /// Through shared memory.
    Ipc,
}

impl Media {
    /// As written in a channel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Ipc => "ipc",
        }
    }
}

/// Media and parameters. Keys that are not known are kept; printing gives back what was parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelUri {
    is_spy: bool,
    media: Media,
    params: Vec<(String, String)>,
}

impl ChannelUri {
    /// A channel without parameters.
    pub fn new(media: Media) -> Self {
        Self {
            is_spy: false,
            media,
            params: Vec::new(),
        }
    }

    /// Takes a channel apart.
    pub fn parse(text: &str) -> Result<Self, ChannelError> {
        if text.len() > CHANNEL_LENGTH_MAX {
            let start: String = text.chars().take(CHANNEL_LENGTH_MAX).collect();
            let length = text.len();
            return Err(ChannelError::invalid(format!(
                "URI length={length} exceeds the maximum of {CHANNEL_LENGTH_MAX}: {start}"
            )));
        }
        let (is_spy, rest) = match text.strip_prefix(SPY_PREFIX) {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let rest = rest.strip_prefix(SCHEME).ok_or_else(|| {
            ChannelError::invalid(format!(
                "invalid URI scheme or transport: Aeron URIs must start with 'aeron:', found: {text}"
            ))
        })?;
        let (media, params) = rest.split_once('?').unwrap_or((rest, ""));
        let media = match media {
            "udp" => Media::Udp,
            "ipc" => Media::Ipc,
            other => {
                return Err(ChannelError::invalid(format!(
                    "invalid URI scheme or transport: unknown media: {other}, channel={text}; \
                     it is udp or ipc, in lower case, and the first parameter follows a '?', such as \
                     aeron:ipc?term-length=64k"
                )));
            }
        };
        if is_spy && media != Media::Udp {
            return Err(ChannelError::invalid(format!(
                "spies only support UDP media: {text}"
            )));
        }
        let mut uri = Self {
            is_spy,
            media,
            params: Vec::new(),
        };
        uri.parse_params(params, text)?;
        Ok(uri)
    }

    fn parse_params(&mut self, params: &str, text: &str) -> Result<(), ChannelError> {
        // Nothing after the "?" or after a last "|" is tolerated, as the C driver does.
        let params = params.strip_suffix('|').unwrap_or(params);
        if params.is_empty() {
            return Ok(());
        }
        for param in params.split('|') {
            let (key, value) = param.split_once('=').ok_or_else(|| {
                ChannelError::invalid(format!(
                    "invalid end of key at '{param}', channel={text}; each parameter is key=value, with a '|' between two"
                ))
            })?;
            if key.is_empty() {
                return Err(ChannelError::invalid(format!(
                    "empty key not allowed, channel={text}"
                )));
            }
            if !value.is_empty() {
                self.set(key, value.to_owned());
            }
        }
        Ok(())
    }

    /// UDP or IPC.
    pub fn media(&self) -> Media {
        self.media
    }

    /// True if the channel only listens to what this host sends.
    pub fn is_spy(&self) -> bool {
        self.is_spy
    }

    /// Makes the channel a spy's, or no longer.
    pub(crate) fn set_spy(&mut self, is_spy: bool) {
        self.is_spy = is_spy;
    }

    /// Value of a parameter.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.params
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// True if the parameter has a value.
    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Keys and values in the order they are printed.
    pub fn params(&self) -> impl Iterator<Item = (&str, &str)> {
        self.params
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Sets a parameter. Fails on a key or value that could not be read back. An empty value removes the key.
    pub fn put(&mut self, key: &str, value: impl Into<String>) -> Result<(), ChannelError> {
        let value = value.into();
        if key.is_empty() || key.contains(['=', '|']) {
            return Err(ChannelError::invalid(format!("invalid key: '{key}'")));
        }
        if value.contains('|') {
            return Err(ChannelError::invalid(format!(
                "'|' is not allowed in a value: {key}={value}"
            )));
        }
        if value.is_empty() {
            self.remove(key);
        } else {
            self.set(key, value);
        }
        Ok(())
    }

    pub(crate) fn set(&mut self, key: &str, value: String) {
        match self.params.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.params.push((key.to_owned(), value)),
        }
    }

    /// Removes a parameter; returns the value it had.
    pub fn remove(&mut self, key: &str) -> Option<String> {
        let index = self.params.iter().position(|(name, _)| name == key)?;
        Some(self.params.remove(index).1)
    }

    /// True if the session id is to be copied from a publication named by its tag.
    pub fn has_session_id_tag(&self) -> bool {
        self.get(keys::SESSION_ID)
            .is_some_and(|value| value.starts_with("tag:"))
    }

    /// Replaces port 0 of the endpoint with the port of `resolved`, a `host:port` a driver reported.
    pub fn replace_wildcard_port(&mut self, resolved: &str) {
        let port = resolved.rsplit_once(':').map(|(_, port)| port);
        let host = self
            .get(keys::ENDPOINT)
            .and_then(|endpoint| endpoint.strip_suffix(":0"));
        if let (Some(host), Some(port)) = (host, port) {
            let endpoint = format!("{host}:{port}");
            self.set(keys::ENDPOINT, endpoint);
        }
    }

    /// Makes a publication start at `position` of a stream.
    ///
    /// Fails unless the position is a frame boundary at or after the start and the term length is one.
    pub fn set_initial_position(
        &mut self,
        position: i64,
        initial_term_id: i32,
        term_length: i32,
    ) -> Result<(), ChannelError> {
        super::params::lengths::check_term_length(u64::try_from(term_length).unwrap_or(0))?;
        let alignment = crate::frame::FRAME_ALIGNMENT as i64;
        if position < 0 || position % alignment != 0 || position >> 31 >= i64::from(term_length) {
            return Err(ChannelError::invalid(format!(
                "not a position of a stream: position={position} term-length={term_length}"
            )));
        }
        let term_count = position >> term_length.trailing_zeros();
        let term_id = initial_term_id.wrapping_add(term_count as i32);
        let term_offset = position & i64::from(term_length - 1);
        self.set(keys::INITIAL_TERM_ID, initial_term_id.to_string());
        self.set(keys::TERM_ID, term_id.to_string());
        self.set(keys::TERM_OFFSET, term_offset.to_string());
        self.set(keys::TERM_LENGTH, super::units::format_size(term_length as u64));
        Ok(())
    }
}

impl fmt::Display for ChannelUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_spy {
            f.write_str(SPY_PREFIX)?;
        }
        write!(f, "{SCHEME}{}", self.media.name())?;
        for (index, (key, value)) in self.params.iter().enumerate() {
            write!(f, "{}{key}={value}", if index == 0 { '?' } else { '|' })?;
        }
        Ok(())
    }
}

impl FromStr for ChannelUri {
    type Err = ChannelError;

    fn from_str(text: &str) -> Result<Self, ChannelError> {
        Self::parse(text)
    }
}
