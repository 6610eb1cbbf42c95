//! Checks of the settings of name resolution.

use headrace_protocol::channel::units::format_duration;
use headrace_protocol::text::excerpt;

use super::settings::property;
use super::{ConfigError, DriverConfig, NameResolver};
use crate::names::{ROWS_MAX, Row, by_itself};

/// Longest name of a driver.
const NAME_LENGTH_MAX: usize = 512;
/// Most bootstrap neighbours.
const BOOTSTRAPS_MAX: usize = 20;

impl DriverConfig {
    /// The interface of the gossip socket, if the driver takes part in gossip.
    pub fn gossip_interface(&self) -> Option<&str> {
        self.resolver_interface
            .as_deref()
            .filter(|_| self.name_resolver != NameResolver::CsvTable)
    }

    /// The bootstrap neighbours, `host:port` each.
    pub fn bootstrap_neighbors(&self) -> Vec<&str> {
        let text = self.resolver_bootstrap_neighbor.as_deref().unwrap_or_default();
        let pieces = text.split(',').map(str::trim);
        pieces.filter(|piece| !piece.is_empty()).collect()
    }

    pub(super) fn validate_names(&self) -> Result<(), ConfigError> {
        match (self.name_resolver, &self.resolver_interface) {
            (NameResolver::Driver, None) => {
                let rule = format!("needs {}", property::resolver_interface);
                return Err(ConfigError::new(property::name_resolver, "driver", rule));
            }
            (NameResolver::CsvTable, Some(interface)) => {
                let rule = format!("cannot stand beside {}=csv_table", property::name_resolver);
                return Err(ConfigError::new(property::resolver_interface, interface, rule));
            }
            (NameResolver::CsvTable, None) if self.name_resolver_init_args.is_none() => {
                let rule = format!("needs {}", property::name_resolver_init_args);
                return Err(ConfigError::new(property::name_resolver, "csv_table", rule));
            }
            (_, Some(interface)) if self.resolver_name.is_none() => {
                let rule = format!(
                    "`resolverName` is required when `resolverInterface` is set: give {}",
                    property::resolver_name
                );
                return Err(ConfigError::new(property::resolver_interface, interface, rule));
            }
            _ => {}
        }
        self.validate_resolver_name()?;
        self.validate_table()?;
        let count = self.bootstrap_neighbors().len();
        if count > BOOTSTRAPS_MAX {
            let rule = format!("must name at most {BOOTSTRAPS_MAX} neighbors, not {count}");
            let text = self.resolver_bootstrap_neighbor.as_deref().unwrap_or_default();
            return Err(ConfigError::new(
                property::resolver_bootstrap_neighbor,
                text,
                rule,
            ));
        }
        Ok(())
    }

    fn validate_resolver_name(&self) -> Result<(), ConfigError> {
        let Some(name) = &self.resolver_name else {
            return Ok(());
        };
        // What a channel cannot have as its host is never asked for, nor is a host whose address is known without asking.
        if by_itself(name).is_some() {
            let rule =
                "must be a name that no host has yet: drivers never ask for an address, nor for localhost";
            return Err(ConfigError::new(property::resolver_name, name, rule));
        }
        let is_host = |byte: u8| byte.is_ascii_graphic() && !b":|,[]".contains(&byte);
        if (1..=NAME_LENGTH_MAX).contains(&name.len()) && name.bytes().all(is_host) {
            return Ok(());
        }
        let rule = format!(
            "must be 1 to {NAME_LENGTH_MAX} printable ASCII characters that a channel can have as a host, no space, \
             colon, comma, bar or bracket"
        );
        Err(ConfigError::new(property::resolver_name, name, rule))
    }

    /// The pieces of the table for tests that are rows, and those that are none.
    fn table(&self) -> (Vec<&str>, Vec<&str>) {
        let text = self.name_resolver_init_args.as_deref();
        let text = text.filter(|_| self.name_resolver == NameResolver::CsvTable);
        let pieces = text
            .unwrap_or_default()
            .split('|')
            .filter(|piece| !piece.is_empty());
        pieces.partition(|piece| Row::parse(piece).is_some())
    }

    fn validate_table(&self) -> Result<(), ConfigError> {
        let (rows, _) = self.table();
        if self.name_resolver != NameResolver::CsvTable || (1..=ROWS_MAX).contains(&rows.len()) {
            return Ok(());
        }
        let rule = format!(
            "must be 1 to {ROWS_MAX} rows of name,host,other host separated by bars; it has {}",
            rows.len()
        );
        let text = self.name_resolver_init_args.as_deref().unwrap_or_default();
        Err(ConfigError::new(property::name_resolver_init_args, text, rule))
    }

    /// What to tell of settings of name resolution that have no effect, or none that is of use.
    pub(crate) fn name_doubts(&self) -> Vec<String> {
        let mut doubts: Vec<String> = Vec::new();
        if let Some(text) = self.resolver_bootstrap_neighbor.as_deref()
            && self.gossip_interface().is_none()
        {
            doubts.push(format!(
                "{}={} has no effect without {}",
                property::resolver_bootstrap_neighbor,
                excerpt(text),
                property::resolver_interface
            ));
        }
        let (timeout_ns, interval_ns) = (
            self.resolver_neighbor_timeout_ns,
            self.resolver_self_resolution_interval_ns,
        );
        if self.gossip_interface().is_some() && timeout_ns <= interval_ns {
            doubts.push(format!(
                "{}={} is not above {}={}: a driver that tells its name as seldom as this one is forgotten in between",
                property::resolver_neighbor_timeout_ns,
                format_duration(timeout_ns),
                property::resolver_self_resolution_interval_ns,
                format_duration(interval_ns)
            ));
        }
        let (_, others) = self.table();
        if let Some(first) = others.first() {
            doubts.push(format!(
                "{} of {} is no row of three columns, and has no effect",
                excerpt(first),
                property::name_resolver_init_args
            ));
        }
        doubts
    }
}
