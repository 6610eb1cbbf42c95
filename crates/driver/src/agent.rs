//! The trait of agents, and the measurements of every agent.

use headrace_buffers::counters::Counter;
use headrace_buffers::doorbell::Interests;

/// A unit of work on a thread: one turn does what is due and reports how much that was.
pub(crate) trait Agent: Send {
    /// Name for thread lists and error texts.
    fn role_name(&self) -> &'static str;

    /// One duty cycle at `now_ns`, monotonic. Returns a count of the work done; 0 lets the thread idle.
    fn do_work(&mut self, now_ns: i64) -> usize;

    /// The thread slept for `rested_ns` since the last duty cycle, because the agents on it had no work.
    fn on_rest(&mut self, _rested_ns: i64) {}

    /// Names what can give this agent work, for a thread that waits for it. The default looks by itself, every
    /// millisecond at least.
    fn describe(&self, interests: &mut Interests) {
        interests.may_come_unrung();
    }

    /// Messages that wait: those for this agent in its queues, and those from it that did not fit into another's.
    fn waiting_messages(&self) -> usize {
        0
    }

    /// Called once, on the agent's own thread, after its last duty cycle.
    fn on_close(&mut self) {}
}

/// Publishes how long the gaps between an agent's duty cycles are, without the sleep of a thread that has no work.
pub(crate) struct DutyCycleTracker {
    max_cycle_time: Counter,
    threshold_exceeded: Counter,
    threshold_ns: i64,
    last_ns: Option<i64>,
}

impl DutyCycleTracker {
    /// Counts gaps longer than `threshold_ns`.
    pub(crate) fn new(max_cycle_time: Counter, threshold_exceeded: Counter, threshold_ns: i64) -> Self {
        Self {
            max_cycle_time,
            threshold_exceeded,
            threshold_ns,
            last_ns: None,
        }
    }

    /// Notes the start of a duty cycle.
    #[inline]
    pub(crate) fn on_cycle(&mut self, now_ns: i64) {
        if let Some(last_ns) = self.last_ns.replace(now_ns) {
            let gap_ns = now_ns - last_ns;
            self.max_cycle_time.propose_max_release(gap_ns);
            if gap_ns > self.threshold_ns {
                self.threshold_exceeded.increment_release();
            }
        }
    }

    /// Leaves a sleep out of the present gap: a counter that moves in an idle driver hides the stalls of a busy one.
    pub(crate) fn on_rest(&mut self, rested_ns: i64) {
        if let Some(last_ns) = &mut self.last_ns {
            *last_ns += rested_ns;
        }
    }
}

/// An agent whose duty cycles are measured.
pub(crate) struct Tracked<A> {
    agent: A,
    tracker: DutyCycleTracker,
}

impl<A: Agent> Tracked<A> {
    /// Measures `agent` with `tracker`.
    pub(crate) fn new(agent: A, tracker: DutyCycleTracker) -> Self {
        Self { agent, tracker }
    }
}

impl<A: Agent> Agent for Tracked<A> {
    fn role_name(&self) -> &'static str {
        self.agent.role_name()
    }

    #[inline]
    fn do_work(&mut self, now_ns: i64) -> usize {
        self.tracker.on_cycle(now_ns);
        self.agent.do_work(now_ns)
    }

    fn on_rest(&mut self, rested_ns: i64) {
        self.tracker.on_rest(rested_ns);
        self.agent.on_rest(rested_ns);
    }

    fn describe(&self, interests: &mut Interests) {
        self.agent.describe(interests);
    }

    fn waiting_messages(&self) -> usize {
        self.agent.waiting_messages()
    }

    fn on_close(&mut self) {
        self.agent.on_close();
    }
}

/// An agent whose work can wait for a moment, on a thread whose other agents' work cannot.
///
/// While it finds nothing to do, it is left out of a few cycles: it has its turn in every fourth, and sooner where
/// cycles take long.
pub(crate) struct Unhurried {
    agent: Box<dyn Agent>,
    is_busy: bool,
    cycles_left_out: usize,
    last_ns: i64,
}

impl Unhurried {
    const CYCLES_LEFT_OUT_MAX: usize = 3;
    const PAUSE_MAX_NS: i64 = 2_000;

    pub(crate) fn new(agent: Box<dyn Agent>) -> Self {
        Self {
            agent,
            is_busy: true,
            cycles_left_out: 0,
            last_ns: 0,
        }
    }
}

impl Agent for Unhurried {
    fn role_name(&self) -> &'static str {
        self.agent.role_name()
    }

    #[inline]
    fn do_work(&mut self, now_ns: i64) -> usize {
        let may_wait = !self.is_busy
            && self.cycles_left_out < Self::CYCLES_LEFT_OUT_MAX
            && now_ns - self.last_ns < Self::PAUSE_MAX_NS;
        if may_wait {
            self.cycles_left_out += 1;
            return 0;
        }
        let work_count = self.agent.do_work(now_ns);
        self.is_busy = work_count > 0;
        self.cycles_left_out = 0;
        self.last_ns = now_ns;
        work_count
    }

    fn on_rest(&mut self, rested_ns: i64) {
        self.agent.on_rest(rested_ns);
    }

    fn describe(&self, interests: &mut Interests) {
        self.agent.describe(interests);
    }

    fn waiting_messages(&self) -> usize {
        self.agent.waiting_messages()
    }

    fn on_close(&mut self) {
        self.agent.on_close();
    }
}

