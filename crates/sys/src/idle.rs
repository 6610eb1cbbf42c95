//! What an agent does when a duty cycle found nothing to do.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::lead::{LEAD, Pace};
use crate::park::park;

/// How to pass the time between duty cycles that did no work. Keeps the state of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdleStrategy {
    /// Returns at once.
    NoOp,
    /// One spin hint to the processor.
    BusySpin,
    /// Yields the processor.
    Yield,
    /// Sleeps a fixed time.
    Sleep(Duration),
    /// Spins, then yields, then sleeps twice as long each time.
    Backoff(Backoff),
    /// As `Backoff`, but blocks until it is woken where the caller of [`IdleStrategy::idle_or_block`] can be.
    Blocking(Backoff),
    /// What the control says now.
    Controlled(Control),
}

/// Says how to idle while the program runs: 1 as `NoOp`, 2 as `BusySpin`, 3 as `Yield`, and any other number a sleep of a
/// microsecond. Source: channels and configuration 6.2.
#[derive(Clone)]
pub struct Control(Arc<dyn Fn() -> i64 + Send + Sync>);

/// Settings and progress of [`IdleStrategy::Backoff`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    max_spins: u64,
    max_yields: u64,
    min_park: Duration,
    max_park: Duration,
    state: State,
    pace: Pace,
}

/// ```text
/// NotIdle -> Spinning -> Yielding -> Parking        any work: -> NotIdle
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    NotIdle,
    Spinning { spins: u64 },
    Yielding { yields: u64 },
    Parking { park: Duration },
}

/// What one idle turn comes down to; apart from [`IdleStrategy::idle`] so that tests need not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    None,
    Spin,
    Yield,
    Sleep(Duration),
}

const DEFAULT_SLEEP: Duration = Duration::from_micros(1);

/// The strategies that take arguments, by all their names.
const SLEEP_NAMES: [&str; 4] = [
    "sleep-ns",
    "sleeping",
    "SleepingIdleStrategy",
    "aeron_idle_strategy_sleeping",
];
const BACKOFF_NAMES: [&str; 3] = ["backoff", "BackoffIdleStrategy", "aeron_idle_strategy_backoff"];

impl Backoff {
    /// A strategy that spins at most `max_spins` turns, yields at most `max_yields`, then sleeps from `min_park`
    /// doubling to `max_park`.
    pub fn new(max_spins: u64, max_yields: u64, min_park: Duration, max_park: Duration) -> Self {
        Self {
            max_spins,
            max_yields,
            min_park,
            max_park,
            state: State::NotIdle,
            pace: Pace::default(),
        }
    }

    fn next(&mut self) -> Pause {
        match &mut self.state {
            State::NotIdle => {
                self.state = State::Spinning { spins: 1 };
                Pause::None
            }
            State::Spinning { spins } => {
                *spins += 1;
                if *spins > self.max_spins {
                    self.state = State::Yielding { yields: 0 };
                }
                Pause::Spin
            }
            State::Yielding { yields } => {
                *yields += 1;
                if *yields > self.max_yields {
                    self.state = State::Parking { park: self.min_park };
                    return Pause::None;
                }
                Pause::Yield
            }
            State::Parking { park } => {
                let now = *park;
                *park = (now * 2).min(self.max_park);
                Pause::Sleep(now)
            }
        }
    }
}

impl Control {
    /// One that asks for the number at each idle turn.
    pub fn new(number: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(number))
    }

    fn next(&self) -> Pause {
        match (self.0)() {
            1 => Pause::None,
            2 => Pause::Spin,
            3 => Pause::Yield,
            _ => Pause::Sleep(DEFAULT_SLEEP),
        }
    }
}

/// Not controlled.
impl Default for Control {
    fn default() -> Self {
        Self::new(|| 0)
    }
}

impl PartialEq for Control {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Control {}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Control").field(&(self.0)()).finish()
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(10, 20, Duration::from_micros(1), Duration::from_millis(1))
    }
}

impl Default for IdleStrategy {
    fn default() -> Self {
        Self::Blocking(Backoff::default())
    }
}

impl IdleStrategy {
    /// Names accepted by [`Self::parse`] that this project documents; aliases of other implementations work too.
    pub const NAMES: [&'static str; 7] = [
        "noop", "spin", "yield", "sleep-ns", "sleep-ms", "backoff", "blocking",
    ];

