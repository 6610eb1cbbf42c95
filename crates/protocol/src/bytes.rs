//! Little-endian fields at fixed offsets, and the text form that commands and events share.

use std::borrow::Cow;

/// Reads a field of a slice whose length the caller has checked; out of range is a bug here and panics.
#[inline]
pub(crate) fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[offset..offset + N]);
    field
}

#[inline]
pub(crate) fn i32_at(bytes: &[u8], offset: usize) -> i32 {
    i32::from_le_bytes(array_at(bytes, offset))
}

#[inline]
pub(crate) fn i64_at(bytes: &[u8], offset: usize) -> i64 {
    i64::from_le_bytes(array_at(bytes, offset))
}

#[inline]
pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, offset))
}

#[inline]
pub(crate) fn put_i32(bytes: &mut [u8], offset: usize, value: i32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
}

#[inline]
pub(crate) fn put_i64(bytes: &mut [u8], offset: usize, value: i64) {
    bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
}

#[inline]
pub(crate) fn put_u16(bytes: &mut [u8], offset: usize, value: u16) {
    bytes[offset..offset + 2].copy_from_slice(&value.to_le_bytes());
}

/// A length-prefixed run of bytes, `i32` length first. `None` if it does not lie wholly in `message`.
pub(crate) fn run_at(message: &[u8], offset: usize) -> Option<&[u8]> {
    let length = i32::from_le_bytes(*message.get(offset..)?.first_chunk()?);
    let length = usize::try_from(length).ok()?;
    message.get(offset + 4..)?.get(..length)
}

/// Text as received. Peers are expected to send ASCII, and UTF-8 is let through; bytes that are neither are
/// shown as `?`, which is what the reference makes of every byte above 127.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => bytes
            .iter()
            .map(|&byte| if byte.is_ascii() { char::from(byte) } else { '?' })
            .collect(),
    }
}

/// Writes a message field by field.
pub(crate) struct MessageWriter<'a> {
    message: &'a mut Vec<u8>,
}

impl<'a> MessageWriter<'a> {
    /// Starts over: what `message` held is gone.
    pub(crate) fn new(message: &'a mut Vec<u8>) -> Self {
        message.clear();
        Self { message }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.message.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn i32(&mut self, value: i32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn i64(&mut self, value: i64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Bytes after their `i32` length.
    pub(crate) fn run(&mut self, bytes: &[u8]) -> &mut Self {
        self.i32(bytes.len() as i32).bytes(bytes)
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.run(text.as_bytes())
    }

    /// Zeros up to a multiple of 4 from the start of the message.
    pub(crate) fn pad_to_4(&mut self) -> &mut Self {
        self.message.resize(self.message.len().next_multiple_of(4), 0);
        self
    }

    /// Zeros until the message is at least `length` long.
    pub(crate) fn pad_to_length(&mut self, length: usize) -> &mut Self {
        self.message.resize(self.message.len().max(length), 0);
        self
    }
}
