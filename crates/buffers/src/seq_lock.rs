//! A sequence lock: one writer replaces a few words, and the reader gets all of them from one write, or none.
//!
//! The writer bumps `begin`, stores the fields, then sets `end = begin`. The reader loads `end`, the fields,
//! then `begin`, and keeps what it read only when the two agree. Neither waits: a reader that meets a writer
//! half-way tries again on its next duty cycle.

#[cfg(loom)]
use loom::sync::atomic::{AtomicI64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicI64, Ordering, fence};

/// `N` words that one agent writes and another reads.
#[derive(Debug)]
pub struct SeqLock<const N: usize> {
    begin: AtomicI64,
    end: AtomicI64,
    words: [AtomicI64; N],
}

impl<const N: usize> SeqLock<N> {
    /// Nothing written yet: change number 0.
    pub fn new() -> Self {
        Self {
            begin: AtomicI64::new(0),
            end: AtomicI64::new(0),
            words: std::array::from_fn(|_| AtomicI64::new(0)),
        }
    }

    /// Replaces the words. Only one thread may call this.
    pub fn write(&self, words: [i64; N]) {
        let change = self.begin.load(Ordering::Relaxed) + 1;
        self.begin.store(change, Ordering::Relaxed);
        // Pairs with the acquire fence in `read_after`: a reader that saw any word stored below also sees the
        // new `begin`, and so notices that its copy is torn.
        fence(Ordering::Release);
        for (cell, word) in self.words.iter().zip(words) {
            cell.store(word, Ordering::Relaxed);
        }
        // Pairs with the acquire load of `end` in `read_after`.
        self.end.store(change, Ordering::Release);
    }

    /// The words and their change number, when they are newer than `seen` and whole.
    pub fn read_after(&self, seen: i64) -> Option<(i64, [i64; N])> {
        let change = self.end.load(Ordering::Acquire);
        if change == seen {
            return None;
        }
        let words = std::array::from_fn(|index| self.words[index].load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        (self.begin.load(Ordering::Relaxed) == change).then_some((change, words))
    }
}

impl<const N: usize> Default for SeqLock<N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_reader_takes_each_change_once() {
        let lock = SeqLock::<2>::new();
        assert_eq!(lock.read_after(0), None);
        lock.write([7, 8]);
        assert_eq!(lock.read_after(0), Some((1, [7, 8])));
        assert_eq!(lock.read_after(1), None);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn loom_seq_lock_is_never_torn() {
        loom::model(|| {
            let lock = Arc::new(SeqLock::<2>::new());
            let writer = Arc::clone(&lock);
            let thread = loom::thread::spawn(move || {
                writer.write([1, -1]);
                writer.write([2, -2]);
            });
            if let Some((change, [first, second])) = lock.read_after(0) {
                assert_eq!((first, second), (change, -change));
            }
            thread.join().unwrap();
            assert_eq!(lock.read_after(0), Some((2, [2, -2])));
        });
    }
}
