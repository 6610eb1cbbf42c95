use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headrace_sys::idle::IdleStrategy;
use headrace_sys::wake_file::WakeFile;
use tempfile::TempDir;

use super::parker::IDLE_WAKES_MAX;
use super::table::SLOT_COUNT;
use super::*;

const IDENTITY: DriverIdentity = DriverIdentity {
    pid: 7,
    start_timestamp_ms: 8,
};
/// Longer than any test waits: what is not woken fails by its time-out.
const WITHOUT_END: Duration = Duration::from_secs(600);

fn directory() -> (TempDir, Doorbells) {
    let dir = tempfile::tempdir().unwrap();
    let doorbells = Doorbells::create(dir.path(), IDENTITY).unwrap();
    (dir, doorbells)
}

fn shared(doorbells: &Doorbells) -> Arc<Shared> {
    Arc::clone(doorbells.0.as_ref().unwrap())
}

fn interests(bell: Bell) -> Interests {
    let mut interests = Interests::new(WITHOUT_END);
    interests.bell(bell);
    interests
}

/// Arms, then blocks until it is woken.
fn wait(parker: &mut Parker, interests: &Interests) {
    assert!(parker.arm(interests));
    parker.park(interests, Duration::ZERO);
}

#[test]
fn a_writer_with_a_mapping_of_its_own_wakes_a_waiter() {
    let (dir, doorbells) = directory();
    let theirs = Doorbells::open(dir.path(), IDENTITY);
    let mut parker = doorbells.parker().unwrap();
    let interests = interests(Bell::Data(4));
    theirs.bell(Bell::Data(5)).ring();
    let written = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !written.load(Ordering::Acquire) {
                parker.park(&interests, Duration::ZERO);
            }
        });
        // Whether the waiter is about to arm, to look or to block: it must not stay where it is.
        written.store(true, Ordering::Release);
        theirs.bell(Bell::Data(4)).ring();
    });
}

#[test]
fn what_was_armed_is_disarmed_by_work_and_by_dropping() {
    let (_dir, doorbells) = directory();
    let mut parker = doorbells.parker().unwrap();
    let bell = doorbells.bell(Bell::Limit(4));
    parker.arm(&interests(Bell::Limit(4)));
    assert!(bell.is_armed());
    parker.disarm();
    assert!(!bell.is_armed());
    parker.arm(&interests(Bell::Limit(4)));
    parker.arm(&interests(Bell::Limit(5)));
    assert!(!bell.is_armed(), "only what is waited for now is armed");
    drop(parker);
    assert!(!doorbells.bell(Bell::Limit(5)).is_armed());
}

#[test]
fn a_waiter_that_asks_rings_the_one_that_will_answer() {
    let (_dir, doorbells) = directory();
    let (mut conductor, mut publisher) = (doorbells.parker().unwrap(), doorbells.parker().unwrap());
    let waits = interests(Bell::Conductor);
    conductor.arm(&waits);
    let mut asks = interests(Bell::Limit(4));
    asks.ask(&doorbells.bell(Bell::Conductor));
    publisher.arm(&asks);
    conductor.park(&waits, Duration::ZERO);
}

#[test]
fn slots_are_bounded_and_those_of_the_process_are_used_again() {
    let (dir, doorbells) = directory();
    let theirs = Doorbells::open(dir.path(), IDENTITY);
    let ours: Vec<Parker> = std::iter::from_fn(|| doorbells.parker()).collect();
    assert_eq!(ours.len(), SLOT_COUNT);
    assert!(theirs.parker().is_none());
    drop(ours);
    // Those that this process kept are free for its own waiters only; the others for all, once they are due.
    shared(&theirs).refusal().at = None;
    assert!(theirs.parker().is_some() && doorbells.parker().is_some());
}

#[test]
fn a_process_without_a_slot_says_so_once_and_does_not_ask_for_each_wait() {
    let (dir, doorbells) = directory();
    let theirs = Doorbells::open(dir.path(), IDENTITY);
    let ours: Vec<Parker> = std::iter::from_fn(|| doorbells.parker()).collect();
    assert_eq!(doorbells.refusal_count(), 1);
    assert!(theirs.parker().is_none() && theirs.parker().is_none());
    assert_eq!((doorbells.refusal_count(), theirs.refusal_count()), (2, 2));
    let reason = theirs.take_refusal().unwrap();
    assert!(reason.contains("all 64 slots"), "{reason}");
    shared(&theirs).refusal().at = None;
    assert!(theirs.parker().is_none());
    assert_eq!((theirs.refusal_count(), theirs.take_refusal()), (3, None));
    drop(ours);
}

