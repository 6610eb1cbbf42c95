//! Which datagrams are dropped.

use std::collections::BTreeMap;

use headrace_protocol::frame::FrameKind;

use super::arguments::Arguments;

/// Streams that a rule follows; datagrams of more pass.
const STREAMS_MAX: usize = 1024;

const RANDOM: &str = "loss";
const GAPS: &str = "multi-gap-loss";

/// One rule of a chain. Each socket has one of its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rule {
    /// Drops at random.
    Random(RandomLoss),
    /// Drops the first transmission of parts of a term.
    FirstTime(FirstTimeLoss),
    /// Drops nothing, for this reason.
    Nothing(&'static str, String),
}

/// Types of frames: a bit for each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameSet(u64);

impl FrameSet {
    /// What a publication sends of a stream.
    pub(crate) const DATA: Self = Self::of(&[FrameKind::Data, FrameKind::Pad, FrameKind::Setup]);
    /// What a subscription sends of it.
    pub(crate) const CONTROL: Self = Self::of(&[FrameKind::StatusMessage, FrameKind::Nak, FrameKind::Error]);

    const fn of(kinds: &[FrameKind]) -> Self {
        let mut types = 0;
        let mut index = 0;
        while index < kinds.len() {
            types |= 1 << kinds[index] as u16;
            index += 1;
        }
        Self(types)
    }
}

/// Drops datagrams of some types at random.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RandomLoss {
    rate: f64,
    /// A bit for each type of frame.
    types: u64,
    random: fastrand::Rng,
}

/// Drops the first transmission of what overlaps a hole of a term.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FirstTimeLoss {
    term_id: i32,
    holes: Holes,
    /// By stream and session: the end of what was dropped. What begins before it comes again.
    dropped_to: BTreeMap<(i32, i32), i64>,
}

/// Where the holes of a term are.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Holes {
    /// One.
    One { start: i64, end: i64 },
    /// One at each multiple of a distance, the first at the distance itself.
    Regular { distance: i64, length: i64, count: i64 },
}

impl Holes {
    fn overlap(&self, start: i64, end: i64) -> bool {
        match *self {
            Self::One {
                start: hole_start,
                end: hole_end,
            } => start < hole_end && end > hole_start,
            Self::Regular {
                distance,
                length,
                count,
            } => {
                let at_start = start / distance;
                let is_after_that = start >= at_start * distance + length;
                let first = (at_start + i64::from(is_after_that)).max(1);
                first <= count && end > first * distance
            }
        }
    }
}

impl Rule {
    /// `rate=`, `seed=` and `recv-msg-mask=`; with others, or without, nothing is dropped.
    pub(crate) fn random(text: Option<&str>) -> Self {
        random_loss(text).map_or_else(|why| Self::Nothing(RANDOM, why), Self::Random)
    }

    /// Part of some frames.
    pub(crate) fn part_of(frames: FrameSet, rate: f64, seed: u64) -> Self {
        Self::Random(RandomLoss {
            rate,
            types: frames.0,
            random: fastrand::Rng::with_seed(seed),
        })
    }

    /// `term-id=`, `gap-radix=`, `gap-length=` and `total-gaps=`; with others, or without, nothing is dropped.
    pub(crate) fn gaps(text: Option<&str>) -> Self {
        gap_loss(text).map_or_else(|why| Self::Nothing(GAPS, why), Self::FirstTime)
    }

    /// `term-id=`, `term-offset=` and `length=`, all of which must be given.
    pub(crate) fn fixed(text: Option<&str>) -> Result<Self, String> {
        let arguments = Arguments::parse(text, &["term-id", "term-offset", "length"])?;
        let start = i64::from(arguments.number::<i32>("term-offset")?);
        let end = start + i64::from(arguments.number::<i32>("length")?);
        let holes = Holes::One { start, end };
        Ok(Self::FirstTime(FirstTimeLoss::new(
            arguments.number("term-id")?,
            holes,
        )))
    }