/// Several agents on one thread, run in order.
pub(crate) struct Composite {
    agents: Vec<Box<dyn Agent>>,
}

impl Composite {
    /// Runs `agents` in the order given.
    pub(crate) fn new(agents: Vec<Box<dyn Agent>>) -> Self {
        Self { agents }
    }
}

impl Agent for Composite {
    fn role_name(&self) -> &'static str {
        "composite"
    }

    #[inline]
    fn do_work(&mut self, now_ns: i64) -> usize {
        self.agents.iter_mut().map(|agent| agent.do_work(now_ns)).sum()
    }

    fn on_rest(&mut self, rested_ns: i64) {
        for agent in &mut self.agents {
            agent.on_rest(rested_ns);
        }
    }

    fn describe(&self, interests: &mut Interests) {
        for agent in &self.agents {
            agent.describe(interests);
        }
    }

    fn waiting_messages(&self) -> usize {
        self.agents.iter().map(|agent| agent.waiting_messages()).sum()
    }

    fn on_close(&mut self) {
        for agent in &mut self.agents {
            agent.on_close();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use headrace_buffers::AtomicBuffer;
    use headrace_buffers::counters::CountersManager;

    use super::*;

    /// A tracker, and its two counters.
    fn tracker(threshold_ns: i64) -> (DutyCycleTracker, Counter, Counter) {
        let mut counters =
            CountersManager::new(AtomicBuffer::allocate(4096), AtomicBuffer::allocate(1024), 0);
        let mut counter = || {
            let id = counters.allocate(0, &[], "", 0).unwrap();
            counters.counter(id)
        };
        let (max, exceeded) = (counter(), counter());
        (
            DutyCycleTracker::new(max.clone(), exceeded.clone(), threshold_ns),
            max,
            exceeded,
        )
    }

    #[test]
    fn a_duty_cycle_longer_than_the_threshold_is_counted_and_the_longest_is_kept() {
        let (mut tracker, max, exceeded) = tracker(100);
        for now_ns in [1_000, 1_100, 1_250, 1_260] {
            tracker.on_cycle(now_ns);
        }
        assert_eq!((max.get(), exceeded.get()), (150, 1));
    }

    /// Has no work, or one piece in each of its first turns.
    #[derive(Default)]
    struct Quiet {
        work: usize,
        turns: Arc<AtomicUsize>,
    }

    impl Agent for Quiet {
        fn role_name(&self) -> &'static str {
            "quiet"
        }

        fn do_work(&mut self, _now_ns: i64) -> usize {
            self.turns.fetch_add(1, Ordering::Relaxed);
            let work_count = self.work.min(1);
            self.work -= work_count;
            work_count
        }
    }

    /// How many turns an unhurried agent with so much work has in cycles that begin at these times.
    fn turns(work: usize, cycles: impl IntoIterator<Item = i64>) -> usize {
        let turns = Arc::default();
        let quiet = Quiet {
            work,
            turns: Arc::clone(&turns),
        };
        let mut unhurried = Unhurried::new(Box::new(quiet));
        let done: usize = cycles.into_iter().map(|now_ns| unhurried.do_work(now_ns)).sum();
        assert_eq!(done, work);
        turns.load(Ordering::Relaxed)
    }

    #[test]
    fn an_unhurried_agent_is_left_out_of_cycles_while_it_has_no_work() {
        let quick = || (1..=9).map(|cycle| cycle * 100);
        assert_eq!(turns(0, quick()), 3, "one in four");
        assert_eq!(
            turns(5, quick()),
            5 + 1,
            "each while there is work, and the one that finds none"
        );
        assert_eq!(turns(0, [7; 9]), 3, "by a clock that stands still");
        assert_eq!(
            turns(0, (1..=9).map(|cycle| cycle * 2_000)),
            9,
            "each of those that take long"
        );
    }

    #[test]
    fn the_sleep_of_a_thread_without_work_is_no_duty_cycle() {
        let (tracker, max, exceeded) = tracker(100);
        let mut shared = Composite::new(vec![
            Box::<Quiet>::default(),
            Box::new(Tracked::new(Quiet::default(), tracker)),
        ]);
        shared.do_work(1_000);
        shared.on_rest(5_000);
        shared.do_work(6_040);
        assert_eq!((max.get(), exceeded.get()), (40, 0));
        shared.on_rest(100);
        shared.do_work(6_300);
        assert_eq!((max.get(), exceeded.get()), (160, 1), "it woke too late");
    }
}