#[test]
fn slots_that_a_closed_client_used_are_free_for_all_and_those_in_use_follow() {
    let (dir, doorbells) = directory();
    let theirs = Doorbells::open(dir.path(), IDENTITY);
    let in_use = theirs.parker().unwrap();
    drop((theirs.parker(), theirs.parker()));
    assert!(!theirs.is_closed());
    theirs.close();
    assert!(theirs.is_closed());
    let ours: Vec<Parker> = std::iter::from_fn(|| doorbells.parker()).collect();
    assert_eq!(ours.len(), SLOT_COUNT - 1);
    drop(in_use);
    assert!(shared(&doorbells).claim_slot().is_ok());
}

#[test]
fn a_waiter_is_woken_beside_a_descriptor_and_its_file_is_left_alone_where_it_waits_for_none() {
    let (dir, doorbells) = directory();
    let theirs = Doorbells::open(dir.path(), IDENTITY);
    let bell = theirs.bell(Bell::Data(1));
    let (quiet, _end) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut parker = doorbells.parker().unwrap();
    let mut waits = interests(Bell::Data(1));
    let file = dir.path().join(WAITERS).join("00");
    for _ in 0..2 {
        assert!(parker.arm(&waits));
        bell.ring();
        parker.park(&waits, Duration::ZERO);
        parker.disarm();
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"");
    waits.descriptor(quiet.as_raw_fd());
    for _ in 0..20 {
        let written = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !written.load(Ordering::Acquire) {
                    parker.park(&waits, Duration::ZERO);
                }
            });
            // Whether the waiter is about to arm, to look or to block: it must not stay where it is.
            written.store(true, Ordering::Release);
            bell.ring();
        });
        parker.disarm();
    }
    // Each of those waits may have been over before it began: this one blocks.
    waits.limit_park(Duration::from_millis(1));
    while !parker.park(&waits, Duration::ZERO) {}
    let slot = shared(&doorbells);
    let is_watched = || slot.file.get_i32_acquire(table::slot_offset(0) + 4) == 1;
    assert!(is_watched());
    drop(parker);
    assert!(!is_watched());
}

#[test]
fn the_directory_can_be_copied_while_threads_and_event_loops_wait() {
    let (dir, doorbells) = directory();
    let mut parker = doorbells.parker().unwrap();
    let mut shared = doorbells.shared_parker(WITHOUT_END).unwrap();
    assert!(parker.arm(&interests(Bell::Data(1))));
    let armed = shared.arm(&Waits(doorbells.clone(), vec![Bell::Data(1)]));
    doorbells.bell(Bell::Data(1)).ring();
    let copy = tempfile::tempdir().unwrap();
    for name in [FILE_NAME, "waiters/00", "waiters/01"] {
        std::fs::copy(dir.path().join(name), copy.path().join("file")).unwrap();
    }
    assert_eq!(std::fs::read_dir(dir.path().join(WAITERS)).unwrap().count(), 2);
    shared.disarm(armed);
}

#[test]
fn a_slot_comes_back_when_its_owner_is_killed() {
    let (dir, doorbells) = directory();
    // Another process holds slot 0 until it is killed.
    let path = dir.path().join(WAITERS).join("00");
    let open = WakeFile::create(&path).unwrap();
    let mut owner = Command::new("flock")
        .args(["--no-fork", path.to_str().unwrap(), "sleep", "600"])
        .spawn()
        .unwrap();
    while WakeFile::open(&path).unwrap().try_lock().unwrap() {
        std::thread::sleep(Duration::from_millis(5));
    }
    shared(&doorbells).word(Bell::Events.index()).arm(0);
    assert_eq!(doorbells.parker().unwrap().slot().number(), 1);
    owner.kill().unwrap();
    owner.wait().unwrap();
    drop(open);
    let freed = shared(&doorbells).claim_slot().unwrap();
    let mut next = Parker::new(HeldSlot::new(shared(&doorbells), freed));
    assert_eq!(next.slot().number(), 0);
    // The bit of the one before wakes the next owner for nothing, once.
    doorbells.bell(Bell::Events).ring();
    assert!(!doorbells.bell(Bell::Events).is_armed());
    wait(&mut next, &interests(Bell::Data(1)));
}

