//! Other processes on this host.

use std::io;

/// True when a process with this id exists, also when it belongs to another user.
pub fn pid_exists(pid: i64) -> bool {
    let Ok(pid) = libc::pid_t::try_from(pid) else {
        return false;
    };
    if pid <= 0 {
        return false; // 0 and below address process groups, not processes
    }
    // SAFETY: signal 0 delivers nothing; it only asks whether delivery would be possible.
    unsafe { libc::kill(pid, 0) == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM) }
}

/// The user as whom this process is judged when it opens a file.
pub fn effective_user_id() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// True when a debugger watches this process.
pub fn is_traced() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| tracer_of(&status) != 0)
}

/// The process that watches the one with this status; 0 for none.
fn tracer_of(status: &str) -> i64 {
    let mut lines = status.lines();
    let tracer = lines.find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.and_then(|pid| pid.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_exists_and_a_reaped_child_does_not() {
        assert!(pid_exists(i64::from(std::process::id())));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(!pid_exists(i64::from(child.id())));
    }

    #[test]
    fn a_debugger_is_known_by_its_process() {
        assert_eq!(tracer_of("Name:\tx\nTracerPid:\t417\nUid:\t0"), 417);
        assert_eq!(tracer_of("Name:\tx\nTracerPid:\t0\n"), 0);
        assert_eq!(tracer_of(""), 0);
    }

    #[test]
    fn numbers_that_name_no_process_do_not_exist() {
        for pid in [0, -1, i64::MAX, i64::MIN] {
            assert!(!pid_exists(pid), "{pid}");
        }
    }
}
