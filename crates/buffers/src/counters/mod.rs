//! Named 64-bit values that the driver allocates and any process may read.
//!
//! Two arrays share the index, which is the counter id:
//!
//! ```text
//! metadata record, 512 bytes                    values record, 128 bytes
//!   0 i32 state                                   0 i64 value
//!   4 i32 type id                                 8 i64 registration id
//!   8 i64 free-for-reuse deadline, epoch ms      16 i64 owner id
//!  16     key, 112 bytes                         24 i64 reference id
//! 128 i32 label length
//! 132     label, 380 bytes, ASCII
//! ```
//!
//! Only the driver changes states. A reader that sees [`STATE_ALLOCATED`] also sees type, key and label; the
//! registration, owner and reference ids follow a moment later. The value, its label and its ids stay readable
//! after a counter is freed, and the id is not used again before the reuse timeout, because clients keep
//! pointing at the value.

mod counter;
mod label;
mod manager;
mod reader;
pub mod system_counter;
pub mod type_ids;

pub use counter::Counter;
pub use label::append_to_label;
pub use manager::CountersManager;
pub use reader::{CounterRecord, CountersReader};

/// Length of a metadata record.
pub const METADATA_LENGTH: usize = 512;
/// Length of a values record.
pub const VALUE_LENGTH: usize = 128;

/// The id was never used, and neither was any above it.
pub const STATE_UNUSED: i32 = 0;
/// The counter is live.
pub const STATE_ALLOCATED: i32 = 1;
/// The counter was freed.
pub const STATE_RECLAIMED: i32 = -1;

/// Offset of the state in a metadata record.
pub const STATE_OFFSET: usize = 0;
/// Offset of the type id in a metadata record.
pub const TYPE_ID_OFFSET: usize = 4;
/// Offset of the free-for-reuse deadline in a metadata record.
pub const REUSE_DEADLINE_OFFSET: usize = 8;
/// Offset of the key in a metadata record.
pub const KEY_OFFSET: usize = 16;
/// Room for a key.
pub const KEY_LENGTH: usize = 112;
/// Offset of the label length in a metadata record.
pub const LABEL_LENGTH_OFFSET: usize = 128;
/// Offset of the label in a metadata record.
pub const LABEL_OFFSET: usize = 132;
/// Room for a label.
pub const LABEL_LENGTH_MAX: usize = 380;

/// Offset of the registration id in a values record.
pub const REGISTRATION_ID_OFFSET: usize = 8;
/// Offset of the owner id in a values record.
pub const OWNER_ID_OFFSET: usize = 16;
/// Offset of the reference id in a values record.
pub const REFERENCE_ID_OFFSET: usize = 24;

/// Reuse deadline of a counter that is in use.
pub const NOT_FREE_TO_REUSE: i64 = i64::MAX;
/// "No such counter", in events and fields that name one.
pub const NULL_COUNTER_ID: i32 = -1;

const _: () = assert!(KEY_OFFSET + KEY_LENGTH == LABEL_LENGTH_OFFSET);
const _: () = assert!(LABEL_OFFSET + LABEL_LENGTH_MAX == METADATA_LENGTH);
// Labels are copied in whole words, of which none may belong to the next record.
const _: () = assert!(LABEL_OFFSET.is_multiple_of(4) && LABEL_LENGTH_MAX.is_multiple_of(4));

/// How many counters both arrays have room for.
fn counter_capacity(metadata_length: usize, values_length: usize) -> usize {
    (metadata_length / METADATA_LENGTH)
        .min(values_length / VALUE_LENGTH)
        .min(i32::MAX as usize)
}

/// The id as an index, if it is one.
fn checked_index(counter_id: i32, capacity: usize) -> Option<usize> {
    usize::try_from(counter_id).ok().filter(|index| *index < capacity)
}
