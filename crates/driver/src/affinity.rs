//! Which processors the driver's threads are bound to, by the numbers of the machine or by those of a container.
//!
//! A container gets some processors of its host, and different ones each time. With `aeron.driver.cpuset.affinity` the
//! settings number the processors that it got, and the driver checks these.

use std::path::PathBuf;

use crate::config::{ConfigError, DriverConfig, property};
use crate::processors::Machine;

/// Processors of the driver's threads; none for those that the kernel places.
#[derive(Debug, Default)]
pub(crate) struct Affinity {
    pub(crate) conductor: Option<usize>,
    pub(crate) sender: Option<usize>,
    pub(crate) receiver: Option<usize>,
    pub(crate) resource_agent: Option<usize>,
    /// What makes threads slower than they need to be.
    pub(crate) warnings: Vec<String>,
}

impl Affinity {
    /// As the settings have it on this machine.
    pub(crate) fn find(config: &DriverConfig, machine: &dyn Machine) -> Result<Self, ConfigError> {
        let allowed = config.cpuset_affinity.then(|| machine.allowed_processors());
        let bound = |setting, number: i32| {
            let Ok(index) = usize::try_from(number) else {
                return Ok(None);
            };
            let Some(allowed) = &allowed else {
                return Ok(Some(index));
            };
            let found = allowed.get(index).copied().map(Some);
            found.ok_or_else(|| {
                let (count, cpuset) = (allowed.len(), property::cpuset_affinity);
                let rule = format!(
                    "must be less than {count}: with {cpuset} it counts the processors left to the driver"
                );
                ConfigError::new(setting, number, rule)
            })
        };
        let mut affinity = Self {
            conductor: bound(property::conductor_cpu_affinity, config.conductor_cpu_affinity)?,
            sender: bound(property::sender_cpu_affinity, config.sender_cpu_affinity)?,
            receiver: bound(property::receiver_cpu_affinity, config.receiver_cpu_affinity)?,
            resource_agent: bound(
                property::resource_agent_cpu_affinity,
                config.resource_agent_cpu_affinity,
            )?,
            warnings: Vec::new(),
        };
        if let Some(allowed) = allowed {
            affinity.warnings = warnings(machine, &allowed, &affinity.bound());
        }
        match affinity.warnings.first() {
            Some(warning) if config.cpuset_warnings_as_errors => {
                let rule = format!("{warning}; give the driver other processors, or leave this setting out");
                Err(ConfigError::new(property::cpuset_warnings_as_errors, true, rule))
            }
            _ => Ok(affinity),
        }
    }

    /// Each processor that a thread is bound to, once.
    fn bound(&self) -> Vec<usize> {
        let all = [self.conductor, self.sender, self.receiver, self.resource_agent];
        let mut bound: Vec<usize> = all.into_iter().flatten().collect();
        bound.sort_unstable();
        bound.dedup();
        bound
    }
}

/// What is slower than it need be about the processors that threads are bound to.
fn warnings(machine: &dyn Machine, allowed: &[usize], bound: &[usize]) -> Vec<String> {
    let mut warnings: Vec<String> = bound
        .iter()
        .filter_map(|cpu| {
            let siblings = list(machine, *cpu, "topology/thread_siblings_list")?;
            let stranger = siblings.iter().find(|sibling| !allowed.contains(sibling))?;
            Some(format!(
                "processor {cpu} shares its core with processor {stranger}, which is not the driver's: other programs slow \
                 down what runs on it"
            ))
        })
        .collect();
    let cached = |cpu| list(machine, cpu, "cache/index3/shared_cpu_list");
    if let Some((first, others)) = bound.split_first()
        && let Some(near) = cached(*first)
        && let Some(far) = others.iter().find(|cpu| !near.contains(cpu))
    {
        warnings.push(format!(
            "processors {first} and {far}, which threads of the driver are bound to, share no cache: what one thread hands \
             to the other goes through memory"
        ));
    }
    warnings
}

