//! Memory made of loom's atomics, for models that try every interleaving.
//!
//! Loom's atomics own their storage, so this describes the layout word by word: every word that the algorithm under
//! test touches is a 32-bit or a 64-bit cell, as the algorithm accesses it, and touching anything else fails the model.
//! Runs of bytes are copied cell by cell, relaxed. That makes a race on plain bytes show as a copy that mixes old and
//! new, which is what the model then has to rule out.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use loom::sync::atomic::{AtomicI32, AtomicI64, Ordering, fence};

use crate::memory::Memory;

#[derive(Debug)]
enum Cell {
    Word32(AtomicI32),
    Word64(AtomicI64),
    /// 32 bits that only ever hold zero, and so offer loom nothing to choose from.
    Zero,
}

/// Modelled memory; clones share it. Make it inside the model.
#[derive(Debug, Clone)]
pub(crate) struct LoomMemory {
    cells: Arc<BTreeMap<usize, Cell>>,
    capacity: usize,
}

impl LoomMemory {
    /// Zeroed memory of `capacity` bytes, with 32-bit words over the ranges, which are multiples of 4, and 64-bit
    /// words at the offsets, which win where both are given.
    pub(crate) fn new(capacity: usize, words32: &[Range<usize>], words64: &[usize]) -> Self {
        let mut cells = BTreeMap::new();
        for offset in words32.iter().cloned().flat_map(|range| range.step_by(4)) {
            cells.insert(offset, Cell::Word32(AtomicI32::new(0)));
        }
        for offset in words64 {
            assert!(offset % 8 == 0);
            cells.remove(&(offset + 4));
            cells.insert(*offset, Cell::Word64(AtomicI64::new(0)));
        }
        let cells = Arc::new(cells);
        Self { cells, capacity }
    }

    /// The same, before it is shared, with words at the range that the algorithm reads and only sets to zero.
    /// Keeps models small where an algorithm copies more than matters.
    pub(crate) fn with_zeros(self, range: Range<usize>) -> Self {
        let mut cells = Arc::into_inner(self.cells).expect("the memory is not shared yet");
        cells.extend(range.step_by(4).map(|offset| (offset, Cell::Zero)));
        let cells = Arc::new(cells);
        Self { cells, ..self }
    }

    fn word32(&self, offset: usize) -> &AtomicI32 {
        match self.cells.get(&offset) {
            Some(Cell::Word32(word)) => word,
            other => panic!("offset={offset} is no 32-bit word: {other:?}"),
        }
    }

    fn word64(&self, offset: usize) -> &AtomicI64 {
        match self.cells.get(&offset) {
            Some(Cell::Word64(word)) => word,
            other => panic!("offset={offset} is no 64-bit word: {other:?}"),
        }
    }

    /// The cell that holds a byte, and where the cell starts.
    fn cell_of(&self, offset: usize) -> (usize, &Cell) {
        let (start, cell) = self
            .cells
            .range(..=offset)
            .next_back()
            .expect("a word at or before the offset");
        assert!(offset < start + cell.width(), "offset={offset} is in no word");
        (*start, cell)
    }

    /// Walks the cells of a range; the visitor gets the cell, the bytes of it that are meant, and their place.
    fn for_each_cell(
        &self,
        offset: usize,
        length: usize,
        mut visit: impl FnMut(&Cell, Range<usize>, Range<usize>),
    ) {
        assert!(offset + length <= self.capacity);
        let mut done = 0;
        while done < length {
            let (start, cell) = self.cell_of(offset + done);
            let skip = offset + done - start;
            let count = (cell.width() - skip).min(length - done);
            visit(cell, skip..skip + count, done..done + count);
            done += count;
        }
    }
}

impl Cell {
    fn load(&self) -> Vec<u8> {
        match self {
            Self::Word32(word) => word.load(Ordering::Relaxed).to_ne_bytes().to_vec(),
            Self::Word64(word) => word.load(Ordering::Relaxed).to_ne_bytes().to_vec(),
            Self::Zero => vec![0; 4],
        }
    }

    fn store(&self, bytes: &[u8]) {
        match self {
            Self::Word32(word) => {
                let value = i32::from_ne_bytes(bytes.try_into().expect("4 bytes"));
                word.store(value, Ordering::Relaxed);
            }
            Self::Word64(word) => {
                let value = i64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
                word.store(value, Ordering::Relaxed);
            }
            Self::Zero => assert!(bytes.iter().all(|byte| *byte == 0)),
        }
    }

