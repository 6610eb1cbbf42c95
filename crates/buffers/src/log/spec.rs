//! What a log is made from.

use super::descriptor::{PAGE_SIZE_MIN, TERM_LENGTH_MIN, check_mtu, check_page_size, check_term_length};
use super::error::LogError;
use super::frame::FRAME_ALIGNMENT;

/// Who writes a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogType {
    /// Any number of publishers.
    ConcurrentPublication = 0,
    /// One publisher.
    ExclusivePublication = 1,
    /// The driver, from the network.
    Image = 2,
}

/// Where a stream starts when not at its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartPosition {
    /// Term that the first frame goes to.
    pub term_id: i32,
    /// Offset of the first frame in that term.
    pub term_offset: usize,
}

/// Everything that the metadata of a new log says. The default is a sound, sparse, smallest concurrent log.
#[derive(Clone, Debug)]
pub struct LogSpec {
    /// Who writes the log.
    pub log_type: LogType,
    /// Length of each term.
    pub term_length: usize,
    /// The file length is a multiple of this.
    pub page_size: usize,
    /// Leave blocks unallocated until they are written.
    pub sparse: bool,
    /// Longest frame.
    pub mtu: usize,
    /// Session of the stream.
    pub session_id: i32,
    /// Stream within the channel.
    pub stream_id: i32,
    /// Id of the first term.
    pub initial_term_id: i32,
    /// Explicit start; images have none, since no publisher appends to them by tail.
    pub start: Option<StartPosition>,
    /// Registration id of the publication or correlation id of the image.
    pub correlation_id: i64,
    /// 0 for images.
    pub publication_window_length: i32,
    /// 0 for publications.
    pub receiver_window_length: i32,
    /// 0 for the default of the system, and for IPC.
    pub socket_send_buffer_length: i32,
    /// Default of the system.
    pub os_default_send_buffer_length: i32,
    /// Maximum of the system.
    pub os_max_send_buffer_length: i32,
    /// 0 for the default of the system, and for IPC.
    pub socket_receive_buffer_length: i32,
    /// Default of the system.
    pub os_default_receive_buffer_length: i32,
    /// Maximum of the system.
    pub os_max_receive_buffer_length: i32,
    /// 0 for images.
    pub max_resend: i32,
    /// -1 for none; 0 for images.
    pub entity_tag: i64,
    /// -1 for none; 0 for images.
    pub response_correlation_id: i64,
    /// 0 for images.
    pub linger_timeout_ns: i64,
    /// How long an untethered subscriber may hold its publisher back.
    pub untethered_window_limit_timeout_ns: i64,
    /// How long it still counts after that.
    pub untethered_linger_timeout_ns: i64,
    /// How long it then rests.
    pub untethered_resting_timeout_ns: i64,
    /// Multicast semantics.
    pub group: bool,
    /// Response channel.
    pub is_response: bool,
    /// Rejoin after rest; false for publications.
    pub rejoin: bool,
    /// Recover lost packets; false for publications.
    pub reliable: bool,
    /// Tell receivers of the end of stream; false for images.
    pub signal_eos: bool,
    /// Local spies make the publication connected; false for images.
    pub spies_simulate_connection: bool,
    /// False for publications.
    pub tether: bool,
}

impl Default for LogSpec {
    fn default() -> Self {
        Self {
            log_type: LogType::ConcurrentPublication,
            term_length: TERM_LENGTH_MIN,
            page_size: PAGE_SIZE_MIN,
            sparse: true,
            mtu: 1408,
            session_id: 0,
            stream_id: 0,
            initial_term_id: 0,
            start: None,
            correlation_id: 0,
            publication_window_length: 0,
            receiver_window_length: 0,
            socket_send_buffer_length: 0,
            os_default_send_buffer_length: 0,
            os_max_send_buffer_length: 0,
            socket_receive_buffer_length: 0,
            os_default_receive_buffer_length: 0,
            os_max_receive_buffer_length: 0,
            max_resend: 0,
            entity_tag: 0,
            response_correlation_id: 0,
            linger_timeout_ns: 0,
            untethered_window_limit_timeout_ns: 0,
            untethered_linger_timeout_ns: 0,
            untethered_resting_timeout_ns: 0,
            group: false,
            is_response: false,
            rejoin: false,
            reliable: false,
            signal_eos: false,
            spies_simulate_connection: false,
            tether: false,
        }
    }
}

impl LogSpec {
    /// Refuses lengths and start positions that no log can have.
    pub fn validate(&self) -> Result<(), LogError> {
        check_term_length(self.term_length as i64)?;
        check_page_size(self.page_size as i64)?;
        check_mtu(self.mtu as i64)?;
        let Some(start) = self.start else {
            return Ok(());
        };
        if start.term_offset > self.term_length || !start.term_offset.is_multiple_of(FRAME_ALIGNMENT) {
            return Err(LogError::Invalid {
                name: "term_offset",
                value: start.term_offset as i64,
                rule: format!(
                    "must be a multiple of 32 and at most term_length={}",
                    self.term_length
                ),
            });
        }
        if start.term_id.wrapping_sub(self.initial_term_id) < 0 {
            return Err(LogError::Invalid {
                name: "term_id",
                value: i64::from(start.term_id),
                rule: format!("must not precede initial_term_id={}", self.initial_term_id),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starting(initial_term_id: i32, term_id: i32, term_offset: usize) -> LogSpec {
        LogSpec {
            initial_term_id,
            start: Some(StartPosition { term_id, term_offset }),
            ..LogSpec::default()
        }
    }

    #[test]
    fn a_start_lies_on_a_frame_of_a_term_of_the_stream() {
        assert!(starting(5, 5, 0).validate().is_ok());
        assert!(starting(i32::MAX, i32::MIN, 65_536).validate().is_ok());
        for bad in [starting(5, 4, 0), starting(5, 5, 33), starting(5, 5, 65_568)] {
            assert!(bad.validate().is_err(), "{:?}", bad.start);
        }
    }
}
