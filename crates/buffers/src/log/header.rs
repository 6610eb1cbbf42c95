//! What a fragment handler gets besides the payload.

use crate::{AtomicBuffer, align};

use super::descriptor::framed_length;
use super::frame::{self, FRAME_ALIGNMENT, FrameHeader, HEADER_LENGTH};
use super::position::TermGeometry;

/// The header of a frame being handled. Cheap to pass: fields are loaded when asked for.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    fields: Fields<'a>,
    frame_length: i32,
    occupancy: usize,
    geometry: TermGeometry,
}

#[derive(Clone, Copy, Debug)]
enum Fields<'a> {
    InPlace { term: &'a AtomicBuffer, offset: usize },
    Copied(&'a FrameHeader),
}

impl<'a> Header<'a> {
    /// Over a committed frame of `frame_length` bytes at `offset`.
    #[inline]
    pub(super) fn in_place(
        term: &'a AtomicBuffer,
        offset: usize,
        frame_length: usize,
        geometry: TermGeometry,
    ) -> Self {
        Self {
            fields: Fields::InPlace { term, offset },
            frame_length: frame_length as i32,
            occupancy: frame_length,
            geometry,
        }
    }

    /// Over a copy, for a message put together from fragments; see [`assemble`].
    pub fn assembled(header: &'a FrameHeader, occupancy: usize, geometry: TermGeometry) -> Self {
        Self {
            fields: Fields::Copied(header),
            frame_length: header.frame_length,
            occupancy,
            geometry,
        }
    }

    /// The payload where it lies in the log, in memory that stays mapped as long as the result is held; nothing
    /// for an assembled message.
    pub fn payload_in_place(&self) -> Option<AtomicBuffer> {
        match self.fields {
            Fields::InPlace { term, offset } => {
                let length = usize::try_from(self.frame_length)
                    .ok()?
                    .checked_sub(HEADER_LENGTH)?;
                Some(term.slice(offset + HEADER_LENGTH, length))
            }
            Fields::Copied(_) => None,
        }
    }

    /// Header and payload; for an assembled message, one header and all of the payload.
    #[inline]
    pub fn frame_length(&self) -> i32 {
        self.frame_length
    }

    /// Format version.
    #[inline]
    pub fn version(&self) -> u8 {
        match self.fields {
            Fields::InPlace { term, offset } => frame::version(term, offset),
            Fields::Copied(header) => header.version,
        }
    }

    /// Begin and end.
    #[inline]
    pub fn flags(&self) -> u8 {
        match self.fields {
            Fields::InPlace { term, offset } => frame::flags(term, offset),
            Fields::Copied(header) => header.flags,
        }
    }

    /// Frame type.
    #[inline]
    pub fn frame_type(&self) -> u16 {
        match self.fields {
            Fields::InPlace { term, offset } => frame::frame_type(term, offset),
            Fields::Copied(header) => header.frame_type,
        }
    }

    /// Offset of the frame in its term.
    #[inline]
    pub fn term_offset(&self) -> i32 {
        match self.fields {
            Fields::InPlace { offset, .. } => offset as i32,
            Fields::Copied(header) => header.term_offset,
        }
    }

    /// Session of the stream.
    #[inline]
    pub fn session_id(&self) -> i32 {
        match self.fields {
            Fields::InPlace { term, offset } => frame::session_id(term, offset),
            Fields::Copied(header) => header.session_id,
        }
    }

    /// Stream within the channel.
    #[inline]
    pub fn stream_id(&self) -> i32 {
        match self.fields {
            Fields::InPlace { term, offset } => frame::stream_id(term, offset),
            Fields::Copied(header) => header.stream_id,
        }
    }

    /// Term that the frame is in.
    #[inline]
    pub fn term_id(&self) -> i32 {
        match self.fields {
            Fields::InPlace { term, offset } => frame::term_id(term, offset),
            Fields::Copied(header) => header.term_id,
        }
    }

    /// Value set by the application.
    #[inline]
    pub fn reserved_value(&self) -> i64 {
        match self.fields {
            Fields::InPlace { term, offset } => frame::reserved_value(term, offset),
            Fields::Copied(header) => header.reserved_value,
        }
    }

    /// Initial term id and term length of the stream.
    #[inline]
    pub fn geometry(&self) -> TermGeometry {
        self.geometry
    }

    /// Id of the stream's first term.
    #[inline]
    pub fn initial_term_id(&self) -> i32 {
        self.geometry.initial_term_id()
    }

    /// log2 of the term length.
    #[inline]
    pub fn position_bits_to_shift(&self) -> u32 {
        self.geometry.position_bits_to_shift()
    }

    /// Offset at which the frame, or the last fragment of the message, is followed by the next.
    #[inline]
    pub fn next_term_offset(&self) -> usize {
        align(
            self.term_offset() as u32 as usize + self.occupancy,
            FRAME_ALIGNMENT,
        )
    }

    /// Position of the stream after this frame or message.
    #[inline]
    pub fn position(&self) -> i64 {
        self.geometry.position(self.term_id(), self.next_term_offset())
    }

    /// All fields, copied out.
    pub fn to_frame_header(&self) -> FrameHeader {
        FrameHeader {
            frame_length: self.frame_length(),
            version: self.version(),
            flags: self.flags(),
            frame_type: self.frame_type(),
            term_offset: self.term_offset(),
            session_id: self.session_id(),
            stream_id: self.stream_id(),
            term_id: self.term_id(),
            reserved_value: self.reserved_value(),
        }
    }
}

/// The header of a whole message, from that of its first fragment and the flags of its last; also the bytes
/// that the message occupies in the log.
pub fn assemble(first: &FrameHeader, last_flags: u8, message_length: usize) -> (FrameHeader, usize) {
    // A sound first fragment is full, which tells the payload length that the publisher split by. One without
    // payload cannot have been split from anything; 1 keeps the arithmetic defined.
    let split_by =
        usize::try_from(first.frame_length).map_or(0, |length| length.saturating_sub(HEADER_LENGTH));
    let header = FrameHeader {
        frame_length: (HEADER_LENGTH + message_length) as i32,
        flags: first.flags | last_flags,
        ..*first
    };
    (header, framed_length(message_length, split_by.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::frame::{FLAG_BEGIN, FLAG_END, FLAGS_UNFRAGMENTED, TYPE_DATA};

    const FIRST: FrameHeader = FrameHeader {
        frame_length: 1408,
        version: 0,
        flags: FLAG_BEGIN,
        frame_type: TYPE_DATA,
        term_offset: 64,
        session_id: 3,
        stream_id: 4,
        term_id: 12,
        reserved_value: 5,
    };

    #[test]
    fn an_assembled_message_ends_where_its_last_fragment_does() {
        let geometry = TermGeometry::new(10, 65_536);
        let (header, occupancy) = assemble(&FIRST, FLAG_END, 1376 + 100);
        let view = Header::assembled(&header, occupancy, geometry);
        assert_eq!(
            (view.frame_length(), view.flags()),
            (32 + 1476, FLAGS_UNFRAGMENTED)
        );
        assert_eq!(view.position(), 2 * 65_536 + 64 + 1408 + 160);
        assert_eq!(view.to_frame_header(), header);
    }

    #[test]
    fn a_first_fragment_without_payload_does_not_divide_by_zero() {
        for frame_length in [i32::MIN, 0, 31, 32] {
            assemble(
                &FrameHeader {
                    frame_length,
                    ..FIRST
                },
                FLAG_END,
                100,
            );
        }
    }
}
