//! Frames as they travel in datagrams.
//!
//! Every frame starts with the same eight bytes, little endian like every other field:
//!
//! ```text
//!   0               4         5       6        8
//!   | frame length  | version | flags | type   | fields of the type
//! ```
//!
//! Only the first frame header of a datagram selects what happens to it ([`classify`]). Control frames travel
//! alone; data frames are packed back to back and are walked by [`validate_data`].

pub mod data;
pub mod error;
pub mod joined;
pub mod nak;
pub mod packet;
pub mod resolution;
pub mod response_setup;
pub mod rtt;
pub mod setup;
pub mod status_message;
pub mod timestamp;

pub use data::DataHeader;
pub use error::ErrorFrame;
pub use joined::first_datagram;
pub use nak::Nak;
pub use packet::{Packet, validate_data};
pub use resolution::{ResolutionEntry, ResolutionFrame};
pub use response_setup::ResponseSetup;
pub use rtt::RttMeasurement;
pub use setup::Setup;
pub use status_message::StatusMessage;
pub use timestamp::TIMESTAMP_LENGTH;

use crate::bytes::{i32_at, put_i32, put_u16, u16_at};

/// Length of the part common to all frames.
pub const COMMON_HEADER_LENGTH: usize = 8;
/// Length of the header of data and padding frames.
pub const DATA_HEADER_LENGTH: usize = 32;
/// Data frames start at multiples of this, in terms and in datagrams.
pub const FRAME_ALIGNMENT: usize = 32;
/// The only version there is.
pub const VERSION: u8 = 0;
/// Longest datagram: the largest multiple of the frame alignment that fits a UDP payload.
pub const DATAGRAM_LENGTH_MAX: usize = 65504;
/// Shortest term.
pub const TERM_LENGTH_MIN: i32 = 64 * 1024;
/// Longest term.
pub const TERM_LENGTH_MAX: i32 = 1024 * 1024 * 1024;

const _: () = assert!(DATA_HEADER_LENGTH.is_multiple_of(FRAME_ALIGNMENT));
const _: () = assert!(DATAGRAM_LENGTH_MAX.is_multiple_of(FRAME_ALIGNMENT));

pub(crate) const VERSION_OFFSET: usize = 4;
pub(crate) const FLAGS_OFFSET: usize = 5;
pub(crate) const TYPE_OFFSET: usize = 6;

pub(crate) const TYPE_PAD: u16 = 0;
pub(crate) const TYPE_DATA: u16 = 1;

/// What a frame is. Type codes reserved by the protocol but never sent are not listed: they are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum FrameKind {
    /// Filler in a term; only its header travels.
    Pad = TYPE_PAD,
    /// Payload, or a heartbeat.
    Data = TYPE_DATA,
    /// Request to send a range again.
    Nak = 2,
    /// A receiver's position and room.
    StatusMessage = 3,
    /// A receiver's refusal.
    Error = 4,
    /// A sender's description of a stream.
    Setup = 5,
    /// Round-trip probe or its echo.
    RttMeasurement = 6,
    /// Gossip between name resolvers.
    Resolution = 7,
    /// Names the session a response will come on.
    ResponseSetup = 11,
}

impl FrameKind {
    fn from_code(code: u16) -> Option<Self> {
        Some(match code {
            TYPE_PAD => Self::Pad,
            TYPE_DATA => Self::Data,
            2 => Self::Nak,
            3 => Self::StatusMessage,
            4 => Self::Error,
            5 => Self::Setup,
            6 => Self::RttMeasurement,
            7 => Self::Resolution,
            11 => Self::ResponseSetup,
            _ => return None,
        })
    }

    /// Shortest datagram that can hold the frame.
    const fn length_min(self) -> usize {
        match self {
            Self::Pad | Self::Data => DATA_HEADER_LENGTH,
            Self::Nak => Nak::LENGTH,
            Self::StatusMessage => StatusMessage::LENGTH,
            Self::Error => ErrorFrame::LENGTH_MIN,
            Self::Setup => Setup::LENGTH,
            Self::RttMeasurement => RttMeasurement::LENGTH,
            Self::Resolution => ResolutionFrame::LENGTH_MIN,
            Self::ResponseSetup => ResponseSetup::LENGTH,
        }
    }
}

/// Why a datagram was refused. Each is counted as an invalid packet and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Shorter than its type allows, or not a multiple of the frame alignment where it must be.
    #[error("datagram length does not fit its frame: length={length}")]
    Length {
        /// Bytes received.
        length: usize,
    },
    /// The frame length field is negative or longer than the datagram.
    #[error("frame length field is not possible: frame_length={frame_length}")]
    FrameLength {
        /// The field.
        frame_length: i32,
    },
    /// A version other than [`VERSION`].
    #[error("unknown frame version: version={version}")]
    Version {
        /// The field.
        version: u8,
    },
    /// A type that is not known, or not the one asked for.
    #[error("unexpected frame type: type={code}")]
    Type {
        /// The field.
        code: u16,
    },
    /// A field is outside its range.
    #[error("frame field out of range: {field}={value}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: i64,
    },
}

/// The check every datagram passes first: long enough, sane length field, known version and type.
#[inline]
pub fn classify(datagram: &[u8]) -> Result<FrameKind, FrameError> {
    let length = datagram.len();
    if length <= COMMON_HEADER_LENGTH {
        return Err(FrameError::Length { length });
    }
    let frame_length = i32_at(datagram, 0);
    if frame_length < 0 {
        return Err(FrameError::FrameLength { frame_length });
    }
    let version = datagram[VERSION_OFFSET];
    if version != VERSION {
        return Err(FrameError::Version { version });
    }
    let code = u16_at(datagram, TYPE_OFFSET);
    let kind = FrameKind::from_code(code).ok_or(FrameError::Type { code })?;
    if length < kind.length_min() {
        return Err(FrameError::Length { length });
    }
    match kind {
        // The length field of a padding frame covers bytes that do not travel, so it is not compared.
        FrameKind::Data | FrameKind::Pad if !length.is_multiple_of(FRAME_ALIGNMENT) => {
            Err(FrameError::Length { length })
        }
        FrameKind::Data | FrameKind::Pad => Ok(kind),
        _ if frame_length as usize > length => Err(FrameError::FrameLength { frame_length }),
        _ => Ok(kind),
    }
}

/// [`classify`], and the kind must be the one expected.
#[inline]
pub(crate) fn expect(datagram: &[u8], kind: FrameKind) -> Result<(), FrameError> {
    let found = classify(datagram)?;
    if found == kind {
        Ok(())
    } else {
        Err(FrameError::Type { code: found as u16 })
    }
}

/// Writes the common header.
#[inline]
pub(crate) fn put_common_header(into: &mut [u8], frame_length: usize, flags: u8, kind: FrameKind) {
    put_i32(into, 0, frame_length as i32);
    into[VERSION_OFFSET] = VERSION;
    into[FLAGS_OFFSET] = flags;
    put_u16(into, TYPE_OFFSET, kind as u16);
}

/// Fails unless `term_offset` is a frame boundary inside a term of `term_length`.
pub(crate) fn check_term_offset(term_offset: i32, term_length: i32) -> Result<(), FrameError> {
    if term_offset < 0 || term_offset >= term_length || term_offset % FRAME_ALIGNMENT as i32 != 0 {
        return Err(FrameError::Field {
            field: "term_offset",
            value: term_offset.into(),
        });
    }
    Ok(())
}
