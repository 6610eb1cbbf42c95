//! Runs agents on a thread, or in the caller's turns, and stops them.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use headrace_buffers::doorbell::{Alarm, Awaited, BlockingIdle, Doorbells, Interests, Parker};
use headrace_sys::Clock;
use headrace_sys::affinity;
use headrace_sys::idle::IdleStrategy;

use crate::agent::Agent;

/// What a runner's thread tells the driver about itself.
pub(crate) trait Supervisor: Send + Sync {
    /// The thread could not be bound to its processor; it runs anyway.
    fn on_pin_failure(&self, role_name: &str, cpu: usize, error: &io::Error);
    /// The agent broke an invariant and has stopped.
    fn on_panic(&self, role_name: &str, message: &str);
    /// The directory is another driver's, or gone: this one does nothing there any more.
    fn on_dispossessed(&self, reason: &str);
}

/// How a thread is named, bound and put to rest.
pub(crate) struct ThreadSettings {
    /// Name shown in thread lists.
    pub name: String,
    /// Processor to stay on.
    pub cpu: Option<usize>,
    /// How to wait when there is no work.
    pub idle: IdleStrategy,
}

/// Longest sleep of an agent that is rung for everything and has no timers.
const PARK_MAX: Duration = Duration::from_millis(100);

/// What an agent waits for.
struct AgentWork<'a> {
    agent: &'a dyn Agent,
    doorbells: &'a Doorbells,
}

impl Awaited for AgentWork<'_> {
    fn doorbells(&self) -> Doorbells {
        self.doorbells.clone()
    }

    fn describe(&self, interests: &mut Interests) {
        self.agent.describe(interests);
    }
}

/// A thread that runs an agent until told to stop.
pub(crate) struct AgentRunner {
    stop: Arc<AtomicBool>,
    alarm: Option<Alarm>,
    thread: Option<JoinHandle<()>>,
}

impl AgentRunner {
    /// Starts the thread.
    pub(crate) fn start(
        settings: ThreadSettings,
        mut agent: Box<dyn Agent>,
        clock: Arc<dyn Clock>,
        supervisor: Arc<dyn Supervisor>,
        doorbells: Doorbells,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let ThreadSettings { name, cpu, idle } = settings;
        let mut idle = BlockingIdle::new(idle, PARK_MAX);
        let alarm = idle.parker(&doorbells).map(Parker::alarm);
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            if let Some(cpu) = cpu
                && let Err(error) = affinity::pin_current_thread(cpu)
            {
                supervisor.on_pin_failure(agent.role_name(), cpu, &error);
            }
            let work = AssertUnwindSafe(|| {
                while !stopping.load(Ordering::Acquire) {
                    let work_count = agent.do_work(clock.nano_time());
                    let work = AgentWork {
                        agent: &*agent,
                        doorbells: &doorbells,
                    };
                    let rested = idle.idle(work_count, &work);
                    agent.on_rest(rested.as_nanos() as i64);
                }
                agent.on_close();
            });
            if let Err(panic) = catch_unwind(work) {
                supervisor.on_panic(agent.role_name(), panic_message(panic.as_ref()));
            }
        })?;
        Ok(Self {
            stop,
            alarm,
            thread: Some(thread),
        })
    }

    /// Asks the thread to stop and waits until it has. Does nothing the second time.
    pub(crate) fn stop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(alarm) = &self.alarm {
            alarm.wake();
        }
        if let Some(thread) = self.thread.take() {
            // A panic was already reported on the thread itself.
            let _ = thread.join();
        }
    }
}

