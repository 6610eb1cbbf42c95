//! Pinning threads to processors.

use std::io;

/// Restricts the calling thread to processor `cpu`, counted from 0.
pub fn pin_current_thread(cpu: usize) -> io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("cpu={cpu} is not below {}", libc::CPU_SETSIZE),
        ));
    }
    // SAFETY: an all-zero cpu_set_t is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the index was checked against the size of the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set is a live local of the length given; pid 0 names the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Processors the calling thread may run on, counted from 0. Empty if the kernel does not tell.
pub fn allowed() -> Vec<usize> {
    // SAFETY: an all-zero set is a valid value for the kernel to overwrite, and the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is a live local of the length given. A failure leaves it empty.
    unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    (0..libc::CPU_SETSIZE as usize)
        // SAFETY: every index is below the size of the set.
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
        .collect()
}

/// Processors of the machine that are running, at least one.
pub fn online_count() -> usize {
    // SAFETY: the call reads no memory of ours.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(count).unwrap_or(0).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_run_on_one_processor_only() {
        std::thread::spawn(|| {
            let cpu = *allowed().last().unwrap();
            pin_current_thread(cpu).unwrap();
            assert_eq!(allowed(), [cpu]);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_processor_that_is_not_there_is_an_error() {
        assert!(pin_current_thread(libc::CPU_SETSIZE as usize).is_err());
        assert!(pin_current_thread(libc::CPU_SETSIZE as usize - 1).is_err());
    }
}
