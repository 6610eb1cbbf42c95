//! Lengths of terms, frames and messages, and their bounds.

use crate::channel::ChannelError;
use crate::frame::{
    DATA_HEADER_LENGTH, DATAGRAM_LENGTH_MAX, FRAME_ALIGNMENT, TERM_LENGTH_MAX, TERM_LENGTH_MIN,
};

/// Longest message, whatever the term length.
const MESSAGE_LENGTH_MAX: usize = 16 * 1024 * 1024;

/// Longest message of a log with terms of this length.
pub(crate) const fn max_message_length(term_length: usize) -> usize {
    if term_length / 8 < MESSAGE_LENGTH_MAX {
        term_length / 8
    } else {
        MESSAGE_LENGTH_MAX
    }
}

/// Checks a term length a user gave.
pub(crate) fn check_term_length(term_length: u64) -> Result<usize, ChannelError> {
    let fault = if term_length < TERM_LENGTH_MIN as u64 {
        format!("term length less than min length of {TERM_LENGTH_MIN}: term-length={term_length}")
    } else if term_length > TERM_LENGTH_MAX as u64 {
        format!("term length more than max length of {TERM_LENGTH_MAX}: term-length={term_length}")
    } else if !term_length.is_power_of_two() {
        format!("term length not a power of 2: term-length={term_length}")
    } else {
        return Ok(term_length as usize);
    };
    Err(ChannelError::generic(fault))
}

/// Checks an MTU a user gave.
pub(crate) fn check_mtu_length(mtu_length: u64) -> Result<usize, ChannelError> {
    let fault = if mtu_length <= DATA_HEADER_LENGTH as u64 {
        format!("mtuLength={mtu_length} <= HEADER_LENGTH={DATA_HEADER_LENGTH}")
    } else if mtu_length > DATAGRAM_LENGTH_MAX as u64 {
        format!("mtuLength={mtu_length} > MAX_UDP_PAYLOAD_LENGTH={DATAGRAM_LENGTH_MAX}")
    } else if !mtu_length.is_multiple_of(FRAME_ALIGNMENT as u64) {
        format!("mtuLength={mtu_length} is not a multiple of FRAME_ALIGNMENT={FRAME_ALIGNMENT}")
    } else {
        return Ok(mtu_length as usize);
    };
    Err(ChannelError::generic(fault))
}
