//! Where a command comes from.

/// Whose command it is, and what the answer is known by. What the command makes is registered under it, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) client_id: i64,
    pub(crate) correlation_id: i64,
    /// The client is not known yet, and its process showed that it lives when the command was read.
    pub(crate) is_living_newcomer: bool,
}
