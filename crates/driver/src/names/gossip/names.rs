//! The names of other drivers, each with its address and when its driver was last heard.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use headrace_protocol::frame::ResolutionEntry;

/// Names at once.
pub(super) const NAMES_MAX: usize = 1024;

/// Where the driver of a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holder {
    address: SocketAddr,
    last_heard_ns: i64,
}

/// Why a name was not learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Another driver holds it, and was heard lately.
    Held(SocketAddr),
    /// The table is full.
    Full,
}

/// The names of one family of addresses.
type Family = BTreeMap<String, Holder>;

/// The table.
pub(super) struct Names {
    ip4: Family,
    ip6: Family,
    timeout_ns: i64,
}

impl Names {
    /// An empty table. A name goes when its driver was last heard so long ago.
    pub(super) fn new(timeout_ns: i64) -> Self {
        Self {
            ip4: Family::new(),
            ip6: Family::new(),
            timeout_ns,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ip4.len() + self.ip6.len()
    }

    /// The address of a name, of the older family if it has both.
    pub(super) fn address_of(&self, name: &str) -> Option<IpAddr> {
        let holder = self.ip4.get(name).or_else(|| self.ip6.get(name))?;
        Some(holder.address.ip())
    }

    /// Takes note of a driver that was heard at a time. Older news than what is known changes nothing.
    pub(super) fn learn(
        &mut self,
        name: &str,
        address: SocketAddr,
        heard_ns: i64,
        now_ns: i64,
    ) -> Result<(), Refusal> {
        let is_full = self.len() >= NAMES_MAX;
        let family = match address {
            SocketAddr::V4(_) => &mut self.ip4,
            SocketAddr::V6(_) => &mut self.ip6,
        };
        let Some(holder) = family.get_mut(name) else {
            if is_full {
                return Err(Refusal::Full);
            }
            let last_heard_ns = heard_ns;
            family.insert(
                name.to_owned(),
                Holder {
                    address,
                    last_heard_ns,
                },
            );
            return Ok(());
        };
        if heard_ns < holder.last_heard_ns {
            return Ok(());
        }
        // A driver that comes back at its address may have another port there.
        let is_silent = now_ns - holder.last_heard_ns >= self.timeout_ns / 2;
        if holder.address.ip() != address.ip() && !is_silent {
            return Err(Refusal::Held(holder.address));
        }
        *holder = Holder {
            address,
            last_heard_ns: heard_ns,
        };
        Ok(())
    }

    /// Forgets the drivers that were not heard for too long.
    pub(super) fn expire(&mut self, now_ns: i64) {
        let timeout_ns = self.timeout_ns;
        for family in [&mut self.ip4, &mut self.ip6] {
            family.retain(|_, holder| holder.last_heard_ns.saturating_add(timeout_ns) >= now_ns);
        }
    }

    /// Each name as gossip sends it to other drivers.
    pub(super) fn entries(&self, now_ns: i64) -> impl Iterator<Item = ResolutionEntry<'_>> {
        let both = self.ip4.iter().chain(&self.ip6);
        both.map(move |(name, holder)| ResolutionEntry {
            flags: 0,
            port: holder.address.port(),
            age_ms: i32::try_from((now_ns - holder.last_heard_ns) / 1_000_000).unwrap_or(i32::MAX),
            address: holder.address.ip(),
            name: Cow::Borrowed(name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;
    const TIMEOUT_NS: i64 = 10 * SECOND;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_name_stays_with_its_driver_until_that_is_silent() {
        let mut names = Names::new(TIMEOUT_NS);
        let (first, second) = (at("10.0.0.1:8050"), at("10.0.0.2:8050"));
        names.learn("a", first, 0, 0).unwrap();
        assert_eq!(
            names.learn("a", second, 4 * SECOND, 4 * SECOND),
            Err(Refusal::Held(first))
        );
        assert_eq!(names.address_of("a"), Some(first.ip()));
        names.learn("a", second, 5 * SECOND, 5 * SECOND).unwrap();
        assert_eq!(names.address_of("a"), Some(second.ip()));
        // What others still tell of the first is older.
        names.learn("a", first, SECOND, 6 * SECOND).unwrap();
        assert_eq!(names.address_of("a"), Some(second.ip()));
        let other_port = at("10.0.0.2:8051");
        names.learn("a", other_port, 6 * SECOND, 6 * SECOND).unwrap();
        assert_eq!(names.entries(6 * SECOND).next().unwrap().port, 8051);
    }

    #[test]
    fn a_name_goes_when_its_driver_was_not_heard_for_the_timeout_although_others_tell_of_it() {
        let mut names = Names::new(TIMEOUT_NS);
        names.learn("a", at("10.0.0.1:8050"), SECOND, 5 * SECOND).unwrap();
        names.expire(11 * SECOND);
        let entry = names.entries(11 * SECOND).next().unwrap();
        assert_eq!((entry.name.as_ref(), entry.age_ms), ("a", 10_000));
        names.expire(11 * SECOND + 1);
        assert_eq!((names.len(), names.address_of("a")), (0, None));
    }

    #[test]
    fn a_full_table_takes_no_more_names_and_keeps_those_it_has() {
        let mut names = Names::new(TIMEOUT_NS);
        for number in 0..NAMES_MAX {
            names
                .learn(&format!("n{number}"), at("10.0.0.1:1"), 0, 0)
                .unwrap();
        }
        assert_eq!(names.learn("more", at("10.0.0.1:1"), 1, 1), Err(Refusal::Full));
        names.learn("n0", at("10.0.0.1:2"), 1, 1).unwrap();
        assert_eq!(names.len(), NAMES_MAX);
    }

    #[test]
    fn a_name_may_have_an_address_of_each_family() {
        let mut names = Names::new(TIMEOUT_NS);
        names.learn("a", at("[fd00::1]:8050"), 0, 0).unwrap();
        assert_eq!(names.address_of("a"), Some(at("[fd00::1]:1").ip()));
        names.learn("a", at("10.0.0.1:8050"), 0, 0).unwrap();
        assert_eq!(
            (names.len(), names.address_of("a")),
            (2, Some(at("10.0.0.1:1").ip()))
        );
    }
}
