//! RES: name resolvers tell each other the addresses of drivers.
//!
//! The common header is followed by entries, each at a multiple of 8 after it:
//!
//! ```text
//!   0      1       2      4        8               12 or 24      14 or 26
//!   | type | flags | port | age ms | address 4/16  | name length | name, padded to 8
//! ```
//!
//! The address is in network order; every other field, the port too, is little endian.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{COMMON_HEADER_LENGTH, FrameError, FrameKind, expect, put_common_header};
use crate::bytes::{array_at, i32_at, put_i32, put_u16, text, u16_at};

/// The entry describes the resolver that sent the frame.
pub const FLAG_SELF: u8 = 0x80;
/// Longest name.
pub const NAME_LENGTH_MAX: usize = 512;

const TYPE_NAME_TO_IP4: u8 = 1;
const TYPE_NAME_TO_IP6: u8 = 2;
const ADDRESS_OFFSET: usize = 8;

/// One name and where its resolver is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResolutionEntry<'a> {
    /// `FLAG_*` bits.
    pub flags: u8,
    /// Port of the named resolver.
    pub port: u16,
    /// Milliseconds since that resolver was last heard.
    pub age_ms: i32,
    /// Address of the named resolver; all zero means "where the datagram came from".
    pub address: IpAddr,
    /// The name.
    pub name: Cow<'a, str>,
}

impl ResolutionEntry<'_> {
    /// Bytes of the entry in a frame, padding included.
    pub fn encoded_length(&self) -> usize {
        (name_length_offset(self.address.is_ipv6()) + 2 + self.name.len()).next_multiple_of(8)
    }

    /// Writes the entry; returns its length. Panics if `into` is shorter or the name is not 1..=512 bytes.
    pub fn encode(&self, into: &mut [u8]) -> usize {
        assert!(
            (1..=NAME_LENGTH_MAX).contains(&self.name.len()),
            "resolver name length is checked before"
        );
        let length = self.encoded_length();
        let into = &mut into[..length];
        into.fill(0);
        into[1] = self.flags;
        put_u16(into, 2, self.port);
        put_i32(into, 4, self.age_ms);
        match self.address {
            IpAddr::V4(address) => {
                into[0] = TYPE_NAME_TO_IP4;
                into[ADDRESS_OFFSET..ADDRESS_OFFSET + 4].copy_from_slice(&address.octets());
            }
            IpAddr::V6(address) => {
                into[0] = TYPE_NAME_TO_IP6;
                into[ADDRESS_OFFSET..ADDRESS_OFFSET + 16].copy_from_slice(&address.octets());
            }
        }
        let at = name_length_offset(self.address.is_ipv6());
        put_u16(into, at, self.name.len() as u16);
        into[at + 2..at + 2 + self.name.len()].copy_from_slice(self.name.as_bytes());
        length
    }
}

/// The entries of a frame, in order. An entry that cannot be read yields an error and ends the walk.
#[derive(Clone, Debug)]
pub struct ResolutionFrame<'a> {
    remaining: &'a [u8],
}

impl<'a> ResolutionFrame<'a> {
    /// Shortest frame.
    pub const LENGTH_MIN: usize = 22;

    /// Starts a walk over the entries.
    pub fn decode(datagram: &'a [u8]) -> Result<Self, FrameError> {
        expect(datagram, FrameKind::Resolution)?;
        let frame_length = i32_at(datagram, 0) as usize;
        let remaining = datagram[..frame_length]
            .get(COMMON_HEADER_LENGTH..)
            .unwrap_or_default();
        Ok(Self { remaining })
    }

    /// Writes the common header of a frame whose entries take `entries_length` bytes; returns the header's length.
    pub fn encode_header(entries_length: usize, into: &mut [u8]) -> usize {
        put_common_header(
            into,
            COMMON_HEADER_LENGTH + entries_length,
            0,
            FrameKind::Resolution,
        );
        COMMON_HEADER_LENGTH
    }
}

impl<'a> Iterator for ResolutionFrame<'a> {
    type Item = Result<ResolutionEntry<'a>, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining.is_empty() {
            return None;
        }
        match decode_entry(self.remaining) {
            Ok((entry, length)) => {
                // The padding after the last name need not travel.
                self.remaining = self.remaining.get(length..).unwrap_or_default();
                Some(Ok(entry))
            }
            Err(error) => {
                self.remaining = &[];
                Some(Err(error))
            }
        }
    }
}

fn name_length_offset(is_ip6: bool) -> usize {
    ADDRESS_OFFSET + if is_ip6 { 16 } else { 4 }
}

fn decode_entry(bytes: &[u8]) -> Result<(ResolutionEntry<'_>, usize), FrameError> {
    let is_ip6 = match bytes[0] {
        TYPE_NAME_TO_IP4 => false,
        TYPE_NAME_TO_IP6 => true,
        other => {
            return Err(FrameError::Field {
                field: "entry_type",
                value: other.into(),
            });
        }
    };
    let at = name_length_offset(is_ip6);
    if bytes.len() < at + 2 {
        return Err(FrameError::Length { length: bytes.len() });
    }
    let name_length = i16::from_le_bytes(array_at(bytes, at));
    let name = usize::try_from(name_length)
        .ok()
        .filter(|length| (1..=NAME_LENGTH_MAX).contains(length))
        .and_then(|length| bytes.get(at + 2..at + 2 + length))
        .ok_or(FrameError::Field {
            field: "name_length",
            value: name_length.into(),
        })?;
    let address = if is_ip6 {
        IpAddr::V6(Ipv6Addr::from(array_at::<16>(bytes, ADDRESS_OFFSET)))
    } else {
        IpAddr::V4(Ipv4Addr::from(array_at::<4>(bytes, ADDRESS_OFFSET)))
    };
    let entry = ResolutionEntry {
        flags: bytes[1],
        port: u16_at(bytes, 2),
        age_ms: i32_at(bytes, 4),
        address,
        name: text(name),
    };
    Ok((entry, (at + 2 + name.len()).next_multiple_of(8)))
}
