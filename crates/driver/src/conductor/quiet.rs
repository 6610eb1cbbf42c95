//! When the conductor may sleep long, because all that could come would wake it.
//!
//! Commands of our clients, messages of the other agents and publishers that meet the limit ring. Commands of foreign
//! clients do not, and arrivals in images are looked for; while there may be either, it looks every millisecond.

use std::os::fd::AsRawFd;
use std::time::Duration;

use headrace_buffers::doorbell::{Bell, Interests};
use headrace_buffers::log::LogBuffers;
use headrace_protocol::ErrorCode;
use headrace_sys::open_watch::OpenWatch;

use super::Conductor;

/// How long work keeps the conductor from sleeping long: more of it may be on its way.
const AFTER_WORK_NS: i64 = 20_000_000;
/// How long a program that has opened the CnC file has until its first command; after that it comes a little later.
const AFTER_OPENING_NS: i64 = 2_000_000_000;

/// How late the conductor's timers may be while it is quiet.
const TIMER_RESOLUTION: Duration = Duration::from_millis(20);

/// What the conductor remembers for this.
pub(crate) struct Quiet {
    openings: Option<OpenWatch>,
    looks_until_ns: i64,
    refusals_told: i64,
}

impl Quiet {
    /// Without a watch over the CnC file the conductor never sleeps long.
    pub(crate) fn new(openings: Option<OpenWatch>) -> Self {
        Self {
            openings,
            looks_until_ns: i64::MIN,
            refusals_told: 0,
        }
    }

    /// Called every now and then, and after a sleep that an opening of the CnC file ended.
    pub(crate) fn check_openings(&mut self, now_ns: i64) {
        if self.openings.as_ref().is_some_and(OpenWatch::take) {
            self.look_for(now_ns, AFTER_OPENING_NS);
        }
    }

    pub(crate) fn on_work(&mut self, now_ns: i64) {
        self.look_for(now_ns, AFTER_WORK_NS);
    }

    fn look_for(&mut self, now_ns: i64, duration_ns: i64) {
        self.looks_until_ns = self.looks_until_ns.max(now_ns.saturating_add(duration_ns));
    }
}

impl Conductor {
    /// Threads that found no slot to be woken through: the error log counts them.
    pub(super) fn tell_refused_waiters(&mut self) {
        let refusals = self.doorbells.refusal_count();
        if refusals != self.quiet.refusals_told {
            self.quiet.refusals_told = refusals;
            let text = "WARN - a thread that waits found none of the 64 slots of the directory's waiters/ to be woken \
                        through: threads without one look for work every millisecond";
            let code = ErrorCode::GenericError.value();
            self.cx.errors.record(code, text, self.cx.now_ms);
        }
    }

    pub(crate) fn describe_work(&self, interests: &mut Interests) {
        interests.bell(Bell::Conductor);
        match &self.quiet.openings {
            Some(openings) if self.is_quiet() => {
                interests.descriptor(openings.as_raw_fd());
                interests.limit_park(TIMER_RESOLUTION);
            }
            _ => interests.may_come_unrung(),
        }
        // Readers are only followed at once while a publisher waits for them: it rings when it begins to.
        let ipc = self
            .ipc_publications
            .iter()
            .map(|publication| &publication.spec().log);
        let network = self
            .network_publications
            .iter()
            .map(|publication| &publication.spec().shared.log);
        for doorbells in ipc.chain(network).map(LogBuffers::doorbells) {
            if doorbells.limit.is_armed() {
                interests.doorbell(&doorbells.position);
            }
        }
    }

    fn is_quiet(&self) -> bool {
        self.cx.now_ns > self.quiet.looks_until_ns
            && self.images.is_empty()
            && self.pending_images.is_empty()
            && !self.is_congested()
            && self
                .clients
                .ids()
                .all(|client_id| self.doorbells.is_registered(client_id))
    }
}
