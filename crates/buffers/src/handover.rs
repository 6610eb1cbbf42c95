//! One writer hands a few words to one reader, who takes them whole or not at all.
//!
//! The writer bumps `begin`, stores the fields, then sets `end = begin`. The reader loads `end`, the fields,
//! then `begin`, and keeps what it read only when the two agree. Neither waits: a reader that meets a writer
//! half-way tries again on its next duty cycle.

#[cfg(loom)]
use loom::sync::atomic::{AtomicI64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicI64, Ordering, fence};

/// `N` words handed from one writing agent to one reading agent.
#[derive(Debug)]
pub struct Handover<const N: usize> {
    begin: AtomicI64,
    end: AtomicI64,
    words: [AtomicI64; N],
}

impl<const N: usize> Handover<N> {
    /// Nothing handed over yet: change number 0.
    pub fn new() -> Self {
        Self {
            begin: AtomicI64::new(0),
            end: AtomicI64::new(0),
            words: std::array::from_fn(|_| AtomicI64::new(0)),
        }
    }

    /// Replaces the words. Only one thread may call this.
    pub fn put(&self, words: [i64; N]) {
        let change = self.begin.load(Ordering::Relaxed) + 1;
        self.begin.store(change, Ordering::Relaxed);
        // Pairs with the acquire fence in `take_after`: a reader that saw any word stored below also sees the
        // new `begin`, and so notices that its copy is torn.
        fence(Ordering::Release);
        for (cell, word) in self.words.iter().zip(words) {
            cell.store(word, Ordering::Relaxed);
        }
        // Pairs with the acquire load of `end` in `take_after`.
        self.end.store(change, Ordering::Release);
    }

    /// The words and their change number, when they are newer than `seen` and whole.
    pub fn take_after(&self, seen: i64) -> Option<(i64, [i64; N])> {
        let change = self.end.load(Ordering::Acquire);
        if change == seen {
            return None;
        }
        let words = std::array::from_fn(|index| self.words[index].load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        (self.begin.load(Ordering::Relaxed) == change).then_some((change, words))
    }
}

impl<const N: usize> Default for Handover<N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_reader_takes_each_change_once() {
        let handover = Handover::<2>::new();
        assert_eq!(handover.take_after(0), None);
        handover.put([7, 8]);
        assert_eq!(handover.take_after(0), Some((1, [7, 8])));
        assert_eq!(handover.take_after(1), None);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn loom_handover_is_never_torn() {
        loom::model(|| {
            let handover = Arc::new(Handover::<2>::new());
            let writer = Arc::clone(&handover);
            let thread = loom::thread::spawn(move || {
                writer.put([1, -1]);
                writer.put([2, -2]);
            });
            if let Some((change, [first, second])) = handover.take_after(0) {
                assert_eq!((first, second), (change, -change));
            }
            thread.join().unwrap();
            assert_eq!(handover.take_after(0), Some((2, [2, -2])));
        });
    }
}
