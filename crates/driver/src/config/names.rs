//! Checks of the settings of name resolution.

use super::settings::property;
use super::{ConfigError, DriverConfig, NameResolver};

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
        // What a channel could not have as its host would never be asked for.
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

    /// What to tell of settings of name resolution that have no effect.
    pub(crate) fn name_doubts(&self) -> Option<String> {
        let text = self.resolver_bootstrap_neighbor.as_deref()?;
        self.gossip_interface().is_none().then(|| {
            format!(
                "{}={text} has no effect without {}",
                property::resolver_bootstrap_neighbor,
                property::resolver_interface
            )
        })
    }
}
