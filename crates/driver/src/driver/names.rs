//! Makes the name resolver that the settings ask for, with its counters.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use headrace_buffers::counters::{Counter, CountersManager, system_counter, type_ids};
use headrace_protocol::channel::{ResolveError, Resolver, UdpEnvironment, local_address};
use headrace_sys::Clock;
use headrace_sys::net::SocketOptions;

use super::DriverError;
use crate::conductor::SystemCounters;
use crate::config::{ConfigError, DriverConfig, NameResolver, property};
use crate::environment::{Network, SocketRequest};
use crate::errors::ErrorRecorder;
use crate::names::{
    Bootstrap, Gossip, GossipCounters, GossipParts, HELD_BACK, Identity, Intervals, NameSource, NameTable,
    Row, TABLE_ROW, by_itself,
};

/// What a source of names is made with.
pub(super) struct NameParts<'a> {
    pub(super) config: &'a DriverConfig,
    pub(super) network: &'a dyn Network,
    pub(super) counters: &'a mut CountersManager,
    pub(super) system: &'a SystemCounters,
    pub(super) errors: &'a ErrorRecorder,
    pub(super) clock: &'a Arc<dyn Clock>,
}

impl NameParts<'_> {
    /// The source, ready to be asked; its socket is open and its counters are allocated.
    pub(super) fn source(mut self) -> Result<NameSource, DriverError> {
        if self.config.name_resolver == NameResolver::CsvTable {
            return Ok(NameSource::Table(self.table()?));
        }
        match self.config.gossip_interface() {
            Some(interface) => Ok(NameSource::Gossip(Box::new(self.gossip(interface)?))),
            None => Ok(NameSource::Servers),
        }
    }

    fn counter(&mut self, type_id: i32, key: &[u8], label: &str) -> Result<Counter, DriverError> {
        let now_ms = self.clock.epoch_ms();
        let id = self.counters.allocate(type_id, key, label, now_ms)?;
        Ok(self.counters.counter(id))
    }

    fn table(&mut self) -> Result<NameTable, DriverError> {
        let text = self.config.name_resolver_init_args.as_deref().unwrap_or_default();
        let rows = Row::parse_all(text);
        let with_counter = |row: Row| {
            let name = &row.name.as_bytes()[..row.name.len().min(ROW_KEY_NAME_MAX)];
            let mut key = (name.len() as i32).to_le_bytes().to_vec();
            key.extend_from_slice(name);
            let counter = self.counter(TABLE_ROW, &key, &row.label())?;
            Ok((row, counter))
        };
        let rows: Result<Vec<_>, DriverError> = rows.into_iter().map(with_counter).collect();
        Ok(NameTable(rows?))
    }

    fn gossip(&mut self, interface: &str) -> Result<Gossip, DriverError> {
        let config = self.config;
        let local = self.local_address(interface)?;
        let request = SocketRequest {
            local,
            remote: None,
            options: SocketOptions::default(),
        };
        let socket = self.network.open(&request).map_err(|error| {
            let rule = format!("cannot bind a socket to {local}: {error}");
            ConfigError::new(property::resolver_interface, interface, rule)
        })?;
        let name = config.resolver_name.clone().unwrap_or_default();
        let intervals = Intervals {
            neighbour_timeout_ns: config.resolver_neighbor_timeout_ns,
            own_name_ns: config.resolver_self_resolution_interval_ns,
            all_names_ns: config.resolver_neighbor_resolution_interval_ns,
            bootstrap_ns: config.resolver_bootstrap_neighbor_resolution_interval_ns,
        };
        let counters = self.gossip_counters(&name, socket.local)?;
        Ok(Gossip::new(GossipParts {
            counters,
            bootstraps: self.bootstraps()?,
            identity: Identity {
                name,
                address: socket.local,
            },
            intervals,
            transport: socket.transport,
            mtu_length: config.mtu_length,
            errors: self.errors.clone(),
            clock: Arc::clone(self.clock),
        }))
    }

    /// Only what needs no lookup: a start waits for no name server.
    fn local_address(&self, interface: &str) -> Result<SocketAddr, DriverError> {
        let failed = |source: io::Error| DriverError::Io {
            action: "list network interfaces",
            source,
        };
        let interfaces = self.network.interfaces().map_err(failed)?;
        let environment = UdpEnvironment {
            interfaces: &interfaces,
            resolver: &NoNames,
        };
        let address = local_address(interface, &environment);
        Ok(address
            .map_err(|error| ConfigError::new(property::resolver_interface, interface, error.to_string()))?)
    }

    fn gossip_counters(&mut self, name: &str, bound: SocketAddr) -> Result<GossipCounters, DriverError> {
        let neighbours = format!("Resolver neighbors: bound {bound}");
        let names = format!("Resolver cache entries: name={name}");
        let held_back = "Resolver sends held back: to neighbors that were sent as much as they sent";
        Ok(GossipCounters {
            neighbours: self.counter(type_ids::NAME_RESOLVER_NEIGHBORS, &[], &neighbours)?,
            names: self.counter(type_ids::NAME_RESOLVER_CACHE_ENTRIES, &[], &names)?,
            held_back: self.counter(HELD_BACK, &[], held_back)?,
            invalid_packets: self.system.get(system_counter::INVALID_PACKETS).clone(),
            short_sends: self.system.get(system_counter::SHORT_SENDS).clone(),
        })
    }

    fn bootstraps(&mut self) -> Result<Vec<Bootstrap>, DriverError> {
        let neighbors = self.config.bootstrap_neighbors();
        let with_counter = |(index, text): (i32, &str)| {
            let label = Bootstrap::label(text, None);
            let counter = self.counter(type_ids::BOOTSTRAP_NEIGHBOR, &index.to_le_bytes(), &label)?;
            Ok(Bootstrap::new(text, counter))
        };
        (0..).zip(neighbors).map(with_counter).collect()
    }
}

/// Longest name in the key of a row's counter.
const ROW_KEY_NAME_MAX: usize = 108;

/// Knows what needs no name server, and no more.
struct NoNames;

impl Resolver for NoNames {
    fn resolve(&self, host: &str, port: u16, _param: &str) -> Result<SocketAddr, ResolveError> {
        let address = by_itself(host).map(|ip| SocketAddr::new(ip, port));
        address.ok_or_else(|| ResolveError {
            reason: "give an address, localhost, or the interface in braces: {eth0}:8050".to_owned(),
        })
    }
}
