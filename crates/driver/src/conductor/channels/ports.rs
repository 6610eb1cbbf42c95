//! Ports for channels that ask for any, out of a configured range.

use std::collections::HashSet;

use crate::config::PortRange;

/// A try is a system call in the conductor's thread.
const CHOICES_MAX: usize = 1_000;

/// The ports of one direction, sending or receiving, in use by this driver.
#[derive(Debug)]
pub(crate) struct Ports {
    range: PortRange,
    next: u16,
    used: HashSet<u16>,
}

impl Ports {
    pub(crate) fn new(range: PortRange) -> Self {
        Self {
            range,
            next: range.low,
            used: HashSet::new(),
        }
    }

    /// The port to bind for a channel that asks for `port`. With a range, 0 becomes the next free port of it;
    /// without, it is left to the system.
    pub(crate) fn take(&mut self, port: u16) -> Result<u16, String> {
        let port = if port == 0 && !self.range.is_wildcard() {
            self.next_free()?
        } else {
            port
        };
        if port != 0 {
            self.used.insert(port);
        }
        Ok(port)
    }

    /// How many ports there are for a channel that asks for `port`, other programs' included. At most what is tried within
    /// a blink.
    pub(crate) fn choices(&self, port: u16) -> usize {
        let PortRange { low, high } = self.range;
        if port == 0 && !self.range.is_wildcard() {
            usize::from(high - low).min(CHOICES_MAX - 1) + 1
        } else {
            1
        }
    }

    pub(crate) fn none_left(&self) -> String {
        let PortRange { low, high } = self.range;
        format!("no available ports in range {low} {high}")
    }

    /// Makes a port free again once its socket is closed.
    pub(crate) fn release(&mut self, port: u16) {
        self.used.remove(&port);
    }

    fn next_free(&mut self) -> Result<u16, String> {
        let PortRange { low, high } = self.range;
        let found = (self.next..=high)
            .chain(low..self.next)
            .find(|port| *port != 0 && !self.used.contains(port));
        let Some(port) = found else {
            return Err(self.none_left());
        };
        self.next = if port == high { low } else { port + 1 };
        Ok(port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_given_in_turn_and_come_back() {
        let mut ports = Ports::new(PortRange { low: 10, high: 12 });
        assert_eq!(ports.take(11), Ok(11));
        assert_eq!(ports.take(0), Ok(10));
        assert_eq!(ports.take(0), Ok(12));
        assert_eq!(ports.take(0).unwrap_err(), "no available ports in range 10 12");
        ports.release(11);
        assert_eq!(ports.take(0), Ok(11));
    }

    #[test]
    fn without_a_range_the_system_chooses() {
        let mut ports = Ports::new(PortRange::default());
        assert_eq!(ports.take(0), Ok(0));
        assert_eq!(ports.take(7), Ok(7));
    }

    #[test]
    fn the_last_port_of_all_is_not_a_trap() {
        let mut ports = Ports::new(PortRange {
            low: u16::MAX,
            high: u16::MAX,
        });
        assert_eq!(ports.take(0), Ok(u16::MAX));
        ports.release(u16::MAX);
        assert_eq!(ports.take(0), Ok(u16::MAX));
    }
}
