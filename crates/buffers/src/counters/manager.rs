//! Allocation of counters; done by the driver only, on one thread.

use std::collections::VecDeque;

use super::*;
use crate::AtomicBuffer;
use crate::error::BufferError;
use crate::memory::Memory;

/// Hands out counter ids and takes them back.
///
/// What is allocated and what is free is kept in private memory, so a client that scribbles over the shared
/// records cannot make the driver hand out an id twice.
#[derive(Debug)]
pub struct CountersManager<M: Memory + Clone = AtomicBuffer> {
    metadata: M,
    values: M,
    reuse_timeout_ms: i64,
    capacity: usize,
    /// By id, for every id used so far.
    live: Vec<bool>,
    /// Ids given back, oldest first, with the time from which they may be used again.
    free: VecDeque<(i32, i64)>,
}

impl<M: Memory + Clone> CountersManager<M> {
    /// Manages zeroed arrays. A freed id rests for `reuse_timeout_ms`.
    pub fn new(metadata: M, values: M, reuse_timeout_ms: i64) -> Self {
        let capacity = counter_capacity(metadata.capacity(), values.capacity());
        Self {
            metadata,
            values,
            reuse_timeout_ms,
            capacity,
            live: Vec::new(),
            free: VecDeque::new(),
        }
    }

    /// How many counters there can be at once.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Makes a counter with value 0 and returns its id. The label is cut at its room; registration, owner and
    /// reference ids are 0 until set.
    pub fn allocate(
        &mut self,
        type_id: i32,
        key: &[u8],
        label: &str,
        now_ms: i64,
    ) -> Result<i32, BufferError> {
        if key.len() > KEY_LENGTH {
            let (length, maximum) = (key.len(), KEY_LENGTH);
            return Err(BufferError::KeyTooLong { length, maximum });
        }
        let counter_id = self.next_id(now_ms)?;
        let record = counter_id as usize * METADATA_LENGTH;
        self.metadata.put_i32(record + TYPE_ID_OFFSET, type_id);
        self.metadata.put_bytes_relaxed(record + KEY_OFFSET, key);
        self.metadata
            .put_i64(record + REUSE_DEADLINE_OFFSET, NOT_FREE_TO_REUSE);
        label::put_label(&self.metadata, record, label);
        // Pairs with the acquire of the state in the reader: it then sees type, key and label.
        self.metadata
            .put_i32_release(record + STATE_OFFSET, STATE_ALLOCATED);
        Ok(counter_id)
    }

    /// Takes a counter back. False if it is not allocated.
    pub fn free(&mut self, counter_id: i32, now_ms: i64) -> bool {
        let Some(index) = checked_index(counter_id, self.live.len()).filter(|index| self.live[*index]) else {
            return false;
        };
        let deadline = now_ms.saturating_add(self.reuse_timeout_ms);
        let record = index * METADATA_LENGTH;
        self.metadata
            .put_i32_release(record + STATE_OFFSET, STATE_RECLAIMED);
        // Pairs with the acquire fence in `CountersReader::record`: a reader of a zeroed key sees the state.
        self.metadata.release_fence();
        self.metadata
            .put_bytes_relaxed(record + KEY_OFFSET, &[0; KEY_LENGTH]);
        self.metadata.put_i64(record + REUSE_DEADLINE_OFFSET, deadline);
        self.live[index] = false;
        self.free.push_back((counter_id, deadline));
        true
    }

    /// Whether the id is allocated now.
    pub fn is_allocated(&self, counter_id: i32) -> bool {
        checked_index(counter_id, self.live.len()).is_some_and(|index| self.live[index])
    }

    /// A handle to the value. Panics if the id did not come from [`CountersManager::allocate`].
    pub fn counter(&self, counter_id: i32) -> Counter<M> {
        let _ = self.value_record(counter_id);
        Counter::new(self.values.clone(), counter_id).expect("an id once allocated is inside the array")
    }

    /// Replaces a label, cutting what does not fit. A reader at the same time may see parts of both. False if the
    /// counter is not allocated.
    pub fn set_label(&self, counter_id: i32, label: &str) -> bool {
        let is_allocated = self.is_allocated(counter_id);
        if is_allocated {
            label::put_label(&self.metadata, counter_id as usize * METADATA_LENGTH, label);
        }
        is_allocated
    }

