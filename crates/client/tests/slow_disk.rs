//! Streams that flow while the driver makes the log of another one.

mod live;

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use headrace_driver::environment::Disk;
use headrace_driver::{Environment, ThreadingMode};
use live::{IPC, await_that, pair, receive, send, start_in};

const MODES: [ThreadingMode; 3] = [
    ThreadingMode::Shared,
    ThreadingMode::SharedNetwork,
    ThreadingMode::Dedicated,
];

/// A disk that answers when the test says so.
struct SlowDisk {
    system: Arc<dyn Disk>,
    gate: Mutex<Gate>,
    changed: Condvar,
}

#[derive(Default)]
struct Gate {
    is_shut: bool,
    waiting: usize,
}

impl SlowDisk {
    fn new(system: Arc<dyn Disk>) -> Self {
        Self {
            system,
            gate: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Answers nothing until the result is dropped, which a test that fails does too.
    fn shut(&self) -> Shut<'_> {
        self.gate.lock().unwrap().is_shut = true;
        Shut(self)
    }

    fn waiting(&self) -> usize {
        self.gate.lock().unwrap().waiting
    }
}

struct Shut<'a>(&'a SlowDisk);

impl Drop for Shut<'_> {
    fn drop(&mut self) {
        self.0.gate.lock().unwrap().is_shut = false;
        self.0.changed.notify_all();
    }
}

impl Disk for SlowDisk {
    fn usable_space(&self, path: &Path) -> io::Result<u64> {
        let mut gate = self.gate.lock().unwrap();
        gate.waiting += 1;
        let mut gate = self.changed.wait_while(gate, |gate| gate.is_shut).unwrap();
        gate.waiting -= 1;
        drop(gate);
        self.system.usable_space(path)
    }
}

#[test]
fn a_log_that_takes_long_to_make_holds_up_no_other_stream() {
    for mode in MODES {
        let system = Environment::system();
        let disk = Arc::new(SlowDisk::new(Arc::clone(&system.disk)));
        let environment = Environment {
            disk: Arc::clone(&disk) as Arc<dyn Disk>,
            ..system
        };
        let live = start_in(environment, |config| config.threading_mode = Some(mode));
        let (client, other) = (live.client(), live.client());
        let (publication, subscription) = pair(&client, IPC);
        thread::scope(|scope| {
            let shut = disk.shut();
            let slow = scope.spawn(|| other.add_publication(IPC, 7));
            await_that("the driver asks the disk", || disk.waiting() > 0);
            // Several windows' worth, for each of which the conductor raises the publisher's limit.
            for _ in 0..64 {
                send(&publication, &[0; 4096]);
                receive(&subscription, 1);
            }
            assert!(disk.waiting() > 0, "{mode:?}: the log was made meanwhile");
            drop(shut);
            slow.join().unwrap().unwrap();
        });
    }
}
