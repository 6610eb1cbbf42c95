//! Labels: written by one party, read by any process at any time.

use super::{LABEL_LENGTH_MAX, LABEL_LENGTH_OFFSET, LABEL_OFFSET, METADATA_LENGTH, checked_index};
use crate::memory::Memory;

/// Label text as it is stored: other systems read it as US-ASCII or as UTF-8, so only what both agree on.
fn ascii(text: &str, room: usize) -> Vec<u8> {
    text.chars()
        .map(|letter| if letter.is_ascii() { letter as u8 } else { b'?' })
        .take(room)
        .collect()
}

/// Replaces the label of the record at `record`.
pub(super) fn put_label<M: Memory>(metadata: &M, record: usize, text: &str) {
    let text = ascii(text, LABEL_LENGTH_MAX);
    metadata.put_bytes_relaxed(record + LABEL_OFFSET, &text);
    metadata.put_i32_release(record + LABEL_LENGTH_OFFSET, text.len() as i32);
}

/// The label of the record at `record`, whatever state it is in.
pub(super) fn get_label<M: Memory>(metadata: &M, record: usize) -> String {
    // Pairs with the release of the length: the bytes up to it have been written.
    let length = stored_length(metadata.get_i32_acquire(record + LABEL_LENGTH_OFFSET));
    let mut text = vec![0; length];
    metadata.get_bytes_relaxed(record + LABEL_OFFSET, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Extends the label of a counter, cutting what does not fit. For the one party that may write the label: the
/// driver, or the client whose heartbeat the counter is. False if there is no such counter.
pub fn append_to_label<M: Memory>(metadata: &M, counter_id: i32, text: &str) -> bool {
    let Some(index) = checked_index(counter_id, metadata.capacity() / METADATA_LENGTH) else {
        return false;
    };
    let record = index * METADATA_LENGTH;
    let length = stored_length(metadata.get_i32(record + LABEL_LENGTH_OFFSET));
    let text = ascii(text, LABEL_LENGTH_MAX - length);
    metadata.put_bytes_relaxed(record + LABEL_OFFSET + length, &text);
    metadata.put_i32_release(record + LABEL_LENGTH_OFFSET, (length + text.len()) as i32);
    true
}

fn stored_length(length: i32) -> usize {
    usize::try_from(length).unwrap_or(0).min(LABEL_LENGTH_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AtomicBuffer;

    #[test]
    fn a_label_grows_until_its_room_is_used_up() {
        let metadata = AtomicBuffer::allocate(2 * METADATA_LENGTH);
        put_label(&metadata, 0, "abc");
        assert!(append_to_label(&metadata, 0, " de"));
        assert_eq!(get_label(&metadata, 0), "abc de");
        assert!(append_to_label(&metadata, 0, &"x".repeat(1000)));
        assert_eq!(get_label(&metadata, 0).len(), LABEL_LENGTH_MAX);
        assert!(append_to_label(&metadata, 0, "y"));
        assert!(get_label(&metadata, 0).ends_with('x'));
        // The next record was not touched.
        assert_eq!(metadata.get_i64(METADATA_LENGTH), 0);
    }

    #[test]
    fn a_label_is_stored_in_ascii() {
        let metadata = AtomicBuffer::allocate(METADATA_LENGTH);
        put_label(&metadata, 0, "größe");
        assert_eq!(get_label(&metadata, 0), "gr??e");
    }

    #[test]
    fn a_damaged_length_is_clamped() {
        let metadata = AtomicBuffer::allocate(METADATA_LENGTH);
        for (stored, expected) in [(i32::MAX, LABEL_LENGTH_MAX), (-1, 0), (i32::MIN, 0)] {
            metadata.put_i32(LABEL_LENGTH_OFFSET, stored);
            assert_eq!(get_label(&metadata, 0).len(), expected);
        }
        assert!(!append_to_label(&metadata, 1, "x"));
        assert!(!append_to_label(&metadata, -1, "x"));
    }
}
