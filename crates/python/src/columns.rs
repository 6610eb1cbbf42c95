//! Many messages as columns: one run of payload bytes, and a value per message in each other column.

/// What a batch holds. Filled by one thread, then shared read-only.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) payload: Vec<u8>,
    /// Always one more than there are messages; starts with 0.
    pub(crate) offsets: Vec<i32>,
    pub(crate) positions: Vec<i64>,
    pub(crate) session_ids: Vec<i32>,
    pub(crate) reserved_values: Vec<i64>,
    pub(crate) stream_id: i32,
}

/// Offsets are 32 bits wide, and one message is at most 16 MiB.
pub(crate) const PAYLOAD_LENGTH_MAX: usize = 1 << 30;

impl Columns {
    pub(crate) fn with_capacity(stream_id: i32, message_count: usize, payload_length: usize) -> Self {
        let mut offsets = Vec::with_capacity(message_count + 1);
        offsets.push(0);
        Self {
            payload: Vec::with_capacity(payload_length),
            offsets,
            positions: Vec::with_capacity(message_count),
            session_ids: Vec::with_capacity(message_count),
            reserved_values: Vec::with_capacity(message_count),
            stream_id,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.positions.len()
    }

    /// No further message fits for certain.
    pub(crate) fn is_full(&self) -> bool {
        self.payload.len() >= PAYLOAD_LENGTH_MAX
    }

    #[inline]
    pub(crate) fn push(&mut self, payload: &[u8], position: i64, session_id: i32, reserved_value: i64) {
        self.payload.extend_from_slice(payload);
        self.offsets.push(self.payload.len() as i32);
        self.positions.push(position);
        self.session_ids.push(session_id);
        self.reserved_values.push(reserved_value);
    }

    pub(crate) fn payload_of(&self, index: usize) -> &[u8] {
        &self.payload[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }

    /// The length all payloads share; `None` when they differ or there are none.
    pub(crate) fn common_length(&self) -> Option<usize> {
        let first = *self.offsets.get(1)?;
        self.offsets
            .windows(2)
            .all(|pair| pair[1] - pair[0] == first)
            .then_some(first as usize)
    }
}