    /// Finds a strategy by its name, by the class name used in Java properties or by the symbol used in C, with
    /// the optional arguments of the strategy: a duration for `sleep-ns`, `spins-yields-minPark-maxPark` for
    /// `backoff`. The error names the rule that was broken.
    pub fn parse(name: &str, init_args: Option<&str>) -> Result<Self, String> {
        let init_args = init_args.filter(|args| !args.is_empty());
        if let Some(args) = init_args
            && !Self::takes_arguments(name)
        {
            // The strategy alone first: an unknown name is the more helpful refusal.
            Self::parse(name, None)?;
            return Err(format!("idle strategy {name} takes no arguments: {args}"));
        }
        match short(name) {
            "noop" | "NoOpIdleStrategy" | "aeron_idle_strategy_noop" => Ok(Self::NoOp),
            "spin" | "BusySpinIdleStrategy" | "aeron_idle_strategy_busy_spinning" => Ok(Self::BusySpin),
            "yield" | "YieldingIdleStrategy" | "aeron_idle_strategy_yielding" => Ok(Self::Yield),
            "sleep-ms" | "SleepingMillisIdleStrategy" => Ok(Self::Sleep(Duration::from_millis(1))),
            "blocking" => Ok(Self::default()),
            _ if Self::is_controllable(name) => Err(format!(
                "idle strategy {name} is for drivers, which have a counter that controls it"
            )),
            short if SLEEP_NAMES.contains(&short) => init_args
                .map_or(Ok(DEFAULT_SLEEP), parse_duration)
                .map(Self::Sleep),
            short if BACKOFF_NAMES.contains(&short) => init_args
                .map_or(Ok(Backoff::default()), parse_backoff)
                .map(Self::Backoff),
            _ => Err(format!(
                "unknown idle strategy: {name}; known are {}",
                Self::NAMES.join(", ")
            )),
        }
    }

    /// True for the name of [`Self::Controlled`], which needs a control besides.
    pub fn is_controllable(name: &str) -> bool {
        matches!(short(name), "controllable" | "ControllableIdleStrategy")
    }

    /// Whether arguments make a difference to the strategy of a name.
    pub fn takes_arguments(name: &str) -> bool {
        SLEEP_NAMES.contains(&short(name)) || BACKOFF_NAMES.contains(&short(name))
    }

    /// Short name, one of [`Self::NAMES`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::NoOp => "noop",
            Self::BusySpin => "spin",
            Self::Yield => "yield",
            Self::Sleep(_) => "sleep-ns",
            Self::Backoff(_) => "backoff",
            Self::Blocking(_) => "blocking",
            Self::Controlled(_) => "controllable",
        }
    }

    /// Call after each duty cycle with the amount of work it did. Returns at once when that is positive.
    #[inline]
    pub fn idle(&mut self, work_count: usize) {
        self.idle_or_block(work_count, park);
    }

    /// As [`Self::idle`] for a caller that can be woken: where [`Self::Blocking`] and [`Self::Backoff`] would sleep,
    /// `block` is called with the length of that sleep instead, and passes the time as it sees fit.
    #[inline]
    pub fn idle_or_block(&mut self, work_count: usize, block: impl FnOnce(Duration)) {
        if work_count > 0 {
            self.reset();
            return;
        }
        match self.next() {
            Pause::None => {}
            Pause::Spin => std::hint::spin_loop(),
            Pause::Yield => std::thread::yield_now(),
            Pause::Sleep(duration) if matches!(self, Self::Blocking(_) | Self::Backoff(_)) => block(duration),
            Pause::Sleep(duration) => park(duration),
        }
    }

    /// As [`Self::idle`], for the reader of a stream in shared memory: call after each poll with what it took and with
    /// its limit.
    ///
    /// Where the reader has caught up with a stream of more than 4 million messages a second, [`Self::Blocking`] and
    /// [`Self::Backoff`] sleep for 100 microseconds, or for their longest sleep if that is shorter. The publisher gets
    /// ahead meanwhile, and both are up to twice as fast as when they go in step. No other strategy does so.
    #[inline]
    pub fn idle_with_lead(&mut self, taken: usize, limit: usize) {
        if let Self::Backoff(backoff) | Self::Blocking(backoff) = self
            && backoff.pace.is_lead_due(taken, limit, Instant::now)
        {
            park(LEAD.min(backoff.max_park));
        } else {
            self.idle(taken);
        }
    }

    /// Forgets how long the agent has been idle.
    #[inline]
    pub fn reset(&mut self) {
        if let Self::Backoff(backoff) | Self::Blocking(backoff) = self {
            backoff.state = State::NotIdle;
        }
    }

    /// [`Self::Blocking`] blocks in the next idle turn, without spinning and yielding before.
    pub fn skip_to_block(&mut self) {
        if let Self::Blocking(backoff) = self
            && !matches!(backoff.state, State::Parking { .. })
        {
            backoff.state = State::Parking {
                park: backoff.min_park,
            };
        }
    }

    /// True when the next idle turn sleeps, unless work comes.
    pub fn is_about_to_sleep(&self) -> bool {
        match self {
            Self::Sleep(_) => true,
            Self::Backoff(backoff) | Self::Blocking(backoff) => {
                matches!(backoff.state, State::Parking { .. })
            }
            Self::Controlled(control) => matches!(control.next(), Pause::Sleep(_)),
            Self::NoOp | Self::BusySpin | Self::Yield => false,
        }
    }

    /// True when the next idle turn yields the processor, unless work comes, and later ones could sleep instead.
    pub fn is_about_to_yield(&self) -> bool {
        match self {
            Self::Backoff(backoff) | Self::Blocking(backoff) => {
                matches!(&backoff.state, State::Yielding { yields } if *yields < backoff.max_yields)
            }
            _ => false,
        }
    }

    fn next(&mut self) -> Pause {
        match self {
            Self::NoOp => Pause::None,
            Self::BusySpin => Pause::Spin,
            Self::Yield => Pause::Yield,
            Self::Sleep(duration) => Pause::Sleep(*duration),
            Self::Backoff(backoff) | Self::Blocking(backoff) => backoff.next(),
            Self::Controlled(control) => control.next(),
        }
    }
}