    /// Extends a label, cutting what does not fit. False if the counter is not allocated.
    pub fn append_to_label(&self, counter_id: i32, text: &str) -> bool {
        self.is_allocated(counter_id) && label::append_to_label(&self.metadata, counter_id, text)
    }

    /// Stores which resource the counter belongs to. Panics like [`CountersManager::counter`].
    pub fn set_registration_id(&self, counter_id: i32, registration_id: i64) {
        let record = self.value_record(counter_id);
        self.values
            .put_i64_release(record + REGISTRATION_ID_OFFSET, registration_id);
    }

    /// Stores which client owns the counter. Panics like [`CountersManager::counter`].
    pub fn set_owner_id(&self, counter_id: i32, owner_id: i64) {
        self.values
            .put_i64(self.value_record(counter_id) + OWNER_ID_OFFSET, owner_id);
    }

    /// Stores what the counter refers to. Panics like [`CountersManager::counter`].
    pub fn set_reference_id(&self, counter_id: i32, reference_id: i64) {
        self.values
            .put_i64(self.value_record(counter_id) + REFERENCE_ID_OFFSET, reference_id);
    }

    /// Stores the value. Panics like [`CountersManager::counter`].
    pub fn set_value(&self, counter_id: i32, value: i64) {
        self.values.put_i64_release(self.value_record(counter_id), value);
    }

    /// A reader of the same counters.
    pub fn reader(&self) -> CountersReader<M> {
        CountersReader::new(self.metadata.clone(), self.values.clone())
    }

    fn value_record(&self, counter_id: i32) -> usize {
        let index = checked_index(counter_id, self.live.len());
        index.expect("the id of a counter comes from allocate") * VALUE_LENGTH
    }

