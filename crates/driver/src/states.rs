//! The states of long-lived things in a driver: one enum and one table of transitions for each kind.
//!
//! `states!` makes both from one declaration. The event log shows each transition by name, and
//! `docs/reference/states.md` is made from the tables. See `docs/design/0027-events.md`.

/// The states of one kind of thing. A thing begins in the first.
pub(crate) trait State: Copy + Eq + 'static {
    /// Name of the kind in events.
    const KIND: &'static str;
    /// What the kind is, in pieces.
    const ABOUT: &'static [&'static str];
    /// Every state, in the order of declaration.
    const ALL: &'static [Self];
    /// What each of them means, in pieces.
    const MEANINGS: &'static [&'static [&'static str]];
    /// Which state may follow which.
    const TRANSITIONS: &'static [(Self, Self)];

    /// Name of the state in events.
    fn name(self) -> &'static str;

    /// True for a transition of the table.
    fn may_become(self, next: Self) -> bool {
        Self::TRANSITIONS.contains(&(self, next))
    }
}

/// Declares a kind of thing: its states, what they mean, and which may follow which.
macro_rules! states {
    (
        $(#[doc = $about:literal])+
        $visibility:vis enum $name:ident, $kind:literal {
            $($(#[doc = $meaning:literal])+ $state:ident => [$($next:ident),*];)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        $visibility enum $name {
            $($(#[doc = $meaning])+ $state,)+
        }

        impl $crate::states::State for $name {
            const KIND: &'static str = $kind;
            const ABOUT: &'static [&'static str] = &[$($about),+];
            const ALL: &'static [Self] = &[$(Self::$state),+];
            const MEANINGS: &'static [&'static [&'static str]] = &[$(&[$($meaning),+]),+];
            const TRANSITIONS: &'static [(Self, Self)] = &[$($((Self::$state, Self::$next),)*)+];

            fn name(self) -> &'static str {
                match self {
                    $(Self::$state => stringify!($state),)+
                }
            }
        }
    };
}

pub(crate) use states;
