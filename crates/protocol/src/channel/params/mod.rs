//! Parameters of a channel, parsed and checked against their rules and each other.

pub mod defaults;
pub mod flow_control;
pub(crate) mod lengths;
pub mod publication;
pub mod response;
pub mod sharing;
pub mod subscription;
pub mod timestamps;

use std::fmt::Display;
use std::str::FromStr;

use super::{ChannelError, ChannelUri, keys, units};
use crate::frame::{FRAME_ALIGNMENT, TERM_LENGTH_MAX};

/// Names given in a channel: of the transport, and of the publication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tags {
    /// Lets channels share one transport.
    pub channel: Option<i64>,
    /// Names one publication.
    pub entity: Option<i64>,
}

/// Value that stands for "no tag".
const NO_TAG: i64 = -1;

impl Tags {
    pub(crate) fn from_uri(uri: &ChannelUri) -> Result<Self, ChannelError> {
        let Some(value) = uri.get(keys::TAGS) else {
            return Ok(Self::default());
        };
        let (channel, entity) = value.split_once(',').unwrap_or((value, ""));
        let channel = optional_tag(channel).map_err(|()| {
            ChannelError::invalid(format!(
                "could not parse channel tag string: tags={value}, channel={uri}"
            ))
        })?;
        let entity = optional_tag(entity).map_err(|()| unparsable(uri, keys::TAGS, value, i64::RULE))?;
        if entity == Some(NO_TAG) {
            return Err(ChannelError::invalid(format!(
                "entityTag={NO_TAG} is reserved: tags={value}, channel={uri}"
            )));
        }
        Ok(Self {
            channel: channel.filter(|&tag| tag != NO_TAG),
            entity,
        })
    }
}

fn optional_tag(text: &str) -> Result<Option<i64>, ()> {
    if text.is_empty() {
        Ok(None)
    } else {
        text.parse().map(Some).map_err(|_| ())
    }
}

/// Where a publication starts, when not at the beginning of a term id drawn at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialPosition {
    /// Term the stream's position 0 is in.
    pub initial_term_id: i32,
    /// Term to start in.
    pub term_id: i32,
    /// Where in that term to start.
    pub term_offset: i32,
}

impl InitialPosition {
    pub(crate) fn from_uri(uri: &ChannelUri, term_length: usize) -> Result<Option<Self>, ChannelError> {
        let initial_term_id: Option<i32> = number(uri, keys::INITIAL_TERM_ID)?;
        let term_id: Option<i32> = number(uri, keys::TERM_ID)?;
        let rule = "a multiple of 32 from 0 to the term length";
        let term_offset: Option<i64> = number_by(uri, keys::TERM_OFFSET, rule)?;
        let (initial_term_id, term_id, term_offset) = match (initial_term_id, term_id, term_offset) {
            (None, None, None) => return Ok(None),
            (Some(initial_term_id), Some(term_id), Some(term_offset)) => {
                (initial_term_id, term_id, term_offset)
            }
            _ => {
                return Err(ChannelError::generic(format!(
                    "params must be used as a complete set: init-term-id={} term-id={} term-offset={}, channel={uri}",
                    shown(initial_term_id),
                    shown(term_id),
                    shown(term_offset),
                )));
            }
        };
        if term_id.wrapping_sub(initial_term_id) < 0 {
            return Err(ChannelError::generic(format!(
                "term-id={term_id} comes before init-term-id={initial_term_id}, channel={uri}"
            )));
        }
        check_term_offset(term_offset, term_length, uri)?;
        Ok(Some(Self {
            initial_term_id,
            term_id,
            term_offset: term_offset as i32,
        }))
    }

    /// The position in bytes, for terms of the length the parameters were checked with.
    pub fn position(&self, term_length: usize) -> i64 {
        let term_count = i64::from(self.term_id.wrapping_sub(self.initial_term_id));
        term_count * term_length as i64 + i64::from(self.term_offset)
    }
}

fn check_term_offset(term_offset: i64, term_length: usize, uri: &ChannelUri) -> Result<(), ChannelError> {
    let fault = if !(0..=i64::from(TERM_LENGTH_MAX)).contains(&term_offset) {
        format!("out of range 0 to {TERM_LENGTH_MAX}")
    } else if term_offset > term_length as i64 {
        format!("> term-length={term_length}")
    } else if term_offset % FRAME_ALIGNMENT as i64 != 0 {
        format!("not a multiple of FRAME_ALIGNMENT={FRAME_ALIGNMENT}")
    } else {
        return Ok(());
    };
    Err(ChannelError::generic(format!(
        "term-offset={term_offset} {fault}, channel={uri}"
    )))
}

fn shown<T: Display>(value: Option<T>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

/// A whole number as channels write it.
pub(crate) trait WholeNumber: FromStr {
    /// What a text must be.
    const RULE: &'static str;
}

impl WholeNumber for i32 {
    const RULE: &'static str = "a whole number from -2147483648 to 2147483647";
}

impl WholeNumber for i64 {
    const RULE: &'static str = "a whole number of at most 63 bits and a sign";
}

pub(crate) fn unparsable(uri: &ChannelUri, key: &str, value: &str, rule: &str) -> ChannelError {
    ChannelError::generic(format!(
        "could not parse {key}={value} in URI: {uri}: must be {rule}"
    ))
}

pub(crate) fn number<T: WholeNumber>(uri: &ChannelUri, key: &str) -> Result<Option<T>, ChannelError> {
    number_by(uri, key, T::RULE)
}

/// A number that has a rule of its own.
pub(crate) fn number_by<T: FromStr>(
    uri: &ChannelUri,
    key: &str,
    rule: &str,
) -> Result<Option<T>, ChannelError> {
    uri.get(key)
        .map(|value| value.parse().map_err(|_| unparsable(uri, key, value, rule)))
        .transpose()
}

pub(crate) fn boolean(uri: &ChannelUri, key: &str) -> Result<Option<bool>, ChannelError> {
    match uri.get(key) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(value) => Err(unparsable(uri, key, value, "true or false")),
    }
}

fn size(uri: &ChannelUri, key: &str) -> Result<Option<u64>, ChannelError> {
    uri.get(key)
        .map(|value| {
            units::parse_size(value).map_err(|error| {
                ChannelError::generic(format!("could not parse {key}={value} in URI: {uri}: {error}"))
            })
        })
        .transpose()
}

/// A size that a socket option or a window can have.
pub(crate) fn size_i32(uri: &ChannelUri, key: &str) -> Result<Option<i32>, ChannelError> {
    let Some(size) = size(uri, key)? else {
        return Ok(None);
    };
    i32::try_from(size).map(Some).map_err(|_| {
        ChannelError::generic(format!(
            "{key}={size} out of range 0 to {}, channel={uri}",
            i32::MAX
        ))
    })
}

fn duration_ns(uri: &ChannelUri, key: &str) -> Result<Option<i64>, ChannelError> {
    uri.get(key)
        .map(|value| {
            units::parse_duration_ns(value).map_err(|error| {
                ChannelError::generic(format!("could not parse {key}={value} in URI: {uri}: {error}"))
            })
        })
        .transpose()
}