impl Drop for AgentRunner {
    fn drop(&mut self) {
        self.stop();
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// Runs a driver's agents on the caller's thread, one duty cycle for each call.
///
/// Clones share the agents; calls from several threads take turns.
#[derive(Clone)]
pub struct Invoker {
    agent: Arc<Mutex<Option<Box<dyn Agent>>>>,
    clock: Arc<dyn Clock>,
}

impl Invoker {
    pub(crate) fn new(agent: Box<dyn Agent>, clock: Arc<dyn Clock>) -> Self {
        Self {
            agent: Arc::new(Mutex::new(Some(agent))),
            clock,
        }
    }

    /// Runs one duty cycle of every agent; returns the work count, 0 once the driver is closed.
    pub fn invoke(&self) -> usize {
        let mut agent = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
        match agent.as_mut() {
            Some(agent) => agent.do_work(self.clock.nano_time()),
            None => 0,
        }
    }

    /// Messages that wait between the agents, or for room to get there.
    pub(crate) fn waiting_messages(&self) -> usize {
        let agent = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
        agent.as_ref().map_or(0, |agent| agent.waiting_messages())
    }

    pub(crate) fn close(&self) {
        if let Some(mut agent) = self.take() {
            agent.on_close();
        }
    }

    /// Drops the agents without a last word.
    pub(crate) fn abandon(&self) {
        drop(self.take());
    }

    fn take(&self) -> Option<Box<dyn Agent>> {
        self.agent.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use headrace_buffers::doorbell::DriverIdentity;
    use headrace_sys::SystemClock;

    use super::*;

    struct Probe {
        cycles: mpsc::SyncSender<&'static str>,
        panics: bool,
    }

    impl Agent for Probe {
        fn role_name(&self) -> &'static str {
            "probe"
        }

        fn do_work(&mut self, _now_ns: i64) -> usize {
            assert!(!self.panics, "broken invariant");
            // A full channel only means that the test has seen enough.
            let _ = self.cycles.try_send("work");
            0
        }

        fn on_close(&mut self) {
            self.cycles.send("closed").unwrap();
        }
    }

    #[derive(Default)]
    struct Reports(Mutex<Vec<String>>);

    impl Supervisor for Reports {
        fn on_pin_failure(&self, role_name: &str, cpu: usize, _error: &io::Error) {
            self.0
                .lock()
                .unwrap()
                .push(format!("{role_name} not on cpu={cpu}"));
        }

        fn on_panic(&self, role_name: &str, message: &str) {
            self.0.lock().unwrap().push(format!("{role_name}: {message}"));
        }

        fn on_dispossessed(&self, reason: &str) {
            self.0.lock().unwrap().push(reason.to_owned());
        }
    }

    fn settings() -> ThreadSettings {
        ThreadSettings {
            name: "probe".to_owned(),
            cpu: None,
            idle: IdleStrategy::default(),
        }
    }

    #[test]
    fn a_runner_works_until_stopped_and_closes_once() {
        let (sender, cycles) = mpsc::sync_channel(1);
        let agent = Box::new(Probe {
            cycles: sender,
            panics: false,
        });
        let reports = Arc::new(Reports::default());
        let clock = Arc::new(SystemClock::new());
        let mut runner = AgentRunner::start(settings(), agent, clock, reports, Doorbells::none()).unwrap();
        assert_eq!(cycles.recv(), Ok("work"));
        std::thread::scope(|scope| {
            scope.spawn(|| runner.stop());
            let closed = cycles.iter().filter(|event| *event == "closed").count();
            assert_eq!(closed, 1);
        });
        runner.stop();
    }

    /// Has no work, and tells that it has slept.
    struct Sleeper(mpsc::SyncSender<i64>);

    impl Agent for Sleeper {
        fn role_name(&self) -> &'static str {
            "sleeper"
        }

        fn do_work(&mut self, _now_ns: i64) -> usize {
            0
        }

        fn on_rest(&mut self, rested_ns: i64) {
            if rested_ns > 0 {
                let _ = self.0.try_send(rested_ns);
            }
        }
    }

    #[test]
    fn an_agent_is_told_of_the_sleep_of_its_thread() {
        let dir = tempfile::tempdir().unwrap();
        let identity = DriverIdentity {
            pid: 1,
            start_timestamp_ms: 1,
        };
        let doorbells = Doorbells::create(dir.path(), identity).unwrap();
        let (sender, rests) = mpsc::sync_channel(1);
        let (agent, clock) = (Box::new(Sleeper(sender)), Arc::new(SystemClock::new()));
        let reports = Arc::new(Reports::default());
        let mut runner = AgentRunner::start(settings(), agent, clock, reports, doorbells).unwrap();
        assert!(rests.recv_timeout(Duration::from_secs(10)).is_ok());
        runner.stop();
    }

    #[test]
    fn a_panicking_agent_is_reported_and_the_thread_ends() {
        let (sender, cycles) = mpsc::sync_channel(1);
        let agent = Box::new(Probe {
            cycles: sender,
            panics: true,
        });
        let reports = Arc::new(Reports::default());
        let clock = Arc::new(SystemClock::new());
        let mut runner =
            AgentRunner::start(settings(), agent, clock, reports.clone(), Doorbells::none()).unwrap();
        // The sender is dropped with the agent, so this ends when the thread does.
        assert!(cycles.recv().is_err());
        runner.stop();
        assert_eq!(*reports.0.lock().unwrap(), ["probe: broken invariant"]);
    }

    #[test]
    fn an_invoker_does_nothing_after_close() {
        let (sender, cycles) = mpsc::sync_channel(2);
        let agent = Box::new(Probe {
            cycles: sender,
            panics: false,
        });
        let invoker = Invoker::new(agent, Arc::new(SystemClock::new()));
        invoker.clone().invoke();
        invoker.close();
        assert_eq!(invoker.invoke(), 0);
        invoker.close();
        assert_eq!(cycles.iter().collect::<Vec<_>>(), ["work", "closed"]);
    }
}
