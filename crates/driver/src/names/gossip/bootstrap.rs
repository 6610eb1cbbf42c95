//! The bootstrap neighbours of the settings, to which this driver sends its name before it knows any other driver.

use std::net::{IpAddr, SocketAddr};

use headrace_buffers::counters::Counter;

use crate::names::known::host_and_port;

/// One of them.
pub(crate) struct Bootstrap {
    /// `host:port` as the setting has it.
    text: String,
    /// Where it was found last.
    address: Option<SocketAddr>,
    /// 1 while it is a neighbour.
    counter: Counter,
}

impl Bootstrap {
    /// A neighbour whose name was not looked up yet.
    pub(crate) fn new(text: &str, counter: Counter) -> Self {
        Self {
            text: text.to_owned(),
            address: None,
            counter,
        }
    }

    /// Label of a counter of a neighbour.
    pub(crate) fn label(text: &str, address: Option<SocketAddr>) -> String {
        let resolved = address.map_or_else(String::new, |address| address.to_string());
        format!("Bootstrap neighbor: name={text} resolved={resolved}")
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The host to look up.
    pub(super) fn host(&self) -> Result<&str, String> {
        host_and_port(&self.text).map(|(host, _)| host)
    }

    /// Its name was looked up, or could not be. Returns its counter and the label that it has now.
    pub(super) fn on_address(&mut self, ip: Option<IpAddr>) -> (i32, String) {
        let port = host_and_port(&self.text).map_or(0, |(_, port)| port);
        self.address = ip.map(|ip| SocketAddr::new(ip, port));
        (self.counter.id(), Self::label(&self.text, self.address))
    }

    pub(super) fn set_is_neighbour(&self, is_neighbour: bool) {
        self.counter.set_release(i64::from(is_neighbour));
    }
}
