//! The sources that resolve a name before the name servers are asked.

use super::gossip::Gossip;
use super::known::Known;
use super::table::NameTable;

/// Who is asked first.
pub(crate) enum NameSource {
    /// The name servers.
    Servers,
    /// What other drivers told, and this driver's own name.
    Gossip(Box<Gossip>),
    /// The table of a test.
    Table(NameTable),
}

impl NameSource {
    /// What is known of a host.
    pub(super) fn known(&self, host: &str) -> Known {
        match self {
            Self::Servers => Known::of(host),
            Self::Table(table) => table.known(host),
            // This machine's own addresses are never for others to tell.
            Self::Gossip(gossip) => match Known::of(host) {
                Known::Ask(host) => gossip.address_of(&host).map_or(Known::Ask(host), Known::Address),
                known => known,
            },
        }
    }
}
