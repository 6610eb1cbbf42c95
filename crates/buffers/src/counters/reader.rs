//! Reading counters from any process, at any time.

use super::*;
use crate::AtomicBuffer;
use crate::memory::Memory;

/// What is known about one live counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterRecord {
    /// Index in both arrays.
    pub id: i32,
    /// What kind of counter it is; see [`type_ids`].
    pub type_id: i32,
    /// Key, whose layout depends on the type.
    pub key: [u8; KEY_LENGTH],
    /// Text for people.
    pub label: String,
    /// The value when it was read.
    pub value: i64,
    /// The resource it belongs to; 0 for a moment after allocation.
    pub registration_id: i64,
    /// The client that owns it; -1 for the driver's own.
    pub owner_id: i64,
    /// What it refers to, depending on the type.
    pub reference_id: i64,
}

/// A view of all counters. Never trusts what it reads: ids outside the arrays simply have no counter.
#[derive(Debug, Clone)]
pub struct CountersReader<M: Memory + Clone = AtomicBuffer> {
    metadata: M,
    values: M,
    capacity: usize,
}

impl<M: Memory + Clone> CountersReader<M> {
    /// Reads the given arrays.
    pub fn new(metadata: M, values: M) -> Self {
        let capacity = counter_capacity(metadata.capacity(), values.capacity());
        Self {
            metadata,
            values,
            capacity,
        }
    }

    /// How many counters there can be at once.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Shows every live counter, in the order of ids.
    pub fn for_each<F: FnMut(CounterRecord)>(&self, mut visit: F) {
        for record in self.live_ids().filter_map(|id| self.record(id)) {
            visit(record);
        }
    }

    /// The live counter of this type that belongs to this resource.
    pub fn find(&self, type_id: i32, registration_id: i64) -> Option<i32> {
        self.live_ids().find(|id| {
            self.type_id(*id) == Some(type_id) && self.registration_id(*id) == Some(registration_id)
        })
    }

    /// The live counter that belongs to this resource, whatever its type.
    pub fn find_by_registration_id(&self, registration_id: i64) -> Option<i32> {
        self.live_ids()
            .find(|id| self.registration_id(*id) == Some(registration_id))
    }

    /// Everything about a counter; None unless it is live, and was throughout.
    pub fn record(&self, counter_id: i32) -> Option<CounterRecord> {
        if self.state(counter_id)? != STATE_ALLOCATED {
            return None;
        }
        let index = checked_index(counter_id, self.capacity)?;
        let (metadata, values) = (index * METADATA_LENGTH, index * VALUE_LENGTH);
        let mut key = [0; KEY_LENGTH];
        self.metadata.get_bytes_relaxed(metadata + KEY_OFFSET, &mut key);
        let record = CounterRecord {
            id: counter_id,
            type_id: self.metadata.get_i32(metadata + TYPE_ID_OFFSET),
            key,
            label: label::get_label(&self.metadata, metadata),
            value: self.values.get_i64_acquire(values),
            registration_id: self.values.get_i64_acquire(values + REGISTRATION_ID_OFFSET),
            owner_id: self.values.get_i64(values + OWNER_ID_OFFSET),
            reference_id: self.values.get_i64(values + REFERENCE_ID_OFFSET),
        };
        // Freed while it was being read: what was read may be of no counter that ever was.
        self.metadata.acquire_fence();
        (self.state(counter_id)? == STATE_ALLOCATED).then_some(record)
    }

    /// The state of an id: unused, allocated or reclaimed.
    pub fn state(&self, counter_id: i32) -> Option<i32> {
        let index = checked_index(counter_id, self.capacity)?;
        // Pairs with the release of the state in `CountersManager::allocate`.
        Some(
            self.metadata
                .get_i32_acquire(index * METADATA_LENGTH + STATE_OFFSET),
        )
    }