    fn width(&self) -> usize {
        match self {
            Self::Word32(_) | Self::Zero => 4,
            Self::Word64(_) => 8,
        }
    }

    /// Replaces some bytes of the cell; a cell replaced whole is not read.
    fn merge(&self, part: Range<usize>, from: &[u8]) {
        let mut bytes = if part.len() == self.width() {
            vec![0; part.len()]
        } else {
            self.load()
        };
        bytes[part].copy_from_slice(from);
        self.store(&bytes);
    }
}

impl Memory for LoomMemory {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn get_i32(&self, offset: usize) -> i32 {
        self.word32(offset).load(Ordering::Relaxed)
    }

    fn get_i32_acquire(&self, offset: usize) -> i32 {
        self.word32(offset).load(Ordering::Acquire)
    }

    fn put_i32(&self, offset: usize, value: i32) {
        self.word32(offset).store(value, Ordering::Relaxed);
    }

    fn put_i32_release(&self, offset: usize, value: i32) {
        self.word32(offset).store(value, Ordering::Release);
    }

    fn get_and_add_i32(&self, offset: usize, delta: i32) -> i32 {
        self.word32(offset).fetch_add(delta, Ordering::SeqCst)
    }

    fn compare_and_set_i32(&self, offset: usize, expected: i32, value: i32) -> bool {
        self.word32(offset)
            .compare_exchange(expected, value, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    fn get_i64(&self, offset: usize) -> i64 {
        self.word64(offset).load(Ordering::Relaxed)
    }

    fn get_i64_acquire(&self, offset: usize) -> i64 {
        self.word64(offset).load(Ordering::Acquire)
    }

    fn put_i64(&self, offset: usize, value: i64) {
        self.word64(offset).store(value, Ordering::Relaxed);
    }

    fn put_i64_release(&self, offset: usize, value: i64) {
        self.word64(offset).store(value, Ordering::Release);
    }

    fn get_and_add_i64(&self, offset: usize, delta: i64) -> i64 {
        self.word64(offset).fetch_add(delta, Ordering::SeqCst)
    }

    fn compare_and_set_i64(&self, offset: usize, expected: i64, value: i64) -> bool {
        self.word64(offset)
            .compare_exchange(expected, value, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    fn get_and_or_i64(&self, offset: usize, bits: i64) -> i64 {
        self.word64(offset).fetch_or(bits, Ordering::SeqCst)
    }

    fn get_and_and_i64(&self, offset: usize, bits: i64) -> i64 {
        self.word64(offset).fetch_and(bits, Ordering::SeqCst)
    }

    fn get_bytes_relaxed(&self, offset: usize, into: &mut [u8]) {
        self.get_bytes(offset, into);
    }

    fn put_bytes_relaxed(&self, offset: usize, from: &[u8]) {
        self.put_bytes(offset, from);
    }

    fn get_bytes(&self, offset: usize, into: &mut [u8]) {
        self.for_each_cell(offset, into.len(), |cell, part, place| {
            into[place].copy_from_slice(&cell.load()[part]);
        });
    }

    fn put_bytes(&self, offset: usize, from: &[u8]) {
        self.for_each_cell(offset, from.len(), |cell, part, place| {
            cell.merge(part, &from[place]);
        });
    }

    fn zero(&self, offset: usize, length: usize) {
        self.for_each_cell(offset, length, |cell, part, _| {
            let zeros = vec![0; part.len()];
            cell.merge(part, &zeros);
        });
    }

    fn release_fence(&self) {
        fence(Ordering::Release);
    }

    fn acquire_fence(&self) {
        fence(Ordering::Acquire);
    }

    // Together the two sides have what two full fences give; loom knows no asymmetric ones.
    fn light_fence(&self) {
        fence(Ordering::SeqCst);
    }

    fn heavy_fence(&self) -> bool {
        fence(Ordering::SeqCst);
        true
    }
}

/// Runs a model with at most `preemptions` forced switches, which finds nearly every fault at a bounded cost.
///
/// Loom remembers only the last access to a word. A thread that loads a word before it stores it therefore hides
/// an earlier load by another thread, and with it the interleaving in which that load comes later. So let the
/// side that only loads run in a spawned thread, against a main thread that stores, and where both sides load and
/// store, model both arrangements. A model that ran only once has checked nothing, and fails.
pub(crate) fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        body();
    });
    assert!(
        runs.load(Ordering::Relaxed) > 1,
        "loom found nothing to interleave"
    );
}
