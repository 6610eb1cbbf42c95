//! Typed access to the metadata section of a log.

use crate::{AtomicBuffer, Memory};

use super::descriptor::*;
use super::error::LogError;
use super::frame::{self, FLAGS_UNFRAGMENTED, HEADER_LENGTH, TYPE_DATA};
use super::position::index_by_term_count;
use super::raw_tail;
use super::spec::{LogSpec, LogType};

/// The metadata section. Nothing read through it is trusted to make sense; the user of a value checks it.
#[derive(Clone, Debug)]
pub struct LogMetadata<M: Memory = AtomicBuffer> {
    memory: M,
}

/// Getters of fields that are written once, before the log is announced.
macro_rules! plain_fields {
    ($($(#[$doc:meta])* $name:ident: $get:ident -> $type:ty = $offset:ident;)*) => {
        $($(#[$doc])* pub fn $name(&self) -> $type { self.$get($offset) })*
    };
}

impl<M: Memory> LogMetadata<M> {
    /// Over the last [`METADATA_LENGTH`] bytes of a log.
    pub fn new(memory: M) -> Self {
        Self { memory }
    }

    /// Raw tail of a partition. Pairs with every store and add to it.
    #[inline]
    pub fn raw_tail_acquire(&self, partition: usize) -> i64 {
        self.memory.get_i64_acquire(TAIL_COUNTERS_OFFSET + 8 * partition)
    }

    /// Claims `length` bytes of a partition; returns the raw tail before.
    #[inline]
    pub fn get_and_add_raw_tail(&self, partition: usize, length: usize) -> i64 {
        self.memory
            .get_and_add_i64(TAIL_COUNTERS_OFFSET + 8 * partition, length as i64)
    }

    /// Sets a raw tail; for the only publisher of an exclusive log, and for rotation of it.
    #[inline]
    pub fn put_raw_tail_release(&self, partition: usize, raw_tail: i64) {
        self.memory
            .put_i64_release(TAIL_COUNTERS_OFFSET + 8 * partition, raw_tail);
    }

    /// Replaces a raw tail unless another publisher did.
    #[inline]
    pub fn compare_and_set_raw_tail(&self, partition: usize, expected: i64, raw_tail: i64) -> bool {
        self.memory
            .compare_and_set_i64(TAIL_COUNTERS_OFFSET + 8 * partition, expected, raw_tail)
    }

    /// Number of rotations so far.
    #[inline]
    pub fn active_term_count_acquire(&self) -> i32 {
        self.memory.get_i32_acquire(ACTIVE_TERM_COUNT_OFFSET)
    }

    /// Sets the number of rotations; for the only publisher of an exclusive log.
    #[inline]
    pub fn put_active_term_count_release(&self, count: i32) {
        self.memory.put_i32_release(ACTIVE_TERM_COUNT_OFFSET, count);
    }

    /// Counts a rotation unless another publisher did.
    #[inline]
    pub fn compare_and_set_active_term_count(&self, expected: i32, count: i32) -> bool {
        self.memory
            .compare_and_set_i32(ACTIVE_TERM_COUNT_OFFSET, expected, count)
    }

    /// Position at which the stream ends; `i64::MAX` while unknown.
    pub fn end_of_stream_position_acquire(&self) -> i64 {
        self.memory.get_i64_acquire(END_OF_STREAM_POSITION_OFFSET)
    }

    /// Sets the position at which the stream ends; driver only.
    pub fn put_end_of_stream_position_release(&self, position: i64) {
        self.memory
            .put_i64_release(END_OF_STREAM_POSITION_OFFSET, position);
    }

    /// True while the publication has a receiver.
    #[inline]
    pub fn is_connected_acquire(&self) -> bool {
        self.memory.get_i32_acquire(IS_CONNECTED_OFFSET) == 1
    }

    /// Says whether the publication has a receiver; driver only.
    pub fn put_is_connected_release(&self, connected: bool) {
        self.memory
            .put_i32_release(IS_CONNECTED_OFFSET, i32::from(connected));
    }

    /// Live source transports of a network image.
    pub fn active_transport_count_acquire(&self) -> i32 {
        self.memory.get_i32_acquire(ACTIVE_TRANSPORT_COUNT_OFFSET)
    }

    /// Sets the number of live source transports; driver only.
    pub fn put_active_transport_count_release(&self, count: i32) {
        self.memory.put_i32_release(ACTIVE_TRANSPORT_COUNT_OFFSET, count);
    }

    /// True once the publication was revoked.
    pub fn is_publication_revoked_acquire(&self) -> bool {
        self.memory.get_i32_acquire(IS_PUBLICATION_REVOKED_OFFSET) & 0xff == 1
    }

    /// Marks the publication as revoked; driver only.
    pub fn put_is_publication_revoked_release(&self) {
        // The other bytes of the word are written before the log is announced, so one writer may rewrite it.
        let word = self.memory.get_i32(IS_PUBLICATION_REVOKED_OFFSET);
        self.memory
            .put_i32_release(IS_PUBLICATION_REVOKED_OFFSET, (word & !0xff) | 1);
    }

    plain_fields! {
        /// Registration id of the publication or correlation id of the image.
        correlation_id: i64_at -> i64 = CORRELATION_ID_OFFSET;
        /// Term id of position 0.
        initial_term_id: i32_at -> i32 = INITIAL_TERM_ID_OFFSET;
        /// Length of the default header, always 32.
        default_frame_header_length: i32_at -> i32 = DEFAULT_FRAME_HEADER_LENGTH_OFFSET;
        /// Longest frame.
        mtu_length: i32_at -> i32 = MTU_LENGTH_OFFSET;
        /// Length of each term.
        term_length: i32_at -> i32 = TERM_LENGTH_OFFSET;
        /// The file length is a multiple of this.
        page_size: i32_at -> i32 = PAGE_SIZE_OFFSET;
        /// Window of the publication.
        publication_window_length: i32_at -> i32 = PUBLICATION_WINDOW_LENGTH_OFFSET;
        /// Window of the receiver.
        receiver_window_length: i32_at -> i32 = RECEIVER_WINDOW_LENGTH_OFFSET;
        /// Configured send buffer of the socket.
        socket_send_buffer_length: i32_at -> i32 = SOCKET_SEND_BUFFER_LENGTH_OFFSET;
        /// Default send buffer of the system.
        os_default_send_buffer_length: i32_at -> i32 = OS_DEFAULT_SEND_BUFFER_LENGTH_OFFSET;
        /// Largest send buffer of the system.
        os_max_send_buffer_length: i32_at -> i32 = OS_MAX_SEND_BUFFER_LENGTH_OFFSET;
        /// Configured receive buffer of the socket.
        socket_receive_buffer_length: i32_at -> i32 = SOCKET_RECEIVE_BUFFER_LENGTH_OFFSET;
        /// Default receive buffer of the system.
        os_default_receive_buffer_length: i32_at -> i32 = OS_DEFAULT_RECEIVE_BUFFER_LENGTH_OFFSET;
        /// Largest receive buffer of the system.
        os_max_receive_buffer_length: i32_at -> i32 = OS_MAX_RECEIVE_BUFFER_LENGTH_OFFSET;
        /// Concurrent retransmissions.
        max_resend: i32_at -> i32 = MAX_RESEND_OFFSET;
        /// Entity tag, or -1.
        entity_tag: i64_at -> i64 = ENTITY_TAG_OFFSET;
        /// Response correlation id, or -1.
        response_correlation_id: i64_at -> i64 = RESPONSE_CORRELATION_ID_OFFSET;
        /// Linger timeout.
        linger_timeout_ns: i64_at -> i64 = LINGER_TIMEOUT_NS_OFFSET;
        /// Untethered window limit timeout.
        untethered_window_limit_timeout_ns: i64_at -> i64 = UNTETHERED_WINDOW_LIMIT_TIMEOUT_NS_OFFSET;
        /// Untethered resting timeout.
        untethered_resting_timeout_ns: i64_at -> i64 = UNTETHERED_RESTING_TIMEOUT_NS_OFFSET;
        /// Multicast semantics.
        group: bool_at -> bool = GROUP_OFFSET;
        /// Response channel.
        is_response: bool_at -> bool = IS_RESPONSE_OFFSET;
        /// Rejoin after rest.
        rejoin: bool_at -> bool = REJOIN_OFFSET;
        /// Recover lost packets.
        reliable: bool_at -> bool = RELIABLE_OFFSET;
        /// Blocks are allocated as they are written.
        sparse: bool_at -> bool = SPARSE_OFFSET;
        /// Tell receivers of the end of stream.
        signal_eos: bool_at -> bool = SIGNAL_EOS_OFFSET;
        /// Local spies make the publication connected.
        spies_simulate_connection: bool_at -> bool = SPIES_SIMULATE_CONNECTION_OFFSET;
        /// Subscribers hold the flow back.
        tether: bool_at -> bool = TETHER_OFFSET;
    }

    /// Session id of the default frame header.
    pub fn session_id(&self) -> i32 {
        frame::session_id(&self.memory, DEFAULT_FRAME_HEADER_OFFSET)
    }

    /// Stream id of the default frame header.
    pub fn stream_id(&self) -> i32 {
        frame::stream_id(&self.memory, DEFAULT_FRAME_HEADER_OFFSET)
    }

    /// Untethered linger timeout.
    pub fn untethered_linger_timeout_ns(&self) -> i64 {
        // The field is not aligned to its width, so it is read as two halves.
        let low = self.memory.get_i32(UNTETHERED_LINGER_TIMEOUT_NS_OFFSET);
        let high = self.memory.get_i32(UNTETHERED_LINGER_TIMEOUT_NS_OFFSET + 4);
        i64::from(high) << 32 | i64::from(low as u32)
    }

    /// Who writes the log; none if the byte is unknown.
    pub fn log_type(&self) -> Option<LogType> {
        match self.byte_at(LOG_TYPE_OFFSET) {
            0 => Some(LogType::ConcurrentPublication),
            1 => Some(LogType::ExclusivePublication),
            2 => Some(LogType::Image),
            _ => None,
        }
    }

    /// Refuses metadata that no sound log has; the geometry is safe to use afterwards.
    pub(super) fn validate(&self) -> Result<(), LogError> {
        check_term_length(i64::from(self.term_length()))?;
        check_page_size(i64::from(self.page_size()))?;
        check_mtu(i64::from(self.mtu_length()))?;
        let header_length = self.default_frame_header_length();
        if header_length != HEADER_LENGTH as i32 {
            return Err(LogError::Invalid {
                name: "default_frame_header_length",
                value: i64::from(header_length),
                rule: format!("must be {HEADER_LENGTH}"),
            });
        }
        Ok(())
    }

    /// Writes every field of a new log. The end-of-stream position comes last, as a release, so that a
    /// reader that sees it set sees the rest.
    pub(super) fn initialise(&self, spec: &LogSpec) {
        if spec.log_type != LogType::Image {
            self.initialise_tails(spec);
        }
        let memory = &self.memory;
        memory.put_i64(CORRELATION_ID_OFFSET, spec.correlation_id);
        memory.put_i32(INITIAL_TERM_ID_OFFSET, spec.initial_term_id);
        memory.put_i32(DEFAULT_FRAME_HEADER_LENGTH_OFFSET, HEADER_LENGTH as i32);
        memory.put_i32(MTU_LENGTH_OFFSET, spec.mtu as i32);
        memory.put_i32(TERM_LENGTH_OFFSET, spec.term_length as i32);
        memory.put_i32(PAGE_SIZE_OFFSET, spec.page_size as i32);
        let lengths = [
            (PUBLICATION_WINDOW_LENGTH_OFFSET, spec.publication_window_length),
            (RECEIVER_WINDOW_LENGTH_OFFSET, spec.receiver_window_length),
            (SOCKET_SEND_BUFFER_LENGTH_OFFSET, spec.socket_send_buffer_length),
            (
                OS_DEFAULT_SEND_BUFFER_LENGTH_OFFSET,
                spec.os_default_send_buffer_length,
            ),
            (OS_MAX_SEND_BUFFER_LENGTH_OFFSET, spec.os_max_send_buffer_length),
            (
                SOCKET_RECEIVE_BUFFER_LENGTH_OFFSET,
                spec.socket_receive_buffer_length,
            ),
            (
                OS_DEFAULT_RECEIVE_BUFFER_LENGTH_OFFSET,
                spec.os_default_receive_buffer_length,
            ),
            (
                OS_MAX_RECEIVE_BUFFER_LENGTH_OFFSET,
                spec.os_max_receive_buffer_length,
            ),
            (MAX_RESEND_OFFSET, spec.max_resend),
        ];
        for (offset, value) in lengths {
            memory.put_i32(offset, value);
        }
        frame::put_kind(memory, DEFAULT_FRAME_HEADER_OFFSET, FLAGS_UNFRAGMENTED, TYPE_DATA);
        let header = DEFAULT_FRAME_HEADER_OFFSET;
        memory.put_i32(header + frame::SESSION_ID_OFFSET, spec.session_id);
        memory.put_i32(header + frame::STREAM_ID_OFFSET, spec.stream_id);
        memory.put_i32(header + frame::TERM_ID_OFFSET, spec.initial_term_id);
        memory.put_i64(ENTITY_TAG_OFFSET, spec.entity_tag);
        memory.put_i64(RESPONSE_CORRELATION_ID_OFFSET, spec.response_correlation_id);
        memory.put_i64(LINGER_TIMEOUT_NS_OFFSET, spec.linger_timeout_ns);
        memory.put_i64(
            UNTETHERED_WINDOW_LIMIT_TIMEOUT_NS_OFFSET,
            spec.untethered_window_limit_timeout_ns,
        );
        memory.put_i64(
            UNTETHERED_RESTING_TIMEOUT_NS_OFFSET,
            spec.untethered_resting_timeout_ns,
        );
        let flags = [
            spec.group,
            spec.is_response,
            spec.rejoin,
            spec.reliable,
            spec.sparse,
            spec.signal_eos,
            spec.spies_simulate_connection,
            spec.tether,
        ];
        memory.put_i64(GROUP_OFFSET, i64::from_le_bytes(flags.map(u8::from)));
        memory.put_i32(IS_PUBLICATION_REVOKED_OFFSET, (spec.log_type as i32) << 8);
        let linger = spec.untethered_linger_timeout_ns;
        memory.put_i32(UNTETHERED_LINGER_TIMEOUT_NS_OFFSET, linger as i32);
        memory.put_i32(UNTETHERED_LINGER_TIMEOUT_NS_OFFSET + 4, (linger >> 32) as i32);
        self.put_end_of_stream_position_release(i64::MAX);
    }

    /// A partition that is not active yet carries the id of the term it would have held before, so that a
    /// rotation into it can be told from one already done.
    fn initialise_tails(&self, spec: &LogSpec) {
        let (term_id, term_offset) = match spec.start {
            Some(start) => (start.term_id, start.term_offset),
            None => (spec.initial_term_id, 0),
        };
        let term_count = term_id.wrapping_sub(spec.initial_term_id);
        let active = index_by_term_count(term_count);
        for distance in 0..PARTITION_COUNT {
            let raw_tail = match distance {
                0 => raw_tail::pack(term_id, term_offset),
                _ => raw_tail::pack(
                    term_id
                        .wrapping_add(distance as i32)
                        .wrapping_sub(PARTITION_COUNT as i32),
                    0,
                ),
            };
            self.put_raw_tail_release((active + distance) % PARTITION_COUNT, raw_tail);
        }
        self.put_active_term_count_release(term_count);
    }

    fn i32_at(&self, offset: usize) -> i32 {
        self.memory.get_i32(offset)
    }

    fn i64_at(&self, offset: usize) -> i64 {
        self.memory.get_i64(offset)
    }

    fn byte_at(&self, offset: usize) -> u8 {
        self.memory.get_i32(offset & !3).to_le_bytes()[offset & 3]
    }

    fn bool_at(&self, offset: usize) -> bool {
        self.byte_at(offset) != 0
    }
}

const _: () = assert!(GROUP_OFFSET.is_multiple_of(8) && TETHER_OFFSET == GROUP_OFFSET + 7);
const _: () = assert!(IS_PUBLICATION_REVOKED_OFFSET.is_multiple_of(4));
const _: () = assert!(LOG_TYPE_OFFSET == IS_PUBLICATION_REVOKED_OFFSET + 1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::spec::StartPosition;

    fn initialised(spec: &LogSpec) -> LogMetadata {
        let metadata = LogMetadata::new(AtomicBuffer::allocate(METADATA_LENGTH));
        metadata.initialise(spec);
        metadata
    }

    #[test]
    fn tails_start_as_if_the_log_had_always_been_rotating() {
        let metadata = initialised(&LogSpec {
            initial_term_id: i32::MIN + 1,
            ..LogSpec::default()
        });
        let tails = [0, 1, 2].map(|i| metadata.raw_tail_acquire(i));
        assert_eq!(
            tails.map(raw_tail::term_id),
            [i32::MIN + 1, i32::MAX, i32::MIN],
            "initial, initial - 2, initial - 1, wrapping"
        );
        assert_eq!(metadata.active_term_count_acquire(), 0);
    }

    #[test]
    fn an_explicit_start_makes_its_partition_the_active_one() {
        let start = Some(StartPosition {
            term_id: 14,
            term_offset: 96,
        });
        let metadata = initialised(&LogSpec {
            initial_term_id: 10,
            start,
            ..LogSpec::default()
        });
        assert_eq!(metadata.active_term_count_acquire(), 4);
        let tails = [0, 1, 2].map(|i| metadata.raw_tail_acquire(i));
        assert_eq!(
            tails,
            [
                raw_tail::pack(13, 0),
                raw_tail::pack(14, 96),
                raw_tail::pack(12, 0)
            ]
        );
    }

    #[test]
    fn an_image_has_no_tails() {
        let metadata = initialised(&LogSpec {
            initial_term_id: 10,
            log_type: LogType::Image,
            ..LogSpec::default()
        });
        assert_eq!([0, 1, 2].map(|i| metadata.raw_tail_acquire(i)), [0; 3]);
        assert_eq!(metadata.log_type(), Some(LogType::Image));
    }

    #[test]
    fn fields_lie_where_peers_look_for_them() {
        let metadata = initialised(&LogSpec {
            log_type: LogType::ExclusivePublication,
            session_id: 0x0102_0304,
            stream_id: 1001,
            initial_term_id: -9,
            mtu: 8192,
            untethered_linger_timeout_ns: 0x0102_0304_0506_0708,
            reliable: true,
            tether: true,
            ..LogSpec::default()
        });
        let mut bytes = [0; METADATA_LENGTH];
        metadata.memory.get_bytes(0, &mut bytes);
        assert_eq!(bytes[128..136], i64::MAX.to_le_bytes());
        assert_eq!(bytes[264..268], (-9i32).to_le_bytes());
        assert_eq!(bytes[272..276], 8192i32.to_le_bytes());
        assert_eq!(bytes[320..328], [0, 0, 0, 0, 0, 0xc0, 1, 0]);
        assert_eq!(bytes[332..336], [4, 3, 2, 1]);
        assert_eq!(bytes[336..340], 1001i32.to_le_bytes());
        assert_eq!(bytes[340..344], (-9i32).to_le_bytes());
        assert_eq!(bytes[488..498], [0, 0, 0, 1, 1, 0, 0, 1, 0, 1]);
        assert_eq!(bytes[500..508], [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(metadata.untethered_linger_timeout_ns(), 0x0102_0304_0506_0708);
        assert!(metadata.reliable() && metadata.tether() && metadata.sparse() && !metadata.group());
    }

    #[test]
    fn revoking_leaves_the_log_type_alone() {
        let metadata = initialised(&LogSpec {
            log_type: LogType::ExclusivePublication,
            ..LogSpec::default()
        });
        assert!(!metadata.is_publication_revoked_acquire());
        metadata.put_is_publication_revoked_release();
        assert!(metadata.is_publication_revoked_acquire());
        assert_eq!(metadata.log_type(), Some(LogType::ExclusivePublication));
    }
}