#[test]
fn a_bit_that_the_owner_before_left_spares_no_owner_the_second_look() {
    let (_dir, doorbells) = directory();
    let mut parker = doorbells.parker().unwrap();
    shared(&doorbells)
        .word(Bell::Events.index())
        .arm(parker.slot().number());
    assert!(parker.arm(&interests(Bell::Events)));
    assert!(!parker.arm(&interests(Bell::Events)));
}

#[test]
fn garbage_in_the_file_and_missing_files_stop_no_writer() {
    let (dir, doorbells) = directory();
    let file = shared(&doorbells).file.clone();
    (0..FILE_LENGTH / 8).for_each(|word| file.put_i64(word * 8, -1));
    let mut parker = doorbells.parker().unwrap();
    for bell in [Bell::Conductor, Bell::Data(i64::MIN), Bell::Limit(-1)] {
        doorbells.bell(bell).ring();
        assert!(!doorbells.bell(bell).is_armed());
        wait(&mut parker, &interests(bell));
    }
    assert!(Doorbells::open(dir.path(), IDENTITY).0.is_none());
    std::fs::remove_dir_all(dir.path()).unwrap();
    assert!(Doorbells::open(dir.path(), IDENTITY).parker().is_none());
    parker.arm(&interests(Bell::Events));
    doorbells.bell(Bell::Events).ring();
    assert!(shared(&doorbells).claim_slot().is_err());
}

#[test]
fn a_waiter_woken_for_nothing_again_and_again_stops_listening_for_a_while() {
    let (_dir, doorbells) = directory();
    let mut parker = doorbells.parker().unwrap();
    let (bell, interests) = (doorbells.bell(Bell::Data(1)), interests(Bell::Data(1)));
    assert!(parker.arm(&interests));
    for _ in 0..4 {
        bell.ring();
        assert!(parker.arm(&interests), "the writer took the bit");
        parker.park(&interests, Duration::ZERO);
    }
    assert!(bell.is_armed());
    parker.park(&interests, Duration::ZERO);
    assert!(!bell.is_armed(), "it sleeps without a doorbell");
    assert!(parker.arm(&interests), "and listens again");
}

#[test]
fn sleeps_are_short_where_a_writer_may_not_ring() {
    let (_dir, doorbells) = directory();
    let bell = doorbells.bell(Bell::Data(1));
    let mut parker = doorbells.parker().unwrap();
    bell.mark_foreign();
    let mut interests = Interests::new(WITHOUT_END);
    interests.doorbell(&bell);
    parker.arm(&interests);
    parker.park(&interests, WITHOUT_END);
    interests.clear();
    interests.may_come_unrung();
    parker.arm(&interests);
    parker.park(&interests, WITHOUT_END);
}

#[test]
fn another_drivers_file_and_one_of_another_layout_are_not_used() {
    let (dir, doorbells) = directory();
    let successor = DriverIdentity {
        start_timestamp_ms: 9,
        ..IDENTITY
    };
    assert!(Doorbells::open(dir.path(), successor).parker().is_none());
    shared(&doorbells).file.put_i32(VERSION_OFFSET, VERSION + 1);
    assert!(Doorbells::open(dir.path(), IDENTITY).parker().is_none());
    std::fs::write(dir.path().join(FILE_NAME), [0; 64]).unwrap();
    assert!(Doorbells::open(dir.path(), IDENTITY).parker().is_none());
}

#[test]
fn a_directory_that_cannot_be_written_to_only_costs_the_doorbells() {
    let (dir, doorbells) = directory();
    let waiters = dir.path().join(WAITERS);
    std::fs::set_permissions(&waiters, PermissionsExt::from_mode(0o555)).unwrap();
    // Root writes anyway; another user gets no slot, and no error but a reason.
    let refused = doorbells.parker().is_none();
    assert_eq!(doorbells.take_refusal().is_some(), refused);
    std::fs::set_permissions(&waiters, PermissionsExt::from_mode(0o777)).unwrap();
    // Directories and links in place of files take away the slots they stand for, and no others.
    let _ = std::fs::remove_file(waiters.join("00"));
    std::fs::create_dir(waiters.join("00")).unwrap();
    std::os::unix::fs::symlink("/dev/null", waiters.join("01")).unwrap();
    let theirs = Doorbells::open(dir.path(), IDENTITY);
    let slots: Vec<Parker> = std::iter::from_fn(|| theirs.parker()).collect();
    assert_eq!(slots.len(), SLOT_COUNT - 2);
    for bell in (0..8).map(Bell::Data) {
        (0..SLOT_COUNT).for_each(|slot| {
            shared(&doorbells).word(bell.index()).arm(slot);
        });
        doorbells.bell(bell).ring();
    }
    let reason = theirs.take_refusal().unwrap();
    assert!(reason.contains("waiters/01"), "{reason}");
}

