//! The values of settings that name a choice or a limit.

use headrace_protocol::channel::FlowControlStrategy;

use crate::printing;

/// How the agents are spread over threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadingMode {
    /// Conductor, sender, receiver and resource agent have a thread each.
    Dedicated,
    /// Sender and receiver share one thread.
    SharedNetwork,
    /// One thread runs everything.
    Shared,
    /// The embedding program runs everything by calling the invoker.
    Invoker,
}

impl ThreadingMode {
    /// The name used in settings and counter labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dedicated => "DEDICATED",
            Self::SharedNetwork => "SHARED_NETWORK",
            Self::Shared => "SHARED",
            Self::Invoker => "INVOKER",
        }
    }
}

/// The names of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadNaming {
    /// `conductor`, `sender`, `receiver`.
    Classic,
    /// `aeron-md-cnd`, `aeron-md-snd`, `aeron-md-rcv`.
    New,
}

/// Who may stop the driver with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminationValidator {
    /// Every client.
    Allow,
    /// No client.
    Deny,
}

/// Who resolves a name before the name servers are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameResolver {
    /// Other drivers, if the driver has a resolver interface; else no one.
    Default,
    /// Other drivers.
    Driver,
    /// The table of a test.
    CsvTable,
}

/// Limits on the images of all streams together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageLimits {
    /// Most images at once.
    pub count: usize,
    /// Most bytes of their logs.
    pub bytes: usize,
}

/// Where errors go when the error log is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallbackLogger {
    /// To standard error.
    Stderr,
    /// To standard output.
    Stdout,
    /// Nowhere.
    NoOp,
}

impl FallbackLogger {
    pub(crate) fn log(self, text: &str) {
        self.log_to(text, printing::to_stderr, printing::to_stdout);
    }

    fn log_to<'a>(self, text: &'a str, stderr: impl FnOnce(&'a str), stdout: impl FnOnce(&'a str)) {
        match self {
            Self::Stderr => stderr(text),
            Self::Stdout => stdout(text),
            Self::NoOp => {}
        }
    }
}

/// The kind of sockets that a driver uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelEndpoints {
    /// Those of the system.
    Default,
    /// The same, and they lose what the settings of `aeron.debug` say.
    Debug,
}

/// Flow control of a sender with one receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnicastFlowControl {
    /// As far as that receiver has room.
    Unicast,
    /// As if it were one of a group.
    AsGroup(FlowControlStrategy),
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn what_the_error_log_has_no_room_for_goes_where_the_setting_says() {
        let lines = RefCell::new(Vec::new());
        for logger in [
            FallbackLogger::Stderr,
            FallbackLogger::Stdout,
            FallbackLogger::NoOp,
        ] {
            logger.log_to(
                "text",
                |text| lines.borrow_mut().push(("stderr", text)),
                |text| lines.borrow_mut().push(("stdout", text)),
            );
        }
        assert_eq!(lines.into_inner(), [("stderr", "text"), ("stdout", "text")]);
    }
}
