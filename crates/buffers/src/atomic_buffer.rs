//! A bounds-checked view of shared memory that keeps its mapping alive.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering, fence};
use std::time::Duration;

use headrace_sys::{MappedFile, Region, barrier, futex};

use crate::memory::Memory;

/// A run of mapped or heap memory, shared with other threads and processes.
///
/// Cloning is cheap and shares the memory. Every access is checked against the length and natural alignment.
#[derive(Clone)]
pub struct AtomicBuffer {
    base: NonNull<u8>,
    length: usize,
    // Never read: it keeps the mapping from being unmapped while a view of it exists.
    owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the memory outlives the view (`owner`), and every access to it is atomic or, for bulk copies, ordered
// by the protocol of the structure laid over it.
unsafe impl Send for AtomicBuffer {}
// SAFETY: as for Send.
unsafe impl Sync for AtomicBuffer {}

impl AtomicBuffer {
    /// The whole of a mapping.
    pub fn of_mapping(mapping: Arc<MappedFile>) -> Self {
        Self {
            base: mapping.base(),
            length: mapping.len(),
            owner: mapping,
        }
    }

    /// Zeroed memory of this process only, aligned to 8 bytes; for tests and single-process use.
    pub fn allocate(length: usize) -> Self {
        let mut words = vec![0u64; length.div_ceil(8)];
        // From a mutable borrow, which alone may be written through, and of a vector: to move a box ends its borrows.
        let base = NonNull::new(words.as_mut_ptr().cast::<u8>()).expect("a vector's pointer is never null");
        Self {
            base,
            length,
            owner: Arc::new(words),
        }
    }

    /// A part of this buffer. Panics when the range does not lie inside or does not start at a multiple of 8.
    pub fn slice(&self, offset: usize, length: usize) -> Self {
        assert!(offset.is_multiple_of(8), "offset={offset} is not a multiple of 8");
        self.check(offset, length);
        // SAFETY: the range was checked to lie inside the live memory.
        let base = unsafe { self.base.add(offset) };
        Self {
            base,
            length,
            owner: Arc::clone(&self.owner),
        }
    }

    /// Describes a range for a system call.
    #[inline]
    pub fn region(&self, offset: usize, length: usize) -> Region<'_> {
        self.check(offset, length);
        // SAFETY: the range lies inside memory that `owner` keeps mapped while self is borrowed.
        unsafe { Region::new(self.base.as_ptr().add(offset), length) }
    }

    /// Lends bytes that no one writes while they are borrowed: a committed frame ahead of the reader's
    /// position, or memory this caller claimed.
    ///
    /// # Safety
    /// By the protocol of the structure, no thread or process may write the range during the borrow.
    #[inline]
    pub unsafe fn bytes(&self, offset: usize, length: usize) -> &[u8] {
        self.check(offset, length);
        // SAFETY: in range and mapped; the caller promises the absence of writers.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset), length) }
    }

    /// Wakes the thread, of any process, that sleeps on a word of four bytes. The caller has changed the word.
    pub fn wake(&self, offset: usize) {
        futex::wake(self.cell_i32(offset));
    }

    /// Sleeps while a word of four bytes is `seen`: until it is woken, a signal comes or `timeout` is over.
    pub fn sleep(&self, offset: usize, seen: i32, timeout: Duration) {
        futex::sleep(self.cell_i32(offset), seen, timeout);
    }

    /// Address of the first byte.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    #[inline(always)]
    fn check(&self, offset: usize, length: usize) {
        assert!(
            offset <= self.length && length <= self.length - offset,
            "offset={offset} length={length} is outside a buffer of capacity={}",
            self.length
        );
    }

