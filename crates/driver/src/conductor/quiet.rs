//! When the conductor may sleep long, because every event would wake it.
//!
//! Commands of our clients, messages of the other agents and publishers that reach the limit ring its doorbell.
//! Commands of other clients do not, nor do arrivals in images; while either is possible, it looks every millisecond.
//! The receiver rings for data after a gap, and while a gap is open the conductor looks again when its delay is over.

use std::os::fd::AsRawFd;
use std::time::Duration;

use headrace_buffers::doorbell::{Bell, Interests};
use headrace_buffers::log::LogBuffers;
use headrace_sys::file_watch::FileWatch;

use super::context::Context;
use super::rooms::Rooms;

/// How long work keeps the conductor from sleeping long: more of it may be on its way.
const AFTER_WORK_NS: i64 = 20_000_000;
/// How long a program that has opened the CnC file has until its first command; after that it comes a little later.
const AFTER_OPENING_NS: i64 = 2_000_000_000;

/// How late the conductor's timers may be while it is quiet.
const TIMER_RESOLUTION: Duration = Duration::from_millis(20);

/// What the conductor remembers for this.
pub(crate) struct Quiet {
    openings: Option<FileWatch>,
    looks_until_ns: i64,
    refusals_told: i64,
}

impl Quiet {
    /// Without a watch over the CnC file the conductor never sleeps long.
    pub(crate) fn new(openings: Option<FileWatch>) -> Self {
        Self {
            openings,
            looks_until_ns: i64::MIN,
            refusals_told: 0,
        }
    }

    /// Called every now and then, and after a sleep that an opening of the CnC file ended.
    pub(crate) fn check_openings(&mut self, now_ns: i64) {
        if self.openings.as_ref().is_some_and(FileWatch::take) {
            self.look_for(now_ns, AFTER_OPENING_NS);
        }
    }

    pub(crate) fn on_work(&mut self, now_ns: i64) {
        self.look_for(now_ns, AFTER_WORK_NS);
    }

    fn look_for(&mut self, now_ns: i64, duration_ns: i64) {
        self.looks_until_ns = self.looks_until_ns.max(now_ns.saturating_add(duration_ns));
    }

    /// Threads that found nothing to be woken through: the error log counts them.
    pub(crate) fn tell_refused_waiters(&mut self, cx: &Context) {
        let refusals = cx.doorbells.refusal_count();
        if refusals != self.refusals_told {
            self.refusals_told = refusals;
            cx.warn(
                "a thread that waits found none of the 64 slots of the directory's waiters/ to be woken through, or, \
                 beside sockets or in an event loop, no watch (fs.inotify.max_user_instances): such a thread looks \
                 for work every millisecond",
            );
        }
    }

    /// Names what gives the conductor work.
    pub(crate) fn describe(&self, rooms: &Rooms, interests: &mut Interests) {
        interests.bell(Bell::Conductor);
        match &self.openings {
            Some(openings) if self.is_quiet(rooms) => {
                interests.descriptor(openings.as_raw_fd());
                interests.limit_park(TIMER_RESOLUTION);
            }
            _ => interests.may_come_unrung(),
        }
        let now_ns = rooms.cx.now_ns;
        if let Some(deadline_ns) = rooms.images.next_loss_deadline_ns(now_ns) {
            interests.limit_park(Duration::from_nanos((deadline_ns - now_ns).unsigned_abs()));
        }
        // Readers are only followed at once while a publisher waits for them: it rings when it begins to.
        for doorbells in rooms.publications.logs().map(LogBuffers::doorbells) {
            if doorbells.limit.is_armed() {
                interests.doorbell(&doorbells.position);
            }
        }
    }

    fn is_quiet(&self, rooms: &Rooms) -> bool {
        rooms.cx.now_ns > self.looks_until_ns
            && rooms.images.is_empty()
            && !rooms.cx.is_congested()
            && rooms
                .clients
                .ids()
                .all(|client_id| rooms.cx.doorbells.is_registered(client_id))
    }
}
