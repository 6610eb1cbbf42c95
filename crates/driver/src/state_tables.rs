//! The tables of all states, for the documentation and for tests.

use crate::conductor::{
    ChannelState, ClientState, IntakeState, LinkState, PublicationState, SubscriptionState,
};
use crate::driver::supervisor::DriverState;
use crate::shared::{ConnectionState, ImageState};
use crate::states::State;

/// A kind of thing, for the documentation and for tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateTable {
    /// Name of the kind in events.
    pub kind: &'static str,
    /// What the kind is.
    pub about: String,
    /// Its states; a thing begins in the first.
    pub states: Vec<StateRow>,
}

/// One state of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRow {
    /// Name of the state in events.
    pub name: &'static str,
    /// What it means.
    pub meaning: String,
    /// Names of the states that may follow.
    pub next: Vec<&'static str>,
}

/// The tables of every kind of the driver.
pub fn tables() -> Vec<StateTable> {
    vec![
        table::<DriverState>(),
        table::<ClientState>(),
        table::<PublicationState>(),
        table::<ConnectionState>(),
        table::<SubscriptionState>(),
        table::<ImageState>(),
        table::<IntakeState>(),
        table::<LinkState>(),
        table::<ChannelState>(),
    ]
}

fn table<S: State>() -> StateTable {
    // A line of a documentation comment begins with a space.
    let text = |pieces: &[&str]| pieces.concat().trim().to_owned();
    let row = |(state, meaning): (&S, &&[&str])| StateRow {
        name: state.name(),
        meaning: text(meaning),
        next: S::ALL
            .iter()
            .filter(|next| state.may_become(**next))
            .map(|next| next.name())
            .collect(),
    };
    StateTable {
        kind: S::KIND,
        about: text(S::ABOUT),
        states: S::ALL.iter().zip(S::MEANINGS).map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_state_can_be_reached_from_the_first_and_kinds_have_names_of_their_own() {
        let tables = tables();
        let kinds: HashSet<_> = tables.iter().map(|table| table.kind).collect();
        assert_eq!(kinds.len(), tables.len());
        for table in &tables {
            let mut reached = vec![table.states[0].name];
            let mut index = 0;
            while let Some(name) = reached.get(index) {
                let row = table.states.iter().find(|row| row.name == *name).expect(name);
                let new: Vec<_> = row
                    .next
                    .iter()
                    .filter(|next| !reached.contains(next))
                    .copied()
                    .collect();
                reached.extend(new);
                index += 1;
            }
            for row in &table.states {
                assert!(
                    reached.contains(&row.name),
                    "{}: no way to {}",
                    table.kind,
                    row.name
                );
                assert!(
                    !row.next.contains(&row.name),
                    "{}: {} follows itself",
                    table.kind,
                    row.name
                );
                assert!(row.meaning.ends_with('.'), "{}: {}", table.kind, row.name);
            }
        }
    }
}