    /// The type of a counter, whatever its state.
    pub fn type_id(&self, counter_id: i32) -> Option<i32> {
        let index = checked_index(counter_id, self.capacity)?;
        Some(self.metadata.get_i32(index * METADATA_LENGTH + TYPE_ID_OFFSET))
    }

    /// The value of a counter, whatever its state.
    pub fn value(&self, counter_id: i32) -> Option<i64> {
        let index = checked_index(counter_id, self.capacity)?;
        Some(self.values.get_i64_acquire(index * VALUE_LENGTH))
    }

    /// The registration id of a counter, whatever its state.
    pub fn registration_id(&self, counter_id: i32) -> Option<i64> {
        let index = checked_index(counter_id, self.capacity)?;
        Some(
            self.values
                .get_i64_acquire(index * VALUE_LENGTH + REGISTRATION_ID_OFFSET),
        )
    }

    /// The owner of a counter, whatever its state.
    pub fn owner_id(&self, counter_id: i32) -> Option<i64> {
        let index = checked_index(counter_id, self.capacity)?;
        Some(self.values.get_i64(index * VALUE_LENGTH + OWNER_ID_OFFSET))
    }

    /// The label of a counter, whatever its state.
    pub fn label(&self, counter_id: i32) -> Option<String> {
        let index = checked_index(counter_id, self.capacity)?;
        Some(label::get_label(&self.metadata, index * METADATA_LENGTH))
    }

    /// A handle to the value, for the client that owns the counter or to watch it.
    pub fn counter(&self, counter_id: i32) -> Option<Counter<M>> {
        checked_index(counter_id, self.capacity)?;
        Counter::new(self.values.clone(), counter_id)
    }

    /// Extends the label of a counter that this process owns; see [`append_to_label`].
    pub fn append_to_label(&self, counter_id: i32, text: &str) -> bool {
        append_to_label(&self.metadata, counter_id, text)
    }

    fn live_ids(&self) -> impl Iterator<Item = i32> + '_ {
        (0..self.capacity as i32)
            .map_while(|id| {
                self.state(id)
                    .filter(|state| *state != STATE_UNUSED)
                    .map(|state| (id, state))
            })
            .filter(|(_, state)| *state == STATE_ALLOCATED)
            .map(|(id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager() -> CountersManager {
        let metadata = AtomicBuffer::allocate(4 * METADATA_LENGTH);
        CountersManager::new(metadata, AtomicBuffer::allocate(4 * VALUE_LENGTH), 1000)
    }

    #[test]
    fn freed_counters_are_skipped() {
        let mut manager = manager();
        for id in 0..3 {
            assert_eq!(manager.allocate(10 + id, &[], "", 0), Ok(id));
        }
        manager.free(1, 0);
        let mut seen = Vec::new();
        manager
            .reader()
            .for_each(|record| seen.push((record.id, record.type_id)));
        assert_eq!(seen, [(0, 10), (2, 12)]);
    }

    #[test]
    fn a_counter_is_found_by_type_and_registration() {
        let mut manager = manager();
        for (type_id, registration_id) in [(1, 8), (2, 8), (2, 9)] {
            let id = manager.allocate(type_id, &[], "", 0).unwrap();
            manager.set_registration_id(id, registration_id);
        }
        let reader = manager.reader();
        assert_eq!(
            (reader.find(2, 8), reader.find(2, 9), reader.find(1, 9)),
            (Some(1), Some(2), None)
        );
        assert_eq!(reader.find_by_registration_id(8), Some(0));
        manager.free(1, 0);
        assert_eq!(reader.find(2, 8), None);
    }

    #[test]
    fn ids_outside_the_arrays_have_no_counter() {
        let reader = manager().reader();
        for id in [-1, 4, i32::MIN, i32::MAX] {
            assert_eq!(
                (reader.state(id), reader.value(id), reader.record(id)),
                (None, None, None)
            );
            assert!(reader.counter(id).is_none());
        }
        assert_eq!((reader.state(3), reader.record(3)), (Some(STATE_UNUSED), None));
    }
}