    fn next_id(&mut self, now_ms: i64) -> Result<i32, BufferError> {
        let rested = self.free.iter().position(|(_, deadline)| *deadline <= now_ms);
        if let Some((counter_id, _)) = rested.and_then(|at| self.free.remove(at)) {
            let record = counter_id as usize * VALUE_LENGTH;
            self.values.put_i64_release(record + REGISTRATION_ID_OFFSET, 0);
            self.values.put_i64(record + OWNER_ID_OFFSET, 0);
            self.values.put_i64(record + REFERENCE_ID_OFFSET, 0);
            self.values.put_i64_release(record, 0);
            self.live[counter_id as usize] = true;
            return Ok(counter_id);
        }
        if self.live.len() == self.capacity {
            return Err(BufferError::NoFreeCounter {
                capacity: self.capacity,
            });
        }
        self.live.push(true);
        Ok(self.live.len() as i32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT_MS: i64 = 1000;

    fn manager(capacity: usize) -> CountersManager {
        CountersManager::new(
            AtomicBuffer::allocate(capacity * METADATA_LENGTH),
            AtomicBuffer::allocate(capacity * VALUE_LENGTH),
            TIMEOUT_MS,
        )
    }

    #[test]
    fn an_allocated_counter_can_be_read_back() {
        let mut manager = manager(4);
        let id = manager.allocate(7, &[1, 2, 3], "bytes", 0).unwrap();
        manager.set_registration_id(id, 11);
        manager.set_owner_id(id, 12);
        manager.set_reference_id(id, 13);
        manager.set_value(id, 14);
        assert!(manager.set_label(id, "octets") && !manager.set_label(id + 1, "free"));
        assert!(manager.set_label(id, "bytes") && manager.append_to_label(id, " sent"));
        let record = manager.reader().record(id).unwrap();
        assert_eq!(
            (record.id, record.type_id, record.label.as_str()),
            (id, 7, "bytes sent")
        );
        assert_eq!(&record.key[..4], [1, 2, 3, 0]);
        assert_eq!(
            (
                record.registration_id,
                record.owner_id,
                record.reference_id,
                record.value
            ),
            (11, 12, 13, 14)
        );
    }

    #[test]
    fn a_freed_id_rests_and_comes_back_clean() {
        let mut manager = manager(1);
        let id = manager.allocate(1, &[9; KEY_LENGTH], "first", 0).unwrap();
        manager.set_registration_id(id, 5);
        manager.set_value(id, 6);
        assert!(manager.free(id, 10));
        assert_eq!(manager.reader().record(id), None);
        assert_eq!(manager.counter(id).get(), 6); // still readable by a holder of the counter
        let early = manager.allocate(2, &[], "second", 10 + TIMEOUT_MS - 1);
        assert_eq!(early, Err(BufferError::NoFreeCounter { capacity: 1 }));
        assert_eq!(manager.allocate(2, &[], "second", 10 + TIMEOUT_MS), Ok(id));
        let record = manager.reader().record(id).unwrap();
        assert_eq!((record.type_id, record.label.as_str()), (2, "second"));
        assert_eq!(
            (record.key, record.value, record.registration_id),
            ([0; KEY_LENGTH], 0, 0)
        );
    }

    #[test]
    fn freeing_twice_is_refused() {
        let mut manager = manager(2);
        let id = manager.allocate(1, &[], "", 0).unwrap();
        assert!(manager.free(id, 0));
        assert!(!manager.free(id, 0));
        assert!(!manager.free(1, 0));
        assert!(!manager.free(-1, 0));
        assert!(!manager.append_to_label(id, "x"));
    }

    #[test]
    fn a_client_that_resets_a_state_cannot_have_an_id_handed_out_twice() {
        let mut manager = manager(1);
        let id = manager.allocate(1, &[], "", 0).unwrap();
        manager.metadata.put_i32(STATE_OFFSET, STATE_RECLAIMED);
        manager.metadata.put_i64(REUSE_DEADLINE_OFFSET, 0);
        assert!(manager.allocate(1, &[], "", i64::MAX).is_err());
        assert!(manager.is_allocated(id));
    }

    #[test]
    fn a_key_that_does_not_fit_is_an_error_and_takes_no_id() {
        let mut manager = manager(1);
        assert!(matches!(
            manager.allocate(1, &[0; KEY_LENGTH + 1], "", 0),
            Err(BufferError::KeyTooLong { .. })
        ));
        assert_eq!(manager.allocate(1, &[0; KEY_LENGTH], "", 0), Ok(0));
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use loom::thread;

    use super::*;
    use crate::loom_memory::{LoomMemory, model};

    fn manager() -> CountersManager<LoomMemory> {
        // Eight bytes of key and twelve of label are enough to be torn.
        let words = [0..KEY_OFFSET + 8, LABEL_LENGTH_OFFSET..LABEL_OFFSET + 12];
        let metadata = LoomMemory::new(METADATA_LENGTH, &words, &[REUSE_DEADLINE_OFFSET])
            .with_zeros(KEY_OFFSET + 8..LABEL_LENGTH_OFFSET);
        let values = LoomMemory::new(VALUE_LENGTH, &[], &[0, 8, 16, 24]);
        CountersManager::new(metadata, values, 1)
    }

    fn assert_whole(record: &CounterRecord) {
        assert_eq!((record.type_id, record.label.as_str()), (7, "label"));
        assert_eq!(record.key[..8], KEY);
    }

    const KEY: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

    fn spawn_reader(manager: &CountersManager<LoomMemory>) -> thread::JoinHandle<Option<CounterRecord>> {
        let reader = manager.reader();
        thread::spawn(move || reader.record(0))
    }

    #[test]
    fn loom_counter_that_is_live_shows_type_key_and_label() {
        model(3, || {
            let mut manager = manager();
            let reader = spawn_reader(&manager);
            let id = manager.allocate(7, &KEY, "label", 0).unwrap();
            manager.set_registration_id(id, 9);
            if let Some(record) = reader.join().unwrap() {
                assert_whole(&record);
                assert!([0, 9].contains(&record.registration_id));
            }
            assert_whole(&manager.reader().record(id).unwrap());
        });
    }

    #[test]
    fn loom_counter_freed_while_it_is_read_is_shown_whole_or_not_at_all() {
        model(3, || {
            let mut manager = manager();
            let id = manager.allocate(7, &KEY, "label", 0).unwrap();
            let reader = spawn_reader(&manager);
            assert!(manager.free(id, 0));
            if let Some(record) = reader.join().unwrap() {
                assert_whole(&record);
            }
            assert_eq!(manager.reader().record(id), None);
        });
    }

    #[test]
    fn loom_label_that_grows_is_read_as_it_was_or_as_it_is() {
        model(3, || {
            let mut manager = manager();
            let id = manager.allocate(7, &KEY, "label", 0).unwrap();
            let reader = spawn_reader(&manager);
            assert!(manager.append_to_label(id, " more"));
            let label = reader.join().unwrap().unwrap().label;
            assert!(["label", "label more"].contains(&label.as_str()), "{label}");
        });
    }
}
