//! Datagrams of data frames.
//!
//! A data datagram is a run of one term: frames back to back, each padded to the frame alignment. A padding
//! frame longer than its header ends the datagram, since its body does not travel.

use super::data::FLAG_END_OF_STREAM;
use super::{
    DATA_HEADER_LENGTH, DataHeader, FRAME_ALIGNMENT, FrameError, TYPE_DATA, TYPE_OFFSET, TYPE_PAD,
    check_term_offset,
};
use crate::bytes::{i32_at, u16_at};

/// A data datagram that passed [`validate_data`]. Identity and flags are those of its first frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Publisher instance.
    pub session_id: i32,
    /// Flow on the channel.
    pub stream_id: i32,
    /// Term of every frame.
    pub term_id: i32,
    /// Where the first frame starts.
    pub term_offset: i32,
    /// Flags of the first frame.
    pub flags: u8,
    /// Says where the sender is, and carries nothing.
    pub is_heartbeat: bool,
    /// Bytes of the term the datagram accounts for: 0 for a heartbeat, and a padding frame's whole span.
    pub span: i32,
}

impl Packet {
    /// True for a heartbeat that says the stream is over.
    pub fn is_end_of_stream(&self) -> bool {
        self.flags & FLAG_END_OF_STREAM != 0
    }
}

/// Walks the frames of a datagram that [`classify`](super::classify) called data or padding.
///
/// Each frame must start where the one before ended, and none may pass the end of a term of `term_length`.
/// The fields of later frames beyond length, type and offset are trusted.
#[inline]
pub fn validate_data(datagram: &[u8], term_length: i32) -> Result<Packet, FrameError> {
    if !datagram.len().is_multiple_of(FRAME_ALIGNMENT) {
        return Err(FrameError::Length {
            length: datagram.len(),
        });
    }
    let first = DataHeader::decode(datagram)?;
    check_term_offset(first.term_offset, term_length)?;
    let is_heartbeat = datagram.len() == DATA_HEADER_LENGTH && first.frame_length == 0;
    let span = if is_heartbeat {
        0
    } else {
        walk(datagram, first.term_offset, term_length)?
    };
    Ok(Packet {
        session_id: first.session_id,
        stream_id: first.stream_id,
        term_id: first.term_id,
        term_offset: first.term_offset,
        flags: first.flags,
        is_heartbeat,
        span,
    })
}

#[inline]
fn walk(datagram: &[u8], term_offset: i32, term_length: i32) -> Result<i32, FrameError> {
    // Below 2^31 throughout: a span stops at the term's end, and terms are at most 2^30 long.
    let span_max = (term_length - term_offset) as usize;
    let mut span = 0usize;
    let mut is_padding = false;
    while let Some(header) = header_at(datagram, span) {
        let frame_length = i32_at(header, 0);
        if frame_length < DATA_HEADER_LENGTH as i32 {
            return Err(FrameError::FrameLength { frame_length });
        }
        let code = u16_at(header, TYPE_OFFSET);
        if code != TYPE_DATA && code != TYPE_PAD {
            return Err(FrameError::Type { code });
        }
        is_padding = code == TYPE_PAD;
        let frame_offset = i32_at(header, 8);
        if frame_offset != term_offset + span as i32 {
            return Err(FrameError::Field {
                field: "term_offset",
                value: frame_offset.into(),
            });
        }
        let frame_span = (frame_length as usize).next_multiple_of(FRAME_ALIGNMENT);
        span += frame_span;
        if span > span_max {
            return Err(FrameError::FrameLength { frame_length });
        }
        // Frames as long as the one before are found without waiting for the length of each in turn.
        while !is_padding
            && span + frame_span <= span_max
            && let Some(next) = header_at(datagram, span)
            && i32_at(next, 0) == frame_length
            && u16_at(next, TYPE_OFFSET) == TYPE_DATA
            && i32_at(next, 8) == term_offset + span as i32
        {
            span += frame_span;
        }
    }
    if span == datagram.len() || (is_padding && span > datagram.len()) {
        Ok(span as i32)
    } else {
        Err(FrameError::Length {
            length: datagram.len(),
        })
    }
}

#[inline]
fn header_at(datagram: &[u8], offset: usize) -> Option<&[u8; DATA_HEADER_LENGTH]> {
    datagram.get(offset..)?.first_chunk()
}
