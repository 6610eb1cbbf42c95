//! One counter's value.

use super::{REFERENCE_ID_OFFSET, REGISTRATION_ID_OFFSET, VALUE_LENGTH, checked_index};
use crate::AtomicBuffer;
use crate::memory::Memory;

/// A handle to the value of one counter. Clones share the value.
///
/// A counter has one writer, who uses the plain operations; a counter with several writers is only changed with
/// [`Counter::get_and_add`], or with [`Counter::compare_and_set`] from a value at which the others leave it alone.
#[derive(Debug, Clone)]
pub struct Counter<M: Memory = AtomicBuffer> {
    values: M,
    offset: usize,
    id: i32,
}

impl<M: Memory> Counter<M> {
    /// The counter `id` in an array of values; None if the array has no such counter.
    pub fn new(values: M, id: i32) -> Option<Self> {
        let index = checked_index(id, values.capacity() / VALUE_LENGTH)?;
        let offset = index * VALUE_LENGTH;
        Some(Self { values, offset, id })
    }

    /// Id of the counter.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// The value, relaxed; enough for its own writer.
    #[inline]
    pub fn get(&self) -> i64 {
        self.values.get_i64(self.offset)
    }

    /// The value; pairs with the release operations.
    #[inline]
    pub fn get_acquire(&self) -> i64 {
        self.values.get_i64_acquire(self.offset)
    }

    /// Stores relaxed.
    #[inline]
    pub fn set(&self, value: i64) {
        self.values.put_i64(self.offset, value);
    }

    /// Stores so that a reader who sees the value sees everything before it.
    #[inline]
    pub fn set_release(&self, value: i64) {
        self.values.put_i64_release(self.offset, value);
    }

    /// Adds one, as the only writer.
    #[inline]
    pub fn increment_release(&self) {
        self.set_release(self.get().wrapping_add(1));
    }

    /// Adds `delta`, as the only writer.
    #[inline]
    pub fn add(&self, delta: i64) {
        self.set(self.get().wrapping_add(delta));
    }

    /// Adds `delta`, as one of several writers; returns the value before.
    #[inline]
    pub fn get_and_add(&self, delta: i64) -> i64 {
        self.values.get_and_add_i64(self.offset, delta)
    }

    /// Stores `value` if the counter has `expected`, as one of several writers; true if it had.
    #[inline]
    pub fn compare_and_set(&self, expected: i64, value: i64) -> bool {
        self.values.compare_and_set_i64(self.offset, expected, value)
    }

    /// Id of what the counter was made for. It changes when the counter is used anew.
    #[inline]
    pub fn registration_id(&self) -> i64 {
        self.values.get_i64_acquire(self.offset + REGISTRATION_ID_OFFSET)
    }

    /// Says what the counter refers to.
    pub fn set_reference_id(&self, reference_id: i64) {
        self.values
            .put_i64(self.offset + REFERENCE_ID_OFFSET, reference_id);
    }

    /// Raises the value to `value` unless it is already that high, as the only writer. True if it rose.
    #[inline]
    pub fn propose_max_release(&self, value: i64) -> bool {
        let rises = self.get() < value;
        if rises {
            self.set_release(value);
        }
        rises
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_do_not_touch_each_other() {
        let values = AtomicBuffer::allocate(3 * VALUE_LENGTH);
        let counters: Vec<_> = (0..3)
            .map(|id| Counter::new(values.clone(), id).unwrap())
            .collect();
        counters[1].set_release(5);
        counters[1].add(-7);
        counters[1].increment_release();
        assert_eq!(counters[1].get_and_add(10), -1);
        assert_eq!(
            counters.iter().map(Counter::get_acquire).collect::<Vec<_>>(),
            [0, 9, 0]
        );
    }

    #[test]
    fn a_proposal_only_raises() {
        let counter = Counter::new(AtomicBuffer::allocate(VALUE_LENGTH), 0).unwrap();
        assert!(counter.propose_max_release(3));
        assert!(!counter.propose_max_release(3));
        assert!(!counter.propose_max_release(-4));
        assert_eq!(counter.get(), 3);
    }

    #[test]
    fn one_of_many_sets_what_all_of_them_want() {
        const WRITERS: i64 = 4;
        let counter = Counter::new(AtomicBuffer::allocate(VALUE_LENGTH), 0).unwrap();
        for round in 0..1_000 {
            let set: Vec<bool> = std::thread::scope(|scope| {
                let writers: Vec<_> = (1..=WRITERS)
                    .map(|writer| {
                        let counter = counter.clone();
                        scope.spawn(move || counter.compare_and_set(0, writer))
                    })
                    .collect();
                writers.into_iter().map(|writer| writer.join().unwrap()).collect()
            });
            assert_eq!(set.iter().filter(|was_set| **was_set).count(), 1, "round {round}");
            assert!(set[counter.get() as usize - 1], "round {round}");
            counter.set_release(0);
        }
    }

    #[test]
    fn an_id_outside_the_array_has_no_counter() {
        let values = AtomicBuffer::allocate(2 * VALUE_LENGTH + 8);
        assert!(Counter::new(values.clone(), 2).is_none());
        assert!(Counter::new(values, -1).is_none());
    }
}