    /// Name of the rule and why it drops nothing, if it drops nothing.
    pub(crate) fn doubt(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Nothing(name, why) => Some((name, why)),
            Self::Random(_) | Self::FirstTime(_) => None,
        }
    }

    /// True for a datagram that is not to be received.
    pub(super) fn drops(&mut self, datagram: &[u8]) -> bool {
        match self {
            Self::Random(loss) => loss.drops(datagram),
            Self::FirstTime(loss) => loss.drops(datagram),
            Self::Nothing(..) => false,
        }
    }
}

impl RandomLoss {
    fn drops(&mut self, datagram: &[u8]) -> bool {
        let Some(type_code) = type_of(datagram) else {
            return false;
        };
        let is_meant = 1_u64.checked_shl(type_code.into()).unwrap_or(0) & self.types != 0;
        is_meant && self.rate > 0.0 && self.random.f64() <= self.rate
    }
}

impl FirstTimeLoss {
    fn new(term_id: i32, holes: Holes) -> Self {
        Self {
            term_id,
            holes,
            dropped_to: BTreeMap::new(),
        }
    }

    fn drops(&mut self, datagram: &[u8]) -> bool {
        let Some(data) = Data::of(datagram).filter(|data| data.term_id == self.term_id) else {
            return false;
        };
        let start = i64::from(data.term_offset);
        let end = start + datagram.len() as i64;
        let is_known = self.dropped_to.contains_key(&data.stream);
        if !self.holes.overlap(start, end) || (!is_known && self.dropped_to.len() >= STREAMS_MAX) {
            return false;
        }
        let dropped_to = self.dropped_to.entry(data.stream).or_insert(0);
        let comes_again = start < *dropped_to;
        if !comes_again {
            *dropped_to = end;
        }
        !comes_again
    }
}

/// What the first frame of a data datagram says.
struct Data {
    stream: (i32, i32),
    term_id: i32,
    term_offset: i32,
}

impl Data {
    /// None for other datagrams, and for heartbeats, which bring no data.
    fn of(datagram: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            let bytes = datagram.get(at..at + 4)?;
            Some(i32::from_le_bytes(bytes.try_into().ok()?))
        };
        let is_data = type_of(datagram)? == FrameKind::Data as u16 && word(0)? > 0;
        is_data.then_some(())?;
        Some(Self {
            stream: (word(16)?, word(12)?),
            term_id: word(20)?,
            term_offset: word(8)?,
        })
    }
}

fn type_of(datagram: &[u8]) -> Option<u16> {
    let bytes = datagram.get(6..8)?;
    Some(u16::from_le_bytes([bytes[0], bytes[1]]))
}

fn random_loss(text: Option<&str>) -> Result<RandomLoss, String> {
    let arguments = Arguments::parse(text, &["rate", "seed", "recv-msg-mask"])?;
    let rate: f64 = arguments.number("rate")?;
    if !(0.0..=1.0).contains(&rate) {
        return Err(format!("rate={rate} is not from 0 to 1"));
    }
    let mask = arguments.text("recv-msg-mask").ok_or("it has no recv-msg-mask")?;
    let digits = mask.strip_prefix("0x").unwrap_or(mask);
    let types = u64::from_str_radix(digits, 16)
        .map_err(|_| format!("recv-msg-mask={mask} is no hexadecimal number"))?;
    let seed = arguments
        .text("seed")
        .map_or(Ok(0), |_| arguments.number("seed"))?;
    Ok(RandomLoss {
        rate,
        types,
        random: fastrand::Rng::with_seed(seed),
    })
}

