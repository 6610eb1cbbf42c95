//! Links of a simulated network, as Python sets them.

use headrace_sim::LinkSettings;

/// Loss, duplication, reordering, shortest and longest delay in nanoseconds, bytes a second.
pub(super) type LinkValues = (f64, f64, f64, i64, i64, Option<u64>);

pub(super) fn link((loss, duplication, reordering, min_ns, max_ns, rate): LinkValues) -> LinkSettings {
    LinkSettings {
        loss,
        duplication,
        reordering,
        delay_min_ns: min_ns,
        delay_max_ns: max_ns,
        bytes_per_second: rate,
        ..LinkSettings::default()
    }
}
