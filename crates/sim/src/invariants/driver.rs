//! Rules about a driver as a whole: its counts, its loss report, its errors and its queues.

use std::fmt;
use std::path::Path;

use headrace_buffers::cnc::CncFile;
use headrace_buffers::counters::{Counter, CountersReader, system_counter};
use headrace_buffers::loss_report::{self, LossRecord};
use headrace_buffers::ring::ManyToOneRing;
use headrace_buffers::{AtomicBuffer, BufferError, error_log};
use headrace_driver::{MediaDriver, QUEUE_CAPACITY};

use super::rule::{Rule, Violation, broken};

/// Queues between the agents of a driver.
const QUEUES: usize = 5;
/// Messages that wait for room at most, for each counter of the driver: every object that a message can be about has
/// counters, and design page 13 says how many messages there can be about one.
const BACKLOG_PER_COUNTER: usize = 4;

pub(super) const RULES: &[Rule<DriverState>] = &[
    Rule {
        name: "counts-never-go-back",
        holds: |it| {
            it.before
                .counts
                .iter()
                .zip(&it.now.counts)
                .all(|(before, now)| before <= now)
        },
    },
    Rule {
        name: "errors-are-logged",
        holds: |it| it.before.errors == it.now.errors || it.is_each_error_logged(),
    },
    Rule {
        name: "losses-only-add",
        holds: |it| {
            let both = it.before.losses.iter().zip(&it.now.losses);
            it.before.losses.len() <= it.now.losses.len() && { both }
                .all(|(before, now)| before.may_become(now))
        },
    },
    Rule {
        name: "backlog-is-bounded",
        holds: |it| it.now.waiting <= QUEUES * QUEUE_CAPACITY + BACKLOG_PER_COUNTER * it.counters_max,
    },
    Rule {
        name: "commands-within-ring",
        holds: |it| (0..=it.ring.capacity() as i64).contains(&it.now.command_bytes),
    },
];

/// One image's entry in the loss report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loss {
    stream: (i32, i32),
    observations: i64,
    bytes: i64,
}

impl From<LossRecord> for Loss {
    fn from(record: LossRecord) -> Self {
        Self {
            stream: (record.session_id, record.stream_id),
            observations: record.observation_count,
            bytes: record.total_bytes,
        }
    }
}

impl Loss {
    fn may_become(&self, now: &Self) -> bool {
        self.stream == now.stream
            && self.observations <= now.observations
            && self.bytes <= now.bytes
            && (self.observations == now.observations) == (self.bytes == now.bytes)
    }
}

#[derive(Clone, Debug, Default)]
struct Values {
    counts: Vec<i64>,
    errors: i64,
    losses: Vec<Loss>,
    repairs: i64,
    waiting: usize,
    command_bytes: i64,
}

/// A driver as seen from outside.
pub(super) struct DriverState {
    counts: Vec<Counter>,
    errors: Counter,
    /// What rises whenever the loss report does.
    repairs: [Counter; 2],
    error_log: AtomicBuffer,
    loss_report: Option<AtomicBuffer>,
    ring: ManyToOneRing,
    counters_max: usize,
    before: Values,
    now: Values,
}

impl fmt::Debug for DriverState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("counters_max", &self.counters_max)
            .field("before", &self.before)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl DriverState {
    pub(super) fn new(
        cnc: &CncFile,
        counters: &CountersReader,
        directory: &Path,
    ) -> Result<Self, BufferError> {
        let counter = |id| {
            counters
                .counter(id)
                .expect("system counters are there from the start")
        };
        let counting = (0..system_counter::COUNT as i32).filter(|id| {
            !matches!(
                *id,
                system_counter::BYTES_CURRENTLY_MAPPED | system_counter::CONTROLLABLE_IDLE_STRATEGY
            )
        });
        Ok(Self {
            ring: ManyToOneRing::new(cnc.to_driver())?,
            counts: counting.map(counter).collect(),
            errors: counter(system_counter::ERRORS),
            repairs: [system_counter::NAK_MESSAGES_SENT, system_counter::LOSS_GAP_FILLS].map(counter),
            error_log: cnc.error_log(),
            loss_report: loss_report::map(directory).ok(),
            counters_max: 0,
            before: Values::default(),
            now: Values::default(),
        })
    }

    /// Bytes of commands of clients that the driver has not taken yet.
    pub(super) fn command_bytes(&self) -> i64 {
        self.ring.producer_position() - self.ring.consumer_position()
    }

    pub(super) fn look(&mut self, driver: &MediaDriver, counters: usize) {
        self.counters_max = self.counters_max.max(counters);
        std::mem::swap(&mut self.before, &mut self.now);
        let now = &mut self.now;
        now.counts.clear();
        now.counts.extend(self.counts.iter().map(Counter::get_acquire));
        now.errors = self.errors.get_acquire();
        now.waiting = driver.waiting_messages();
        now.command_bytes = self.ring.producer_position() - self.ring.consumer_position();
        now.repairs = self.repairs.iter().map(Counter::get_acquire).sum();
        if now.repairs == self.before.repairs {
            now.losses.clone_from(&self.before.losses);
        } else if let Some(report) = &self.loss_report {
            let records = loss_report::read(report).into_iter();
            now.losses = records.map(Loss::from).collect();
        }
    }

    pub(super) fn check(&self) -> Result<(), Violation> {
        broken(RULES, self)
    }

    fn is_each_error_logged(&self) -> bool {
        let entries = error_log::read(&self.error_log, 0);
        let logged: i64 = entries
            .iter()
            .map(|entry| i64::from(entry.observation_count))
            .sum();
        logged == self.now.errors
    }
}
