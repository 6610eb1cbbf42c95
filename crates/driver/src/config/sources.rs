//! Where settings come from: the environment, definitions, properties files.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use headrace_protocol::settings::environment_name;
use headrace_protocol::text::excerpt;

use super::{ConfigError, DriverConfig, fetch, table};

#[cfg(test)]
mod tests;

/// How the environment names of settings start.
const ENVIRONMENT_PREFIX: &str = "AERON_";

/// How those of other programs start that read the same environment and files.
const FOREIGN_PREFIXES: [&str; 3] = ["AERON_ARCHIVE_", "AERON_CLUSTER_", "AERON_SAMPLE_"];
/// Most doubtful names in one warning.
const DOUBTS_MAX: usize = 8;

/// Values from several places; the last one wins.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    // By environment name, since that is the form in which all places can be compared. As the system has them: what is no
    // text is refused when it is a setting of this driver, and no matter otherwise.
    values: BTreeMap<String, OsString>,
}

impl Sources {
    /// Starts with the variables of an environment that could be settings.
    pub fn from_environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut sources = Self::default();
        for (name, value) in variables {
            if let Some(name) = name.to_str()
                && name.starts_with(ENVIRONMENT_PREFIX)
            {
                sources.put(name, value);
            }
        }
        sources
    }

    /// Adds one value by property or environment name. An empty value takes the setting back to its default.
    pub fn put(&mut self, name: &str, value: impl AsRef<OsStr>) {
        let (name, value) = (environment_name(name), value.as_ref());
        if value.is_empty() {
            self.values.remove(&name);
        } else {
            self.values.insert(name, value.to_owned());
        }
    }

    /// Adds a definition as it appears on a line: `name=value` or `name:value`. False when it has neither.
    pub fn define(&mut self, line: &str) -> bool {
        let Some((name, value)) = definition(line) else {
            return false;
        };
        self.put(name, value);
        true
    }

    /// As [`Self::define`], for a definition that is only for this driver: an `aeron.` name that is not a setting is an
    /// error here, while the environment and files also serve other programs.
    pub fn define_for_driver(&mut self, line: &str) -> Result<bool, ConfigError> {
        if let Some((name, value)) = definition(line)
            && environment_name(name).starts_with(ENVIRONMENT_PREFIX)
            && table::find(name).is_none()
        {
            return Err(table::unknown(name, value));
        }
        Ok(self.define(line))
    }

    /// Adds the definitions of a properties file's text. Fails with the number of the first bad line.
    pub fn define_all(&mut self, text: &str) -> Result<(), String> {
        let mut pending = String::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_start();
            if pending.is_empty() && (line.is_empty() || line.starts_with(['#', '!'])) {
                continue;
            }
            if let Some(start) = line.strip_suffix('\\') {
                pending.push_str(start);
                continue;
            }
            pending.push_str(line);
            if !self.define(&pending) {
                return Err(format!("line={} is not name=value: {pending}", index + 1));
            }
            pending.clear();
        }
        if pending.is_empty() || self.define(&pending) {
            Ok(())
        } else {
            Err(format!("last line is not name=value: {pending}"))
        }
    }

    /// Adds the definitions of a properties file: a path, `file://path` or `http://host/path`.
    pub fn load(&mut self, location: &str) -> Result<(), String> {
        if location.starts_with("http://") {
            return self.define_all(&fetch::get(location)?);
        }
        let path = location.strip_prefix("file://").unwrap_or(location);
        let text = std::fs::read_to_string(Path::new(path)).map_err(|error| error.to_string())?;
        self.define_all(&text)
    }

    /// The defaults, overridden by these values.
    pub fn into_config(self) -> Result<DriverConfig, ConfigError> {
        let mut config = DriverConfig::default();
        for (name, value) in &self.values {
            if value.to_str().is_none() && table::find(name).is_some() {
                return Err(ConfigError::new(name, value.display(), "must be text in UTF-8"));
            }
        }
        table::apply_all(&mut config, |name| {
            self.values.get(name)?.to_str().map(str::to_owned)
        })?;
        config.misspelt = self
            .values
            .iter()
            .filter_map(|(name, value)| doubt(name, &value.to_string_lossy()))
            .take(DOUBTS_MAX)
            .collect();
        Ok(config)
    }
}

/// What to tell of a name that no setting has, if it is near enough to one. Other names are those of other programs.
fn doubt(name: &str, value: &str) -> Option<String> {
    let is_foreign = FOREIGN_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    if is_foreign || table::find(name).is_some() {
        return None;
    }
    let near = table::slipped(name)?;
    Some(format!(
        "{}={} has no effect: no setting has this name, did you mean {near}?",
        excerpt(name),
        excerpt(value)
    ))
}

/// Name and value of a definition, if it is one.
fn definition(line: &str) -> Option<(&str, &str)> {
    let at = line.find(['=', ':'])?;
    let (name, value) = (line[..at].trim(), line[at + 1..].trim());
    (!name.is_empty()).then_some((name, value))
}
