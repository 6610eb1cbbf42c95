//! Faults of the shared structures. A normal refusal (a full ring, a lapped receiver) is not among them.

/// What is wrong with a shared structure, or with a request made of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BufferError {
    /// The memory given cannot hold the structure.
    #[error(
        "capacity must be a power of two between {minimum} and {maximum}: section_length={section_length}"
    )]
    Capacity {
        /// Length of the memory, trailer included.
        section_length: usize,
        /// Smallest data area allowed.
        minimum: usize,
        /// Largest data area allowed.
        maximum: usize,
    },
    /// The caller's message can never fit.
    #[error("message is too long: length={length} maximum={maximum}")]
    MessageTooLong {
        /// Length of the message.
        length: usize,
        /// Longest message the structure takes.
        maximum: usize,
    },
    /// Type ids of messages start at 1; others are reserved.
    #[error("message type id must be positive: type_id={type_id}")]
    TypeId {
        /// The id given.
        type_id: i32,
    },
    /// Another process left a record whose length cannot be right. The records queued after it are discarded.
    #[error("corrupt record in ring, queued messages discarded: position={position} length={length}")]
    CorruptRecord {
        /// Position of the record.
        position: i64,
        /// Length found in it.
        length: i32,
    },
    /// Another process damaged the positions of the ring; it cannot be used any more.
    #[error("corrupt ring positions: head={head} tail={tail}")]
    CorruptPositions {
        /// Consumer position found.
        head: i64,
        /// Producer position found.
        tail: i64,
    },
    /// The key of a counter has a fixed room.
    #[error("counter key is too long: length={length} maximum={maximum}")]
    KeyTooLong {
        /// Length of the key.
        length: usize,
        /// Room for it.
        maximum: usize,
    },
    /// Every counter is in use, or freed too recently to be used again.
    #[error("no counter is free: capacity={capacity}")]
    NoFreeCounter {
        /// Number of counters there are.
        capacity: usize,
    },
    /// The counter id lies outside the counters there are.
    #[error("no such counter: counter_id={counter_id} capacity={capacity}")]
    UnknownCounter {
        /// The id given.
        counter_id: i32,
        /// Number of counters there are.
        capacity: usize,
    },
}
