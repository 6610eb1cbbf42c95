//! Many messages as columns: one run of payload bytes, and a value per message in each other column.

use std::sync::{Arc, Mutex, Weak};

use crate::boundary::lock::lock;

/// What a batch holds. Filled by one thread, then shared read-only.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub(crate) payload: Vec<u8>,
    /// Always one more than there are messages; starts with 0.
    pub(crate) offsets: Vec<i32>,
    pub(crate) positions: Vec<i64>,
    pub(crate) session_ids: Vec<i32>,
    pub(crate) reserved_values: Vec<i64>,
    pub(crate) stream_id: i32,
    // Where the memory goes when the program no longer holds the batch.
    spare: Weak<Spare>,
}

/// Memory of a batch that is gone, for the next one. Fresh memory costs a page fault every 4 KiB, which is more
/// than copying the messages.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Option<Columns>>);

impl Spare {
    /// Empty columns, over the memory of an earlier batch if there is any.
    pub(crate) fn columns(self: &Arc<Self>, stream_id: i32) -> Columns {
        let mut columns = lock(&self.0).take().unwrap_or_default();
        columns.offsets.push(0);
        columns.stream_id = stream_id;
        columns.spare = Arc::downgrade(self);
        columns
    }
}

impl Drop for Columns {
    fn drop(&mut self) {
        let Some(spare) = self.spare.upgrade() else { return };
        let mut emptied = std::mem::take(self);
        emptied.spare = Weak::new();
        emptied.clear();
        // What was there is smaller or older; it is freed here, outside of any lock that matters.
        let _replaced = lock(&spare.0).replace(emptied);
    }
}

/// Offsets are 32 bits wide. A message of one frame fits into a term, which is at most 1 GiB, and no message of
/// several has more than 16 MiB: what reads recordings, and what assembles fragments, refuse it.
pub(crate) const PAYLOAD_LENGTH_MAX: usize = 1 << 30;

impl Columns {
    fn clear(&mut self) {
        self.payload.clear();
        self.offsets.clear();
        self.positions.clear();
        self.session_ids.clear();
        self.reserved_values.clear();
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
