//! How many processors a driver may use, and how many threads it starts by default.
//!
//! A container sees all processors of its host, and may use a part of them: only some (the affinity mask), or only some
//! of their time (the limit of its control group, version 1 or 2). More busy threads than that do not run faster: the
//! kernel stops the whole container for the rest of each period.

use std::fmt;
use std::path::Path;

use crate::config::ThreadingMode;

/// Knows the machine's processors; a seam, so that a test needs no container.
pub trait Machine: Send + Sync {
    /// The text of a small file, if there is one and it can be read.
    fn read(&self, path: &Path) -> Option<String>;

    /// Processors that are running.
    fn processor_count(&self) -> usize;

    /// The numbers of the processors that this process may run on.
    fn allowed_processors(&self) -> Vec<usize>;
}

/// This machine.
pub(crate) struct SystemMachine;

impl Machine for SystemMachine {
    fn read(&self, path: &Path) -> Option<String> {
        std::fs::read_to_string(path).ok()
    }

    fn processor_count(&self) -> usize {
        headrace_sys::affinity::online_count()
    }

    fn allowed_processors(&self) -> Vec<usize> {
        headrace_sys::affinity::allowed()
    }
}

/// Less than a machine has: what a container, or a user, leaves to the driver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ProcessorLimit {
    /// Processors, of whose time it may be a part.
    processors: f64,
    /// All of them.
    machine: usize,
}

impl ProcessorLimit {
    /// The limit of this process, if it has one.
    pub(crate) fn find(machine: &dyn Machine) -> Option<Self> {
        let count = machine.processor_count();
        let allowed = match machine.allowed_processors().len() {
            0 => f64::INFINITY, // the kernel does not tell, as on a machine with more than a mask has room for
            count => count as f64,
        };
        let quota = quota(machine).unwrap_or(f64::INFINITY);
        let processors = allowed.min(quota);
        (processors > 0.0 && processors < count as f64).then_some(Self {
            processors,
            machine: count,
        })
    }

    /// As many busy threads as there are processors: the conductor is seldom busy, sender and receiver often are.
    pub(crate) fn threading_mode(self) -> ThreadingMode {
        match self.processors {
            few if few < 2.0 => ThreadingMode::Shared,
            two if two < 3.0 => ThreadingMode::SharedNetwork,
            _ => ThreadingMode::Dedicated,
        }
    }
}

impl fmt::Display for ProcessorLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processors, machine } = self;
        let mode = self.threading_mode().name();
        write!(
            f,
            "{mode}: {processors} of {machine} processors are left to this process"
        )
    }
}

/// Processors' time that the control groups of this process leave to it, whichever is least.
fn quota(machine: &dyn Machine) -> Option<f64> {
    let groups = machine.read(Path::new("/proc/self/cgroup"))?;
    groups
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            if controllers.is_empty() {
                least(path, |group| quota_v2(machine, &format!("/sys/fs/cgroup{group}")))
            } else if controllers.split(',').any(|name| name == "cpu") {
                ["cpu", controllers].into_iter().find_map(|mount| {
                    least(path, |group| {
                        quota_v1(machine, &format!("/sys/fs/cgroup/{mount}{group}"))
                    })
                })
            } else {
                None
            }
        })
        .reduce(f64::min)
}

/// The least of a group and those it is in. In a container, whose own group is where the tree begins, the path of the host
/// leads nowhere.
fn least(path: &str, quota: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    Path::new(path)
        .ancestors()
        .filter_map(|group| quota(group.to_str()?.trim_end_matches('/')))
        .reduce(f64::min)
}

/// `max 100000` or `150000 100000`: time in each period.
fn quota_v2(machine: &dyn Machine, group: &str) -> Option<f64> {
    let text = machine.read(&Path::new(group).join("cpu.max"))?;
    let (time, period) = text.trim().split_once(' ')?;
    share(time, period)
}

