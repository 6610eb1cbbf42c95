//! A run of bytes in shared memory that the kernel may read while other processes write it.

use std::marker::PhantomData;

/// Address and length of live memory, borrowed for `'a`.
///
/// A `&[u8]` promises that no one writes the bytes; shared memory cannot promise that. A `Region` only
/// promises that the bytes stay mapped, which is all a system call needs: the kernel makes the copy.
#[derive(Clone, Copy, Debug)]
pub struct Region<'a> {
    base: *const u8,
    length: usize,
    lifetime: PhantomData<&'a ()>,
}

impl<'a> Region<'a> {
    /// Describes `length` bytes from `base`.
    ///
    /// # Safety
    /// The bytes must stay mapped and readable for `'a`.
    #[inline]
    pub unsafe fn new(base: *const u8, length: usize) -> Self {
        Self {
            base,
            length,
            lifetime: PhantomData,
        }
    }

    /// The same for bytes that no one writes meanwhile.
    #[inline]
    pub fn of(bytes: &'a [u8]) -> Self {
        Self {
            base: bytes.as_ptr(),
            length: bytes.len(),
            lifetime: PhantomData,
        }
    }

    /// First byte.
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        self.base
    }

    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.length
    }

    /// True when there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Copies the bytes out, as the kernel would: what others write meanwhile may be in the copy or not.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length];
        // SAFETY: the source is mapped for the lifetime of the region, the destination is as long and distinct.
        unsafe { std::ptr::copy_nonoverlapping(self.base, bytes.as_mut_ptr(), self.length) };
        bytes
    }
}
