//! The way from one node to another.

/// What a link does to datagrams, in one direction. Chances go from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSettings {
    /// Chance that a datagram is lost.
    pub loss: f64,
    /// Chance that a datagram arrives twice.
    pub duplication: f64,
    /// Chance that a datagram takes up to ten times as long as it should, so that later ones overtake it. Others
    /// arrive in the order they were sent.
    pub reordering: f64,
    /// Shortest time under way, in nanoseconds.
    pub delay_min_ns: i64,
    /// Longest time under way, in nanoseconds.
    pub delay_max_ns: i64,
    /// What the link carries a second; without it, anything. A sender whose buffer is full is made to wait.
    pub bytes_per_second: Option<u64>,
    /// Longest datagram that it takes; longer ones are lost without a word. Without it, any.
    pub longest: Option<usize>,
}

impl Default for LinkSettings {
    /// A good local network: nothing is lost, and a datagram is under way for 20 to 50 microseconds.
    fn default() -> Self {
        Self {
            loss: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            delay_min_ns: 20_000,
            delay_max_ns: 50_000,
            bytes_per_second: None,
            longest: None,
        }
    }
}

/// How much longer than the longest delay a datagram that is overtaken may take.
const OVERTAKEN_FACTOR: i64 = 10;

/// When the copies of a datagram arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    Cut,
    Lost,
    Arrives { first_ns: i64, second_ns: Option<i64> },
}

/// One direction between two nodes.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// Its own, where they differ from those of the network.
    pub(super) settings: Option<LinkSettings>,
    /// Nothing gets through.
    pub(super) is_cut: bool,
    /// When the last datagram has left the sender.
    free_at_ns: i64,
    /// When the last one arrives that keeps its place.
    last_arrival_ns: i64,
}

impl Link {
    /// True when a sender with a buffer of this length has no room for `length` more bytes.
    pub(super) fn is_full(
        &self,
        settings: &LinkSettings,
        now_ns: i64,
        length: usize,
        buffer_length: usize,
    ) -> bool {
        let Some(bytes_per_second) = settings.bytes_per_second else {
            return false;
        };
        let waiting_ns = (self.free_at_ns - now_ns).max(0) as u128;
        let waiting = waiting_ns * u128::from(bytes_per_second) / 1_000_000_000;
        waiting > 0 && waiting + length as u128 > buffer_length as u128
    }

    /// Sends a datagram on its way.
    pub(super) fn carry(
        &mut self,
        settings: &LinkSettings,
        now_ns: i64,
        length: usize,
        random: &mut fastrand::Rng,
    ) -> Passage {
        let departs_ns = self.free_at_ns.max(now_ns);
        self.free_at_ns = match settings.bytes_per_second {
            Some(bytes_per_second) => {
                let duration_ns = length as u128 * 1_000_000_000 / u128::from(bytes_per_second.max(1));
                departs_ns.saturating_add(i64::try_from(duration_ns).unwrap_or(i64::MAX))
            }
            None => now_ns,
        };
        if self.is_cut {
            return Passage::Cut;
        }
        let is_too_long = settings.longest.is_some_and(|longest| length > longest);
        if random.f64() < settings.loss || is_too_long {
            return Passage::Lost;
        }
        let first_ns = self.arrival(settings, random);
        let is_doubled = random.f64() < settings.duplication;
        Passage::Arrives {
            first_ns,
            second_ns: is_doubled.then(|| self.arrival(settings, random)),
        }
    }

    fn arrival(&mut self, settings: &LinkSettings, random: &mut fastrand::Rng) -> i64 {
        let longest_ns = settings.delay_max_ns.max(settings.delay_min_ns);
        let delay_ns = random.i64(settings.delay_min_ns..=longest_ns);
        if random.f64() < settings.reordering {
            return self.free_at_ns + delay_ns + random.i64(0..=OVERTAKEN_FACTOR * longest_ns.max(1));
        }
        self.last_arrival_ns = self.last_arrival_ns.max(self.free_at_ns + delay_ns);
        self.last_arrival_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(settings: LinkSettings, count: i64) -> Vec<Passage> {
        let (mut link, mut random) = (Link::default(), fastrand::Rng::with_seed(3));
        (0..count)
            .map(|now_ns| link.carry(&settings, now_ns * 1_000, 1_000, &mut random))
            .collect()
    }

    fn firsts(passages: &[Passage]) -> Vec<i64> {
        passages
            .iter()
            .filter_map(|passage| match passage {
                Passage::Arrives { first_ns, .. } => Some(*first_ns),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_good_link_keeps_order_and_delay() {
        let times = firsts(&arrivals(LinkSettings::default(), 200));
        assert_eq!(times.len(), 200);
        assert!(times.is_sorted());
        for (sent, time_ns) in times.iter().enumerate() {
            let delay_ns = time_ns - sent as i64 * 1_000;
            assert!((20_000..=50_000).contains(&delay_ns), "{delay_ns}");
        }
    }

    #[test]
    fn each_fault_happens_about_as_often_as_asked() {
        let settings = LinkSettings {
            loss: 0.2,
            duplication: 0.3,
            reordering: 0.2,
            ..LinkSettings::default()
        };
        let passages = arrivals(settings, 1_000);
        let lost = passages
            .iter()
            .filter(|passage| **passage == Passage::Lost)
            .count();
        let doubled = passages
            .iter()
            .filter(|passage| {
                matches!(
                    passage,
                    Passage::Arrives {
                        second_ns: Some(_),
                        ..
                    }
                )
            })
            .count();
        assert!((150..250).contains(&lost), "{lost}");
        assert!((180..300).contains(&doubled), "{doubled}");
        assert!(!firsts(&passages).is_sorted());
    }

    #[test]
    fn a_slow_link_queues_until_the_buffer_of_the_sender_is_full() {
        let settings = LinkSettings {
            bytes_per_second: Some(1_000_000),
            delay_min_ns: 0,
            delay_max_ns: 0,
            ..LinkSettings::default()
        };
        let (mut link, mut random) = (Link::default(), fastrand::Rng::with_seed(3));
        let mut sent = 0;
        while !link.is_full(&settings, 0, 1_000, 10_000) {
            let passage = link.carry(&settings, 0, 1_000, &mut random);
            sent += 1;
            let first_ns = sent * 1_000_000;
            assert_eq!(
                passage,
                Passage::Arrives {
                    first_ns,
                    second_ns: None
                }
            );
        }
        assert_eq!(sent, 10);
        assert!(!link.is_full(&settings, 1_000_000, 1_000, 10_000));
    }

    #[test]
    fn nothing_passes_a_cut() {
        let mut link = Link {
            is_cut: true,
            ..Link::default()
        };
        let passage = link.carry(&LinkSettings::default(), 0, 100, &mut fastrand::Rng::with_seed(3));
        assert_eq!(passage, Passage::Cut);
    }
}