fn quota_v1(machine: &dyn Machine, group: &str) -> Option<f64> {
    let read = |name| machine.read(&Path::new(group).join(name));
    share(
        read("cpu.cfs_quota_us")?.trim(),
        read("cpu.cfs_period_us")?.trim(),
    )
}

/// None for `max`, for -1, and for what makes no sense.
fn share(time: &str, period: &str) -> Option<f64> {
    let (time, period): (f64, f64) = (time.parse().ok()?, period.parse().ok()?);
    let share = time / period;
    (share.is_finite() && share > 0.0).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of so many processors, of which some are allowed, with these files.
    struct Made<'a>(usize, usize, &'a [(&'a str, &'a str)]);

    impl Machine for Made<'_> {
        fn read(&self, path: &Path) -> Option<String> {
            let found = self.2.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned())
        }

        fn processor_count(&self) -> usize {
            self.0
        }

        fn allowed_processors(&self) -> Vec<usize> {
            (0..self.1).collect()
        }
    }

    fn told(made: &Made<'_>) -> Option<String> {
        ProcessorLimit::find(made).map(|limit| limit.to_string())
    }

    #[test]
    fn without_a_limit_nothing_is_told() {
        assert_eq!(told(&Made(8, 8, &[])), None);
        let unlimited: [&[(&str, &str)]; 4] = [
            &[
                ("/proc/self/cgroup", "0::/\n"),
                ("/sys/fs/cgroup/cpu.max", "max 100000\n"),
            ],
            &[
                ("/proc/self/cgroup", "0::/\n"),
                ("/sys/fs/cgroup/cpu.max", "800000 100000\n"),
            ],
            &[
                ("/proc/self/cgroup", "1:cpu:/\n"),
                ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
                ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ],
            &[("/proc/self/cgroup", "0::/\n"), ("/sys/fs/cgroup/cpu.max", "1 0")],
        ];
        for files in unlimited {
            assert_eq!(told(&Made(8, 8, files)), None, "{files:?}");
        }
    }

    #[test]
    fn the_limit_decides_how_many_threads_there_are() {
        for (time, text) in [
            ("50000", "SHARED: 0.5 of 8 processors"),
            ("199000", "SHARED: 1.99 of 8 processors"),
            ("200000", "SHARED_NETWORK: 2 of 8 processors"),
            ("300000", "DEDICATED: 3 of 8 processors"),
        ] {
            let max = format!("{time} 100000\n");
            let files = [("/proc/self/cgroup", "0::/\n"), ("/sys/fs/cgroup/cpu.max", &max)];
            let told = told(&Made(8, 8, &files)).unwrap();
            assert_eq!(told, format!("{text} are left to this process"));
        }
    }

    #[test]
    fn the_least_limit_of_all_counts() {
        let nested = &[
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/cpu.max", "100000 100000\n"),
            ("/sys/fs/cgroup/cpu.max", "400000 100000\n"),
        ];
        assert!(told(&Made(8, 8, nested)).unwrap().starts_with("SHARED: 1 of 8"));
        let quota = [
            ("/proc/self/cgroup", "0::/\n"),
            ("/sys/fs/cgroup/cpu.max", "100000 100000\n"),
        ];
        let told_of_no_mask = told(&Made(2048, 0, &quota)).unwrap();
        assert!(
            told_of_no_mask.starts_with("SHARED: 1 of 2048"),
            "{told_of_no_mask}"
        );
        assert!(
            told(&Made(8, 2, &[]))
                .unwrap()
                .starts_with("SHARED_NETWORK: 2 of 8")
        );
        // In a container of version 1: the path is that of the host, the files are at the root of the mount.
        let old = &[
            (
                "/proc/self/cgroup",
                "9:memory:/docker/7\n4:cpu,cpuacct:/docker/7\n0::/docker/7\n",
            ),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ];
        assert!(
            told(&Made(8, 8, old))
                .unwrap()
                .starts_with("SHARED_NETWORK: 2.5 of 8")
        );
    }
}