fn gap_loss(text: Option<&str>) -> Result<FirstTimeLoss, String> {
    let arguments = Arguments::parse(text, &["term-id", "gap-radix", "gap-length", "total-gaps"])?;
    let radix: u32 = arguments.number("gap-radix")?;
    let distance = i64::from(radix.max(1)).unsigned_abs().next_power_of_two() as i64;
    let length = i64::from(arguments.number::<u32>("gap-length")?);
    if length >= distance {
        return Err(format!(
            "gap-length={length} is not less than gap-radix={distance}"
        ));
    }
    let holes = Holes::Regular {
        distance,
        length,
        count: i64::from(arguments.number::<u32>("total-gaps")?),
    };
    Ok(FirstTimeLoss::new(arguments.number("term-id")?, holes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(term_id: i32, term_offset: i32, length: usize) -> Vec<u8> {
        let mut datagram = vec![0; length];
        datagram[..4].copy_from_slice(&(length as i32).to_le_bytes());
        datagram[6] = 1;
        datagram[8..12].copy_from_slice(&term_offset.to_le_bytes());
        datagram[12..16].copy_from_slice(&(-7_i32).to_le_bytes());
        datagram[16..20].copy_from_slice(&10_i32.to_le_bytes());
        datagram[20..24].copy_from_slice(&term_id.to_le_bytes());
        datagram
    }

    fn of_type(type_code: u8) -> Vec<u8> {
        let mut datagram = vec![0; 36];
        datagram[6] = type_code;
        datagram
    }

    #[test]
    fn random_loss_drops_about_what_it_is_told_and_only_those_types() {
        let mut rule = Rule::random(Some("rate=0.1|seed=3405691582|recv-msg-mask=0x4c"));
        let mut count = |type_code| (0..10_000).filter(|_| rule.drops(&of_type(type_code))).count();
        for type_code in [2, 3, 6] {
            assert!((800..1_200).contains(&count(type_code)), "{type_code}");
        }
        for type_code in [0, 1, 4, 5, 7, 255] {
            assert_eq!(count(type_code), 0, "{type_code}");
        }
        let mut all = Rule::random(Some("rate=1.0E0|recv-msg-mask=2"));
        assert!(all.drops(&of_type(1)) && !all.drops(&[0; 5]));
    }

    #[test]
    fn fixed_loss_drops_the_first_transmission_of_a_range() {
        let mut rule = Rule::fixed(Some("term-id=5|term-offset=102|length=1000")).unwrap();
        for (term_id, term_offset, is_dropped) in [
            (4, 0, false),
            (5, 0, true), // overlaps the first bytes
            (5, 0, false),
            (5, 256, true),
            (5, 512, true),
            (5, 256, false),
            (5, 768, true),
            (5, 1024, true), // overlaps the last bytes
            (5, 1280, false),
        ] {
            assert_eq!(
                rule.drops(&data(term_id, term_offset, 256)),
                is_dropped,
                "{term_offset}"
            );
        }
        let heartbeat = [vec![0; 4], data(5, 0, 32)[4..].to_vec()].concat();
        let mut rule = Rule::fixed(Some("term-id=5|term-offset=0|length=1000")).unwrap();
        assert!(!rule.drops(&heartbeat) && rule.drops(&data(5, 0, 64)));
    }

    #[test]
    fn gap_loss_drops_the_first_transmission_at_each_multiple() {
        let mut rule = Rule::gaps(Some("term-id=0|gap-radix=4000|gap-length=128|total-gaps=2"));
        let mut dropped = |term_offset| rule.drops(&data(0, term_offset, 1024));
        assert!(
            !dropped(0) && !dropped(3072),
            "none at 0, and 4000 is rounded up to 4096"
        );
        assert!(dropped(4096) && !dropped(4096) && !dropped(5120));
        assert!(dropped(7680) && !dropped(8192), "the second repairs the first");
        assert!(!dropped(12_288), "there are two");
    }

    #[test]
    fn arguments_that_cannot_be_read_drop_nothing_or_are_refused() {
        for text in [
            None,
            Some("rate=x|recv-msg-mask=2"),
            Some("rate=2|recv-msg-mask=2"),
            Some("speed=1"),
        ] {
            assert!(Rule::random(text).doubt().is_some(), "{text:?}");
            assert!(Rule::fixed(text).is_err(), "{text:?}");
        }
        let gaps = Rule::gaps(Some("term-id=0|gap-radix=64|gap-length=64|total-gaps=2"));
        assert_eq!(
            gaps.doubt().unwrap().1,
            "gap-length=64 is not less than gap-radix=64"
        );
    }
}