/// The processors in a file of the system about one: `0,4` or `0-3,8`. None where it says nothing.
fn list(machine: &dyn Machine, cpu: usize, name: &str) -> Option<Vec<usize>> {
    let path = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/{name}"));
    let text = machine.read(&path)?;
    let range = |piece: &str| {
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?)
    };
    let ranges: Option<Vec<_>> = text.trim().split(',').map(range).collect();
    Some(ranges?.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Eight processors, two to a core and four to a cache, of which some are allowed.
    struct Made(&'static [usize]);

    impl Machine for Made {
        fn read(&self, path: &Path) -> Option<String> {
            let cpu: usize = path
                .to_str()?
                .strip_prefix("/sys/devices/system/cpu/cpu")?
                .split_once('/')?
                .0
                .parse()
                .ok()?;
            match path.file_name()?.to_str()? {
                "thread_siblings_list" => Some(format!("{},{}\n", cpu % 4, cpu % 4 + 4)),
                "shared_cpu_list" => Some(["0-1,4-5\n", "2-3,6-7\n"][cpu % 4 / 2].to_owned()),
                _ => None,
            }
        }

        fn processor_count(&self) -> usize {
            8
        }

        fn allowed_processors(&self) -> Vec<usize> {
            self.0.to_vec()
        }
    }

    fn config(sender: i32, receiver: i32) -> DriverConfig {
        DriverConfig {
            sender_cpu_affinity: sender,
            receiver_cpu_affinity: receiver,
            cpuset_affinity: true,
            ..DriverConfig::default()
        }
    }

    #[test]
    fn the_numbers_count_the_processors_of_the_machine_or_those_left_to_the_driver() {
        let machine = Made(&[2, 3, 6, 7]);
        let counted = Affinity::find(&config(0, 3), &machine).unwrap();
        assert_eq!((counted.sender, counted.receiver), (Some(2), Some(7)));
        assert_eq!((counted.conductor, counted.warnings.len()), (None, 0));
        let of_machine = DriverConfig {
            cpuset_affinity: false,
            ..config(0, 3)
        };
        let given = Affinity::find(&of_machine, &machine).unwrap();
        assert_eq!((given.sender, given.receiver), (Some(0), Some(3)));
    }

    #[test]
    fn one_beyond_those_left_is_refused() {
        let error = Affinity::find(&config(0, 2), &Made(&[1, 5])).unwrap_err();
        assert_eq!(error.setting, "aeron.receiver.cpu.affinity");
        assert!(error.to_string().contains("=2: must be less than 2"), "{error}");
    }

    #[test]
    fn threads_on_half_a_core_or_without_a_cache_in_common_are_told() {
        let machine = Made(&[0, 3, 7]);
        let warnings = Affinity::find(&config(0, 1), &machine).unwrap().warnings;
        assert_eq!(warnings.len(), 2);
        assert!(warnings[0].starts_with("processor 0 shares its core with processor 4"));
        assert!(warnings[1].starts_with("processors 0 and 3, which"));
        let strict = DriverConfig {
            cpuset_warnings_as_errors: true,
            ..config(0, 1)
        };
        let error = Affinity::find(&strict, &machine).unwrap_err();
        assert_eq!(error.setting, "aeron.driver.cpuset.warnings_as_errors");
        assert!(Affinity::find(&strict, &Made(&[3, 7])).is_ok());
    }

    #[test]
    fn what_the_system_does_not_tell_is_no_reason_to_warn() {
        struct Silent;
        impl Machine for Silent {
            fn read(&self, path: &Path) -> Option<String> {
                path.ends_with("shared_cpu_list").then(|| "0-x".to_owned())
            }
            fn processor_count(&self) -> usize {
                2
            }
            fn allowed_processors(&self) -> Vec<usize> {
                vec![0, 1]
            }
        }
        assert_eq!(Affinity::find(&config(0, 1), &Silent).unwrap().warnings, [""; 0]);
    }
}
