//! The few memory operations that every shared structure is written with.

/// Bytes that a processor fetches at once.
const CACHE_LINE_LENGTH: usize = 64;

/// Naturally aligned words and runs of bytes, with the memory order in the name.
///
/// `get`/`put` without a suffix are relaxed: they never tear but order nothing. A `put_*_release` pairs with
/// the `get_*_acquire` of the same word: a reader that sees the value also sees every byte written before.
/// Read-modify-writes are sequentially consistent. Offsets are bytes from the start; an offset out of range or
/// misaligned is a bug in the caller and panics, so offsets that come from another process are checked first.
pub trait Memory {
    /// Length in bytes.
    fn capacity(&self) -> usize;

    /// Relaxed load.
    fn get_i32(&self, offset: usize) -> i32;
    /// Acquire load.
    fn get_i32_acquire(&self, offset: usize) -> i32;
    /// Relaxed store.
    fn put_i32(&self, offset: usize, value: i32);
    /// Release store.
    fn put_i32_release(&self, offset: usize, value: i32);
    /// Sequentially consistent add; returns the value before.
    fn get_and_add_i32(&self, offset: usize, delta: i32) -> i32;
    /// Sequentially consistent compare and set; true if it stored.
    fn compare_and_set_i32(&self, offset: usize, expected: i32, value: i32) -> bool;

    /// Relaxed load.
    fn get_i64(&self, offset: usize) -> i64;
    /// Acquire load.
    fn get_i64_acquire(&self, offset: usize) -> i64;
    /// Relaxed store.
    fn put_i64(&self, offset: usize, value: i64);
    /// Release store.
    fn put_i64_release(&self, offset: usize, value: i64);
    /// Sequentially consistent add; returns the value before.
    fn get_and_add_i64(&self, offset: usize, delta: i64) -> i64;
    /// Sequentially consistent compare and set; true if it stored.
    fn compare_and_set_i64(&self, offset: usize, expected: i64, value: i64) -> bool;

    /// Sequentially consistent or; returns the value before.
    fn get_and_or_i64(&self, offset: usize, bits: i64) -> i64;
    /// Sequentially consistent and; returns the value before.
    fn get_and_and_i64(&self, offset: usize, bits: i64) -> i64;

    /// Copies bytes out. The caller knows, by protocol, that no one writes them now, or validates after.
    fn get_bytes(&self, offset: usize, into: &mut [u8]);
    /// Copies bytes in. The caller owns the range by protocol until it publishes it.
    fn put_bytes(&self, offset: usize, from: &[u8]);
    /// Copies bytes out word by word, each word relaxed, so that a concurrent writer can spoil the copy but not
    /// the program. The words that hold the range must lie inside the memory.
    fn get_bytes_relaxed(&self, offset: usize, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            let (word, skip) = (((offset + done) & !3), (offset + done) & 3);
            let count = (4 - skip).min(into.len() - done);
            let bytes = self.get_i32(word).to_ne_bytes();
            into[done..done + count].copy_from_slice(&bytes[skip..skip + count]);
            done += count;
        }
    }
    /// Copies bytes in word by word, each word relaxed, for ranges that another process may read meanwhile. The
    /// words at both ends are read and written back whole, so the caller must be their only writer.
    fn put_bytes_relaxed(&self, offset: usize, from: &[u8]) {
        let mut done = 0;
        while done < from.len() {
            let (word, skip) = (((offset + done) & !3), (offset + done) & 3);
            let count = (4 - skip).min(from.len() - done);
            let mut bytes = [0; 4];
            if count < 4 {
                bytes = self.get_i32(word).to_ne_bytes();
            }
            bytes[skip..skip + count].copy_from_slice(&from[done..done + count]);
            self.put_i32(word, i32::from_ne_bytes(bytes));
            done += count;
        }
    }
    /// Sets a range to zero.
    fn zero(&self, offset: usize, length: usize);

    /// Asks for the cache line at an offset, which may lie outside the memory, to be there soon.
    fn prefetch(&self, _offset: usize) {}

    /// As [`Self::prefetch`], for a line that this thread writes to.
    fn prefetch_to_write(&self, _offset: usize) {}

    /// Asks for each line of a range to be there soon.
    #[inline(always)]
    fn prefetch_range(&self, offset: usize, length: usize) {
        for line in (0..length).step_by(CACHE_LINE_LENGTH) {
            self.prefetch(offset + line);
        }
    }

    /// As [`Self::prefetch_range`], for lines that this thread writes to.
    #[inline(always)]
    fn prefetch_range_to_write(&self, offset: usize, length: usize) {
        for line in (0..length).step_by(CACHE_LINE_LENGTH) {
            self.prefetch_to_write(offset + line);
        }
    }

    /// Orders earlier stores before later stores.
    fn release_fence(&self);
    /// Orders earlier loads before later loads.
    fn acquire_fence(&self);
    /// Keeps earlier stores before later loads, for a thread on the other side of a [`Self::heavy_fence`]. Costs next
    /// to nothing.
    fn light_fence(&self);
    /// Keeps earlier stores before later loads, here and for all threads that use [`Self::light_fence`]. Costs a
    /// system call. False when the system refused, and threads of other processes may be missed.
    fn heavy_fence(&self) -> bool;
}
