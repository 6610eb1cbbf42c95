//! The codes a driver answers a refused command with.

use std::fmt;

/// Why a driver refused, as carried in error events and error frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum ErrorCode {
    /// A value this version does not know.
    Unknown = -1,
    /// Reserved; means a generic error.
    Unused = 0,
    /// The channel cannot be parsed, or its parameters contradict each other or the driver's state.
    InvalidChannel = 1,
    /// No subscription has the registration id.
    UnknownSubscription = 2,
    /// No publication has the registration id.
    UnknownPublication = 3,
    /// A socket failed; sent by older drivers only.
    ChannelEndpointError = 4,
    /// No counter has the registration id.
    UnknownCounter = 5,
    /// The command's type id is not known.
    UnknownCommandTypeId = 6,
    /// The command's lengths do not add up.
    MalformedCommand = 7,
    /// Understood, but this driver does not do it.
    NotSupported = 8,
    /// A host name did not resolve.
    UnknownHost = 9,
    /// The resource is closing; ask again.
    ResourceTemporarilyUnavailable = 10,
    /// Anything else; the text says what.
    GenericError = 11,
    /// Not enough room on disk.
    StorageSpace = 12,
    /// A subscriber rejected the publication's image.
    ImageRejected = 13,
    /// The publication was revoked.
    PublicationRevoked = 14,
}

impl ErrorCode {
    const ALL: [ErrorCode; 15] = [
        Self::Unused,
        Self::InvalidChannel,
        Self::UnknownSubscription,
        Self::UnknownPublication,
        Self::ChannelEndpointError,
        Self::UnknownCounter,
        Self::UnknownCommandTypeId,
        Self::MalformedCommand,
        Self::NotSupported,
        Self::UnknownHost,
        Self::ResourceTemporarilyUnavailable,
        Self::GenericError,
        Self::StorageSpace,
        Self::ImageRejected,
        Self::PublicationRevoked,
    ];

    /// The code as sent.
    pub const fn value(self) -> i32 {
        self as i32
    }

    /// The code a peer sent; one that is not known becomes [`ErrorCode::Unknown`].
    pub fn from_value(value: i32) -> Self {
        usize::try_from(value)
            .ok()
            .and_then(|index| Self::ALL.get(index).copied())
            .unwrap_or(Self::Unknown)
    }

    /// The reference's name of the code, as users of either implementation know it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN_CODE_VALUE",
            Self::Unused => "UNUSED",
            Self::InvalidChannel => "INVALID_CHANNEL",
            Self::UnknownSubscription => "UNKNOWN_SUBSCRIPTION",
            Self::UnknownPublication => "UNKNOWN_PUBLICATION",
            Self::ChannelEndpointError => "CHANNEL_ENDPOINT_ERROR",
            Self::UnknownCounter => "UNKNOWN_COUNTER",
            Self::UnknownCommandTypeId => "UNKNOWN_COMMAND_TYPE_ID",
            Self::MalformedCommand => "MALFORMED_COMMAND",
            Self::NotSupported => "NOT_SUPPORTED",
            Self::UnknownHost => "UNKNOWN_HOST",
            Self::ResourceTemporarilyUnavailable => "RESOURCE_TEMPORARILY_UNAVAILABLE",
            Self::GenericError => "GENERIC_ERROR",
            Self::StorageSpace => "STORAGE_SPACE",
            Self::ImageRejected => "IMAGE_REJECTED",
            Self::PublicationRevoked => "PUBLICATION_REVOKED",
        }
    }

    /// The standard text of the code. Existing test suites search driver messages for these words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Unknown => "unknown error code",
            Self::Unused | Self::GenericError => "generic error, see message",
            Self::InvalidChannel => "invalid channel",
            Self::UnknownSubscription => "unknown subscription",
            Self::UnknownPublication => "unknown publication",
            Self::ChannelEndpointError => "channel endpoint error",
            Self::UnknownCounter => "unknown counter",
            Self::UnknownCommandTypeId => "unknown command type id",
            Self::MalformedCommand => "malformed command",
            Self::NotSupported => "not supported",
            Self::UnknownHost => "unknown host",
            Self::ResourceTemporarilyUnavailable => "resource temporarily unavailable",
            Self::StorageSpace => "insufficient storage space",
            Self::ImageRejected => "image rejected",
            Self::PublicationRevoked => "publication revoked",
        }
    }

    /// One line for an error reply or the error log: code, standard text, detail.
    pub fn describe(self, detail: impl fmt::Display) -> String {
        format!("(-{}) {}: {detail}", self.value().unsigned_abs(), self.text())
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_back_and_others_are_unknown() {
        for value in 0..=14 {
            assert_eq!(ErrorCode::from_value(value).value(), value);
        }
        for value in [-1, -2, 15, i32::MIN, i32::MAX] {
            assert_eq!(ErrorCode::from_value(value), ErrorCode::Unknown);
        }
    }

    #[test]
    fn a_description_leads_with_the_words_test_suites_search_for() {
        let line = ErrorCode::GenericError.describe("no available ports in range 1 2");
        assert_eq!(
            line,
            "(-11) generic error, see message: no available ports in range 1 2"
        );
    }
}
