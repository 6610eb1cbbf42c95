//! Which streams of a receive channel have subscriptions.

/// Sessions of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sessions {
    All,
    One(i32),
    /// None until the session of the responses is known. The channel stays open meanwhile.
    NoneYet,
}

/// One stream, or one session of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interest {
    pub(crate) stream_id: i32,
    pub(crate) sessions: Sessions,
}

impl Interest {
    /// What the receiver accepts for it: one session, or all. None where it accepts nothing yet.
    pub(crate) fn accepted(self) -> Option<Option<i32>> {
        match self.sessions {
            Sessions::All => Some(None),
            Sessions::One(session_id) => Some(Some(session_id)),
            Sessions::NoneYet => None,
        }
    }
}

/// The streams that a channel accepts, each with the number of its subscriptions.
#[derive(Debug, Default)]
pub(crate) struct Interests {
    counts: Vec<(Interest, usize)>,
}

impl Interests {
    /// Counts a subscription; true for the first of its kind.
    pub(crate) fn add(&mut self, interest: Interest) -> bool {
        if let Some((_, count)) = self.counts.iter_mut().find(|(known, _)| *known == interest) {
            *count += 1;
            return false;
        }
        self.counts.push((interest, 1));
        true
    }

    /// Takes a subscription away; true for the last of its kind.
    pub(crate) fn remove(&mut self, interest: Interest) -> bool {
        let Some(index) = self.counts.iter().position(|(known, _)| *known == interest) else {
            return false;
        };
        self.counts[index].1 -= 1;
        let is_last = self.counts[index].1 == 0;
        if is_last {
            self.counts.remove(index);
        }
        is_last
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_of_a_kind_are_told() {
        let mut interests = Interests::default();
        let [all, session] = [Sessions::All, Sessions::One(5)].map(|sessions| Interest {
            stream_id: 10,
            sessions,
        });
        assert_eq!(
            [all, all, session].map(|kind| interests.add(kind)),
            [true, false, true]
        );
        assert_eq!([all, all].map(|kind| interests.remove(kind)), [false, true]);
        assert!(!interests.is_empty());
        assert!(interests.remove(session) && interests.is_empty());
        assert!(!interests.remove(session), "it is gone already");
    }
}
