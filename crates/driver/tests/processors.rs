//! The limit of a container decides how many threads a driver has, unless a setting does.

use std::path::Path;
use std::sync::Arc;

use headrace_buffers::event_log::{self, EventReader};
use headrace_driver::environment::{Environment, Machine};
use headrace_driver::{DriverConfig, MediaDriver, ThreadingMode};

/// Eight processors, of whose time a container has this much.
struct Container(&'static str);

impl Machine for Container {
    fn read(&self, path: &Path) -> Option<String> {
        match path.to_str()? {
            "/proc/self/cgroup" => Some("0::/\n".to_owned()),
            "/sys/fs/cgroup/cpu.max" => Some(self.0.to_owned()),
            _ => None,
        }
    }

    fn processor_count(&self) -> usize {
        8
    }

    fn allowed_processors(&self) -> Vec<usize> {
        (0..8).collect()
    }
}

/// The threading mode of a driver there, what it tells of its choice, and the reason of its first event.
fn launched(cpu_max: &'static str, set: Option<ThreadingMode>) -> (ThreadingMode, Option<String>, String) {
    let directory = tempfile::tempdir().unwrap();
    let config = DriverConfig {
        directory: directory.path().join("driver"),
        threading_mode: set,
        ..DriverConfig::default()
    };
    let environment = Environment {
        machine: Arc::new(Container(cpu_max)),
        ..Environment::system()
    };
    let driver = MediaDriver::launch_in(config, environment).unwrap();
    let file = driver.directory().join(event_log::FILE_NAME);
    let (events, _) = EventReader::open(&file).unwrap().1.drain().unwrap();
    let (_, launch) = &events[0];
    let (mode, chosen) = (driver.config().threading(), driver.chosen_threading());
    (mode, chosen, launch.reason.clone())
}

#[test]
fn a_driver_in_a_small_container_has_fewer_threads() {
    let (mode, told, reason) = launched("150000 100000\n", None);
    assert_eq!(mode, ThreadingMode::Shared);
    let choice = "SHARED: 1.5 of 8 processors are left to this process";
    assert_eq!(told.as_deref(), Some(choice));
    assert_eq!(reason, format!("launched as {choice}"));
    assert_eq!(
        launched("max 100000\n", None),
        (ThreadingMode::Dedicated, None, "launched".to_owned())
    );
}

#[test]
fn a_setting_wins() {
    let set = Some(ThreadingMode::SharedNetwork);
    assert_eq!(
        launched("150000 100000\n", set),
        (ThreadingMode::SharedNetwork, None, "launched".to_owned())
    );
}
