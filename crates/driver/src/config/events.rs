//! The settings of printed changes of state.

use headrace_protocol::text::excerpt;

use super::DriverConfig;
use super::settings::property;

/// What asks for none.
const NONE: [&str; 3] = ["", "0", "0x0"];
/// What asks for all changes of state, and for nothing else.
const ALL: &str = "admin";

impl DriverConfig {
    /// Changes of state are to be printed.
    pub fn prints_events(&self) -> bool {
        let wanted = self.event_log.as_deref().unwrap_or_default();
        !NONE.contains(&wanted)
    }

    /// What is not printed although it was asked for.
    pub(super) fn event_doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if !self.prints_events() {
            return doubts;
        }
        let wanted = self.event_log.as_deref().unwrap_or_default();
        if wanted != ALL {
            let name = property::event_log;
            doubts.push(format!(
                "{name}={} prints each change of state, as {ALL} does, and no frames",
                excerpt(wanted)
            ));
        }
        if self.event_limit == 0 {
            let (log, limit) = (property::event_log, property::event_limit);
            doubts.push(format!("{log}={wanted} prints nothing with {limit}=0"));
        }
        doubts
    }
}
