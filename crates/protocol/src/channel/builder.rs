//! Builds channels, checking each value where the caller still knows what it meant.

use super::params::lengths::{check_mtu_length, check_term_length};
use super::{ChannelError, ChannelUri, Media, keys, units};
use crate::frame::{FRAME_ALIGNMENT, TERM_LENGTH_MAX};

/// Collects parameters; [`ChannelUriBuilder::build`] checks them and writes them in the usual order.
#[derive(Clone, Debug)]
pub struct ChannelUriBuilder {
    uri: ChannelUri,
    fault: Option<ChannelError>,
}

impl ChannelUriBuilder {
    /// Starts a channel without parameters.
    pub fn new(media: Media) -> Self {
        Self::from(ChannelUri::new(media))
    }

    /// Starts a channel of the media named `udp` or `ipc`.
    pub fn with_media_name(media: &str) -> Result<Self, ChannelError> {
        match media {
            "udp" => Ok(Self::new(Media::Udp)),
            "ipc" => Ok(Self::new(Media::Ipc)),
            other => Err(invalid(format!("media must be udp or ipc: media={other}"))),
        }
    }

    /// Makes the channel listen to what this host sends. UDP only.
    pub fn spy(mut self) -> Self {
        self.uri.set_spy(true);
        self
    }

    /// Sets a parameter without a check of its own: text, a flag or a name.
    pub fn param(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        let result = self.uri.put(key, value.to_string());
        self.keep(result)
    }

    /// Sets a size in bytes, written with its largest suffix.
    pub fn size(self, key: &str, size: u64) -> Self {
        self.param(key, units::format_size(size))
    }

    /// Sets a duration, written with its largest suffix.
    pub fn duration(self, key: &str, duration_ns: i64) -> Self {
        if duration_ns < 0 {
            return self.keep(Err(invalid(format!("{key}={duration_ns} must not be negative"))));
        }
        self.param(key, units::format_duration(duration_ns))
    }

    /// Address of the far side, or to listen on.
    pub fn endpoint(self, endpoint: &str) -> Self {
        self.param(keys::ENDPOINT, endpoint)
    }

    /// Names of the transport and of the publication.
    pub fn tags(self, channel_tag: i64, entity_tag: Option<i64>) -> Self {
        match entity_tag {
            Some(entity_tag) => self.param(keys::TAGS, format!("{channel_tag},{entity_tag}")),
            None => self.param(keys::TAGS, channel_tag),
        }
    }

    /// `manual`, `dynamic` or `response`.
    pub fn control_mode(self, mode: &str) -> Self {
        match mode {
            "manual" | "dynamic" | "response" => self.param(keys::CONTROL_MODE, mode),
            _ => self.keep(Err(invalid(format!(
                "control-mode must be manual, dynamic or response: control-mode={mode}"
            )))),
        }
    }

    /// Longest frame.
    pub fn mtu_length(self, mtu_length: u64) -> Self {
        match check_mtu_length(mtu_length) {
            Ok(_) => self.size(keys::MTU, mtu_length),
            Err(error) => self.keep(Err(error)),
        }
    }

    /// Length of each term.
    pub fn term_length(self, term_length: u64) -> Self {
        match check_term_length(term_length) {
            Ok(_) => self.size(keys::TERM_LENGTH, term_length),
            Err(error) => self.keep(Err(error)),
        }
    }

    /// Where a publication starts.
    pub fn initial_position(mut self, position: i64, initial_term_id: i32, term_length: i32) -> Self {
        let result = self
            .uri
            .set_initial_position(position, initial_term_id, term_length);
        self.keep(result)
    }

    /// Publisher instance to be, or to listen to.
    pub fn session_id(self, session_id: i32) -> Self {
        self.param(keys::SESSION_ID, session_id)
    }

    /// The session id of the publication with this entity tag.
    pub fn tagged_session_id(self, tag: i64) -> Self {
        self.param(keys::SESSION_ID, format!("tag:{tag}"))
    }

    /// Routers a multicast datagram may pass.
    pub fn ttl(self, ttl: i64) -> Self {
        if u8::try_from(ttl).is_err() {
            return self.keep(Err(invalid(format!("ttl={ttl} is not in range 0 to 255"))));
        }
        self.param(keys::TTL, ttl)
    }

    /// The channel, or the first thing wrong with it.
    pub fn build(self) -> Result<ChannelUri, ChannelError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let uri = self.uri;
        if uri.is_spy() && uri.media() != Media::Udp {
            return Err(invalid("spies only support UDP media".to_owned()));
        }
        check_initial_position(&uri)?;
        let mut ordered = ChannelUri::new(uri.media());
        ordered.set_spy(uri.is_spy());
        for key in keys::BUILDER_ORDER {
            if let Some(value) = uri.get(key) {
                ordered.set(key, value.to_owned());
            }
        }
        for (key, value) in uri.params() {
            if !ordered.contains(key) {
                ordered.set(key, value.to_owned());
            }
        }
        Ok(ordered)
    }

    /// Remembers the first fault, so that calls can be chained.
    fn keep(mut self, result: Result<(), ChannelError>) -> Self {
        if let Err(error) = result {
            self.fault.get_or_insert(error);
        }
        self
    }
}

impl From<ChannelUri> for ChannelUriBuilder {
    fn from(uri: ChannelUri) -> Self {
        Self { uri, fault: None }
    }
}

fn check_initial_position(uri: &ChannelUri) -> Result<(), ChannelError> {
    let number = |key| super::params::number::<i32>(uri, key);
    match (
        number(keys::INITIAL_TERM_ID)?,
        number(keys::TERM_ID)?,
        number(keys::TERM_OFFSET)?,
    ) {
        (None, None, None) => Ok(()),
        (Some(initial_term_id), Some(term_id), Some(term_offset)) => {
            if term_id.wrapping_sub(initial_term_id) < 0 {
                return Err(invalid(format!(
                    "term-id={term_id} comes before init-term-id={initial_term_id}"
                )));
            }
            if !(0..=TERM_LENGTH_MAX).contains(&term_offset) || term_offset % FRAME_ALIGNMENT as i32 != 0 {
                return Err(invalid(format!(
                    "term-offset={term_offset} is not a multiple of {FRAME_ALIGNMENT} in range 0 to {TERM_LENGTH_MAX}"
                )));
            }
            Ok(())
        }
        _ => Err(invalid(
            "init-term-id, term-id and term-offset must be given together or not at all".to_owned(),
        )),
    }
}

fn invalid(message: String) -> ChannelError {
    ChannelError::invalid(message)
}