    #[inline(always)]
    fn cell_i32(&self, offset: usize) -> &AtomicI32 {
        assert!(offset & 3 == 0 && offset < self.length && self.length - offset >= 4);
        // SAFETY: in range, and aligned because every base is a multiple of 8 and the offset of 4.
        unsafe { AtomicI32::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    #[inline(always)]
    fn cell_i64(&self, offset: usize) -> &AtomicI64 {
        assert!(offset & 7 == 0 && offset < self.length && self.length - offset >= 8);
        // SAFETY: in range, and aligned because both base and offset are multiples of 8.
        unsafe { AtomicI64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }
}

impl std::fmt::Debug for AtomicBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AtomicBuffer")
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Memory for AtomicBuffer {
    #[inline]
    fn capacity(&self) -> usize {
        self.length
    }

    #[inline]
    fn get_i32(&self, offset: usize) -> i32 {
        self.cell_i32(offset).load(Ordering::Relaxed)
    }

    #[inline]
    fn get_i32_acquire(&self, offset: usize) -> i32 {
        self.cell_i32(offset).load(Ordering::Acquire)
    }

    #[inline]
    fn put_i32(&self, offset: usize, value: i32) {
        self.cell_i32(offset).store(value, Ordering::Relaxed);
    }

    #[inline]
    fn put_i32_release(&self, offset: usize, value: i32) {
        self.cell_i32(offset).store(value, Ordering::Release);
    }

    #[inline]
    fn get_and_add_i32(&self, offset: usize, delta: i32) -> i32 {
        self.cell_i32(offset).fetch_add(delta, Ordering::SeqCst)
    }

    #[inline]
    fn compare_and_set_i32(&self, offset: usize, expected: i32, value: i32) -> bool {
        self.cell_i32(offset)
            .compare_exchange(expected, value, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    #[inline]
    fn get_i64(&self, offset: usize) -> i64 {
        self.cell_i64(offset).load(Ordering::Relaxed)
    }

    #[inline]
    fn get_i64_acquire(&self, offset: usize) -> i64 {
        self.cell_i64(offset).load(Ordering::Acquire)
    }

    #[inline]
    fn put_i64(&self, offset: usize, value: i64) {
        self.cell_i64(offset).store(value, Ordering::Relaxed);
    }

    #[inline]
    fn put_i64_release(&self, offset: usize, value: i64) {
        self.cell_i64(offset).store(value, Ordering::Release);
    }

    #[inline]
    fn get_and_add_i64(&self, offset: usize, delta: i64) -> i64 {
        self.cell_i64(offset).fetch_add(delta, Ordering::SeqCst)
    }

    #[inline]
    fn compare_and_set_i64(&self, offset: usize, expected: i64, value: i64) -> bool {
        self.cell_i64(offset)
            .compare_exchange(expected, value, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    #[inline]
    fn get_and_or_i64(&self, offset: usize, bits: i64) -> i64 {
        self.cell_i64(offset).fetch_or(bits, Ordering::SeqCst)
    }

    #[inline]
    fn get_and_and_i64(&self, offset: usize, bits: i64) -> i64 {
        self.cell_i64(offset).fetch_and(bits, Ordering::SeqCst)
    }

    #[inline]
    fn get_bytes(&self, offset: usize, into: &mut [u8]) {
        self.check(offset, into.len());
        // SAFETY: the source range is in bounds, and `into` is a distinct, exclusively borrowed destination.
        unsafe {
            std::ptr::copy_nonoverlapping(self.base.as_ptr().add(offset), into.as_mut_ptr(), into.len());
        }
    }

    #[inline]
    fn put_bytes(&self, offset: usize, from: &[u8]) {
        self.check(offset, from.len());
        // SAFETY: the destination range is in bounds; `copy` allows `from` to lie in the same mapping.
        unsafe { std::ptr::copy(from.as_ptr(), self.base.as_ptr().add(offset), from.len()) }
    }

    #[inline]
    fn zero(&self, offset: usize, length: usize) {
        self.check(offset, length);
        // SAFETY: the range is in bounds.
        unsafe { std::ptr::write_bytes(self.base.as_ptr().add(offset), 0, length) }
    }

    #[inline]
    fn prefetch(&self, offset: usize) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch is a hint; it faults at no address.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(self.base.as_ptr().wrapping_add(offset).cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = offset;
    }

    #[inline]
    fn prefetch_to_write(&self, offset: usize) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch is a hint; it faults at no address and changes no byte.
        unsafe {
            std::arch::asm!(
                "prefetchw [{}]",
                in(reg) self.base.as_ptr().wrapping_add(offset),
                options(readonly, nostack, preserves_flags),
            );
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = offset;
    }

    #[inline]
    fn release_fence(&self) {
        fence(Ordering::Release);
    }

    #[inline]
    fn acquire_fence(&self) {
        fence(Ordering::Acquire);
    }

    #[inline(always)]
    fn light_fence(&self) {
        barrier::light();
    }

    #[inline]
    fn heavy_fence(&self) -> bool {
        barrier::heavy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_bytes_share_the_memory_in_little_endian() {
        let buffer = AtomicBuffer::allocate(64);
        buffer.put_i32_release(8, 0x0403_0201);
        let mut bytes = [0; 4];
        buffer.get_bytes(8, &mut bytes);
        assert_eq!(bytes, [1, 2, 3, 4]);
        buffer.put_bytes(16, &[0xff; 8]);
        assert_eq!(buffer.get_i64_acquire(16), -1);
    }

    #[test]
    fn a_slice_sees_the_same_memory_and_keeps_it_alive() {
        let part = {
            let whole = AtomicBuffer::allocate(64);
            whole.put_i64(32, 7);
            whole.slice(32, 16)
        };
        assert_eq!((part.get_i64(0), part.capacity()), (7, 16));
    }

    #[test]
    #[should_panic(expected = "outside a buffer of capacity=16")]
    fn a_range_past_the_end_is_refused() {
        AtomicBuffer::allocate(16).put_bytes(12, &[0; 5]);
    }

    #[test]
    #[should_panic]
    fn a_misaligned_word_is_refused() {
        AtomicBuffer::allocate(16).get_i64(4);
    }
}