#[test]
fn clients_that_ring_are_known() {
    let (dir, doorbells) = directory();
    let theirs = Doorbells::open(dir.path(), IDENTITY);
    theirs.register_client(12);
    assert!(doorbells.is_registered(12) && !doorbells.is_registered(13));
    theirs.register_client(12 + 1024);
    assert!(!doorbells.is_registered(12) && doorbells.is_registered(12 + 1024));
    assert!(!Doorbells::none().is_registered(0));
}

/// Waits for a doorbell, as an event loop's coroutine does.
struct Waits(Doorbells, Vec<Bell>);

impl Awaited for Waits {
    fn doorbells(&self) -> Doorbells {
        self.0.clone()
    }

    fn describe(&self, interests: &mut Interests) {
        self.1.iter().for_each(|bell| interests.bell(*bell));
    }
}

#[test]
fn a_thread_whose_sleeps_were_long_arms_at_once_and_one_that_was_woken_soon_spins_first() {
    let (_dir, doorbells) = directory();
    let awaited = Waits(doorbells.clone(), vec![Bell::Events]);
    let mut idle = BlockingIdle::new(IdleStrategy::default(), WITHOUT_END);
    let mut is_armed_after_a_look = || {
        idle.reset();
        idle.idle(0, &awaited);
        doorbells.bell(Bell::Events).is_armed()
    };
    assert!(!is_armed_after_a_look());
    (0..blocking::LONG_SLEEPS_MIN).for_each(|_| blocking::note_sleep(Duration::from_millis(3)));
    assert!(is_armed_after_a_look());
    blocking::note_sleep(Duration::from_micros(3));
    assert!(!is_armed_after_a_look());
}

#[test]
fn a_thread_is_told_how_long_it_slept_for_want_of_work() {
    let (_dir, doorbells) = directory();
    let awaited = Waits(doorbells, vec![Bell::Events]);
    let longest = Duration::from_millis(1);
    let mut idle = BlockingIdle::new(IdleStrategy::default(), longest);
    (0..blocking::LONG_SLEEPS_MIN).for_each(|_| blocking::note_sleep(longest));
    assert_eq!(idle.idle(0, &awaited), Duration::ZERO, "it arms, and looks again");
    let rested = idle.idle(0, &awaited);
    assert!(
        rested > Duration::ZERO && rested <= longest,
        "{rested:?}: what it slept beyond the longest sleep is a stall"
    );
    assert_eq!(idle.idle(1, &awaited), Duration::ZERO, "it found work");
}

#[test]
fn a_thread_that_backs_off_is_woken_only_where_it_asked_for_that() {
    let (_dir, doorbells) = directory();
    let awaited = Waits(doorbells.clone(), vec![Bell::Events]);
    let backoff = || IdleStrategy::parse("backoff", Some("0-0-10s-10s")).unwrap();
    let mut plain = BlockingIdle::new(backoff(), WITHOUT_END);
    assert!(plain.parker(&doorbells).is_none());
    let mut woken = BlockingIdle::woken(backoff(), WITHOUT_END);
    let alarm = woken.parker(&doorbells).unwrap().alarm();
    while !doorbells.bell(Bell::Events).is_armed() {
        woken.idle(0, &awaited);
    }
    alarm.wake();
    // Does not return before ten seconds are over, unless it is woken: then the test has no end within its time.
    woken.idle(0, &awaited);
    woken.idle(1, &awaited);
    assert!(!doorbells.bell(Bell::Events).is_armed());
}

#[test]
fn after_a_rest_the_doorbells_are_armed_for_the_next_one() {
    let (_dir, doorbells) = directory();
    let awaited = Waits(doorbells.clone(), vec![Bell::Events]);
    let mut idle = BlockingIdle::woken(IdleStrategy::parse("backoff", None).unwrap(), WITHOUT_END);
    let is_armed = || doorbells.bell(Bell::Events).is_armed();
    idle.rest(false, WITHOUT_END, &awaited);
    assert!(is_armed(), "it arms, and looks once more");
    for _ in 0..2 * IDLE_WAKES_MAX {
        doorbells.bell(Bell::Events).ring();
        idle.rest(true, WITHOUT_END, &awaited);
        assert!(is_armed(), "what rang during a look is looked at before a sleep");
        // That ring ends this sleep, which has no other end within the time of a test.
        idle.rest(true, WITHOUT_END, &awaited);
        assert!(is_armed(), "for the look that follows");
    }
}

