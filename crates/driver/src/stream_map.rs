//! Streams by session and stream id, found once per packet.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Maps `(session id, stream id)` to `V`.
///
/// The hash is one multiplication, which a peer could defeat by picking its session ids; what that costs is
/// bounded, because the number of entries is.
#[derive(Clone, Debug)]
pub(crate) struct StreamMap<V>(HashMap<u64, V, BuildHasherDefault<KeyHasher>>);

impl<V> Default for StreamMap<V> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<V> StreamMap<V> {
    #[inline]
    pub(crate) fn get(&self, session_id: i32, stream_id: i32) -> Option<&V> {
        self.0.get(&key(session_id, stream_id))
    }

    pub(crate) fn insert(&mut self, session_id: i32, stream_id: i32, value: V) -> Option<V> {
        self.0.insert(key(session_id, stream_id), value)
    }

    pub(crate) fn remove(&mut self, session_id: i32, stream_id: i32) -> Option<V> {
        self.0.remove(&key(session_id, stream_id))
    }
}

#[inline]
fn key(session_id: i32, stream_id: i32) -> u64 {
    u64::from(session_id as u32) << 32 | u64::from(stream_id as u32)
}

/// One multiplication per key.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    #[inline]
    fn write_i32(&mut self, value: i32) {
        self.write_u64(u64::from(value as u32));
    }
}
