//! Which publication responds to which: what `control-mode=response` and `response-correlation-id` say.

use crate::channel::{ChannelError, ChannelUri, keys};

const NO_ID: i64 = -1;
const PROTOTYPE_ID: i64 = -2;

/// What a publication's `response-correlation-id` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseCorrelation {
    /// Nothing: an ordinary stream.
    None,
    /// On a publication of requests, the subscription that reads the responses. On one of responses, the image of the
    /// requests.
    Id(i64),
    /// Nothing yet: the publication holds the endpoint of responses open.
    Prototype,
}

impl ResponseCorrelation {
    pub(crate) fn from_uri(uri: &ChannelUri) -> Result<Self, ChannelError> {
        let Some(value) = uri.get(keys::RESPONSE_CORRELATION_ID) else {
            return Ok(Self::None);
        };
        if value == "prototype" {
            return Ok(Self::Prototype);
        }
        match value.parse() {
            Ok(NO_ID) => Ok(Self::None),
            Ok(id) if id > NO_ID => Ok(Self::Id(id)),
            _ => Err(ChannelError::generic(
                "invalid response-correlation-id, must be a number greater than or equal to -1, or 'prototype'",
            )),
        }
    }

    /// The number in the metadata of a log.
    pub fn raw(self) -> i64 {
        match self {
            Self::None => NO_ID,
            Self::Id(id) => id,
            Self::Prototype => PROTOTYPE_ID,
        }
    }
}

/// True when the channel carries responses.
pub(super) fn is_response(uri: &ChannelUri) -> bool {
    uri.get(keys::CONTROL_MODE) == Some("response")
}

/// Fails if a publication of responses does not name the requests.
pub(super) fn check_response(
    is_response: bool,
    correlation: ResponseCorrelation,
) -> Result<(), ChannelError> {
    if is_response && correlation == ResponseCorrelation::None {
        return Err(ChannelError::generic(
            "control-mode=response was specified, but no response-correlation-id set",
        ));
    }
    Ok(())
}