#[test]
fn a_thread_that_waited_long_for_the_end_of_a_yield_sleeps_at_once() {
    let (_dir, doorbells) = directory();
    let awaited = Waits(doorbells.clone(), vec![Bell::Events]);
    let mut idle = BlockingIdle::new(IdleStrategy::default(), WITHOUT_END);
    blocking::note_sleep(Duration::ZERO);
    blocking::note_yield(Instant::now().checked_sub(Duration::from_millis(3)).unwrap());
    idle.idle(0, &awaited);
    assert!(doorbells.bell(Bell::Events).is_armed());
}

#[test]
fn a_woken_back_off_sleeps_no_longer_than_it_says() {
    let (_dir, doorbells) = directory();
    let awaited = Waits(doorbells.clone(), vec![Bell::Events]);
    let mut idle = BlockingIdle::woken(
        IdleStrategy::parse("backoff", Some("0-0-1us-1ms")).unwrap(),
        WITHOUT_END,
    );
    (0..30).for_each(|_| {
        idle.idle(0, &awaited);
    });
}

#[test]
fn waits_that_share_a_slot_are_told_apart_by_what_rang() {
    let (_dir, doorbells) = directory();
    let mut parker = doorbells.shared_parker(WITHOUT_END).unwrap();
    let waits = |bells: &[Bell]| Waits(doorbells.clone(), bells.to_vec());
    let first = parker.arm(&waits(&[Bell::Data(1), Bell::Data(2)]));
    let second = parker.arm(&waits(&[Bell::Data(2), Bell::Data(3)]));
    let mut rung = |armed: [&Armed; 2]| parker.take_rung((1..).zip(armed));
    assert!(rung([&first, &second]).is_empty());
    doorbells.bell(Bell::Data(1)).ring();
    assert_eq!(rung([&first, &second]), [1]);
    doorbells.bell(Bell::Data(2)).ring();
    assert_eq!(rung([&first, &second]), [1, 2]);
    parker.disarm(first);
    assert!(!doorbells.bell(Bell::Data(1)).is_armed() && doorbells.bell(Bell::Data(3)).is_armed());
    drop(parker);
    assert!(!doorbells.bell(Bell::Data(3)).is_armed());
}

#[test]
fn a_wait_that_begins_after_a_ring_hides_it_from_no_other() {
    let (_dir, doorbells) = directory();
    let mut parker = doorbells.shared_parker(WITHOUT_END).unwrap();
    let wait = Waits(doorbells.clone(), vec![Bell::Data(1)]);
    let first = parker.arm(&wait);
    doorbells.bell(Bell::Data(1)).ring();
    // Sets the bit again before the loop has looked at what rang.
    let second = parker.arm(&wait);
    assert_eq!(parker.take_rung([(1, &first), (2, &second)].into_iter()), [1, 2]);
    assert!(parker.take_rung([(1, &first)].into_iter()).is_empty());
}

#[test]
fn an_event_loop_that_is_woken_for_nothing_stops_listening_for_a_while() {
    let (_dir, doorbells) = directory();
    let mut parker = doorbells.shared_parker(WITHOUT_END).unwrap();
    let (bell, wait) = (
        doorbells.bell(Bell::Data(1)),
        Waits(doorbells.clone(), vec![Bell::Data(1)]),
    );
    let mut armed = parker.arm(&wait);
    for _ in 0..4 {
        assert!(bell.is_armed() && parker.look_after() == WITHOUT_END);
        bell.ring();
        assert_eq!(parker.take_rung([(1, &armed)].into_iter()), [1]);
        parker.disarm(armed);
        armed = parker.arm(&wait);
        parker.on_looked(false);
    }
    assert!(!bell.is_armed() && parker.look_after() < WITHOUT_END);
    let other = parker.arm(&wait);
    assert!(!bell.is_armed(), "nor for those that come meanwhile");
    parker.listen();
    assert!(bell.is_armed() && parker.look_after() == WITHOUT_END);
    parker.disarm(other);
    parker.disarm(armed);
    assert!(!bell.is_armed());
}
