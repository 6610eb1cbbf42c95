//! Many messages as columns: one run of payload bytes, and a value per message in each other column.

use std::sync::Mutex;

use crate::images::lock;

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
    expected: BatchSize,
}

/// How many messages and payload bytes a batch has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BatchSize {
    message_count: usize,
    payload_length: usize,
}

/// The size of the last batch that was not empty, which is what the next one will be like.
#[derive(Debug, Default)]
pub(crate) struct LastSize(Mutex<BatchSize>);

impl LastSize {
    pub(crate) fn get(&self) -> BatchSize {
        *lock(&self.0)
    }

    pub(crate) fn set_to(&self, columns: &Columns) {
        if columns.len() > 0 {
            *lock(&self.0) = BatchSize {
                message_count: columns.len(),
                payload_length: columns.payload.len(),
            };
        }
    }
}

/// Offsets are 32 bits wide, and one message is at most 16 MiB.
pub(crate) const PAYLOAD_LENGTH_MAX: usize = 1 << 30;

impl Columns {
    /// Takes memory for the expected size when the first message comes, so that an empty batch costs nothing.
    pub(crate) fn new(stream_id: i32, expected: BatchSize) -> Self {
        Self {
            payload: Vec::new(),
            offsets: vec![0],
            positions: Vec::new(),
            session_ids: Vec::new(),
            reserved_values: Vec::new(),
            stream_id,
            expected,
        }
    }

    #[cold]
    fn reserve(&mut self) {
        let BatchSize {
            message_count,
            payload_length,
        } = self.expected;
        self.payload.reserve(payload_length);
        self.offsets.reserve(message_count);
        self.positions.reserve(message_count);
        self.session_ids.reserve(message_count);
        self.reserved_values.reserve(message_count);
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
        if self.positions.is_empty() {
            self.reserve();
        }
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