/// A name without the package that Java properties put before it.
fn short(name: &str) -> &str {
    name.strip_prefix("org.agrona.concurrent.").unwrap_or(name)
}

fn parse_backoff(args: &str) -> Result<Backoff, String> {
    let parts: Vec<&str> = args.split('-').collect();
    let [spins, yields, min_park, max_park] = parts[..] else {
        return Err(format!(
            "backoff idle strategy arguments {args}: 4 values required, spins-yields-minPark-maxPark"
        ));
    };
    let count = |text: &str| {
        text.parse()
            .map_err(|_| format!("backoff idle strategy arguments {args}: {text} is not a number"))
    };
    let backoff = Backoff::new(
        count(spins)?,
        count(yields)?,
        parse_duration(min_park)?,
        parse_duration(max_park)?,
    );
    if backoff.min_park.is_zero() || backoff.min_park > backoff.max_park {
        return Err(format!(
            "backoff idle strategy arguments {args}: minPark must be above 0 and not above maxPark"
        ));
    }
    Ok(backoff)
}

/// `<number>[ns|us|ms|s]`, nanoseconds without a suffix.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale: u64 = match &text[digits.len()..] {
        "" | "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        suffix => {
            return Err(format!(
                "duration {text}: unknown suffix {suffix}, use ns, us, ms or s"
            ));
        }
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(scale))
        .map(Duration::from_nanos)
        .ok_or_else(|| format!("duration {text}: not a number of nanoseconds below 2^64"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_spins_then_yields_then_sleeps_longer_until_work_comes() {
        let us = Duration::from_micros;
        let mut backoff = Backoff::new(2, 2, us(1), us(3));
        let mut turns = || (0..9).map(|_| backoff.next()).collect::<Vec<_>>();
        let expected = [
            Pause::None,
            Pause::Spin,
            Pause::Spin,
            Pause::Yield,
            Pause::Yield,
            Pause::None,
            Pause::Sleep(us(1)),
            Pause::Sleep(us(2)),
            Pause::Sleep(us(3)),
        ];
        assert_eq!(turns(), expected);
        let mut strategy = IdleStrategy::Backoff(backoff);
        strategy.idle(1);
        assert_eq!(strategy, IdleStrategy::Backoff(Backoff::new(2, 2, us(1), us(3))));
    }

    #[test]
    fn blocking_backs_off_and_blocks_where_it_would_sleep() {
        let us = Duration::from_micros;
        let mut strategy = IdleStrategy::Blocking(Backoff::new(1, 1, us(1), us(2)));
        let mut blocked = Vec::new();
        (0..7).for_each(|_| strategy.idle_or_block(0, |sleep| blocked.push(sleep)));
        strategy.idle_or_block(1, |sleep| blocked.push(sleep));
        (0..5).for_each(|_| strategy.idle_or_block(0, |sleep| blocked.push(sleep)));
        assert_eq!(blocked, [us(1), us(2), us(2), us(1)]);
        strategy.reset();
        blocked.clear();
        strategy.skip_to_block();
        strategy.idle_or_block(0, |sleep| blocked.push(sleep));
        strategy.skip_to_block();
        strategy.idle_or_block(0, |sleep| blocked.push(sleep));
        assert_eq!(blocked, [us(1), us(2)]);
        let mut backoff = IdleStrategy::Backoff(Backoff::default());
        backoff.skip_to_block();
        assert!(!backoff.is_about_to_sleep());
    }

    #[test]
    fn a_controlled_strategy_does_what_the_number_says_now() {
        use std::sync::atomic::{AtomicI64, Ordering};

        let number = Arc::new(AtomicI64::new(0));
        let read = Arc::clone(&number);
        let mut strategy = IdleStrategy::Controlled(Control::new(move || read.load(Ordering::Relaxed)));
        let sleep = Pause::Sleep(Duration::from_micros(1));
        for (value, expected) in [
            (0, sleep),
            (1, Pause::None),
            (2, Pause::Spin),
            (3, Pause::Yield),
            (4, sleep),
            (-7, sleep),
            (i64::MAX, sleep),
        ] {
            number.store(value, Ordering::Relaxed);
            assert_eq!(strategy.next(), expected, "{value}");
            assert_eq!(strategy.is_about_to_sleep(), expected == sleep, "{value}");
        }
    }

    #[test]
    fn every_known_name_finds_its_strategy() {
        let names = [
            ("noop", "noop"),
            ("org.agrona.concurrent.NoOpIdleStrategy", "noop"),
            ("aeron_idle_strategy_noop", "noop"),
            ("spin", "spin"),
            ("org.agrona.concurrent.BusySpinIdleStrategy", "spin"),
            ("aeron_idle_strategy_busy_spinning", "spin"),
            ("yield", "yield"),
            ("org.agrona.concurrent.YieldingIdleStrategy", "yield"),
            ("aeron_idle_strategy_yielding", "yield"),
            ("sleep-ns", "sleep-ns"),
            ("sleeping", "sleep-ns"),
            ("org.agrona.concurrent.SleepingIdleStrategy", "sleep-ns"),
            ("aeron_idle_strategy_sleeping", "sleep-ns"),
            ("org.agrona.concurrent.SleepingMillisIdleStrategy", "sleep-ns"),
            ("backoff", "backoff"),
            ("org.agrona.concurrent.BackoffIdleStrategy", "backoff"),
            ("aeron_idle_strategy_backoff", "backoff"),
            ("blocking", "blocking"),
        ];
        for (name, expected) in names {
            assert_eq!(
                IdleStrategy::parse(name, None).unwrap().name(),
                expected,
                "{name}"
            );
        }
        for name in IdleStrategy::NAMES {
            assert!(IdleStrategy::parse(name, None).is_ok(), "{name}");
        }
    }

    #[test]
    fn arguments_set_the_strategy_up() {
        let us = Duration::from_micros;
        assert_eq!(
            IdleStrategy::parse("backoff", Some("1-2-3us-4ms")),
            Ok(IdleStrategy::Backoff(Backoff::new(1, 2, us(3), us(4_000))))
        );
        assert_eq!(
            IdleStrategy::parse("sleep-ns", Some("50us")),
            Ok(IdleStrategy::Sleep(us(50)))
        );
        assert_eq!(
            IdleStrategy::parse("backoff", Some("")),
            Ok(IdleStrategy::Backoff(Backoff::default()))
        );
    }

    #[test]
    fn what_cannot_be_understood_is_named_in_the_error() {
        let error = |name, args| IdleStrategy::parse(name, args).unwrap_err();
        assert!(error("fast", None).contains("unknown idle strategy: fast"));
        for name in [
            "blocking",
            "sleep-ms",
            "noop",
            "spin",
            "org.agrona.concurrent.YieldingIdleStrategy",
        ] {
            assert_eq!(
                error(name, Some("3ms")),
                format!("idle strategy {name} takes no arguments: 3ms")
            );
        }
        assert!(error("fast", Some("3ms")).contains("unknown idle strategy: fast"));
        assert!(error("controllable", None).contains("controllable is for drivers"));
        assert!(error("backoff", Some("1-2-3us")).contains("4 values required"));
        assert!(error("backoff", Some("x-2-3us-4us")).contains("x is not a number"));
        assert!(error("backoff", Some("1-2-5us-4us")).contains("not above maxPark"));
        assert!(error("sleep-ns", Some("1h")).contains("unknown suffix h"));
        assert!(error("sleep-ns", Some("99999999999999999s")).contains("below 2^64"));
    }
}
