//! The table of a test: names that it redirects, one row each, switched by a counter that the test writes.
//!
//! | counter | a resolve of the name |
//! |---|---|
//! | -1 | is refused |
//! | 0 | gives the first host |
//! | 1 | gives the second host |
//! | other | gives the name itself |

use headrace_buffers::counters::Counter;

use super::known::{Known, literal};

/// Type id of the counter of a row.
pub(crate) const TABLE_ROW: i32 = 2001;
/// Most rows of a table.
pub(crate) const ROWS_MAX: usize = 1024;

const REFUSE: i64 = -1;
const FIRST: i64 = 0;
const SECOND: i64 = 1;

/// One name, and where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) first_host: String,
    pub(crate) second_host: String,
}

impl Row {
    /// The rows of a text: `name,first,second` each, separated by `|`. What has not three columns is no row.
    pub(crate) fn parse_all(text: &str) -> Vec<Self> {
        text.split('|').filter_map(Self::parse).collect()
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut columns = text.split(',').map(str::to_owned);
        let row = Self {
            name: columns.next()?,
            first_host: columns.next()?,
            second_host: columns.next()?,
        };
        columns.next().is_none().then_some(row)
    }

    /// Label of the row's counter.
    pub(crate) fn label(&self) -> String {
        format!(
            "NameEntry{{name='{}', initialResolutionHost='{}', reResolutionHost='{}'}}",
            self.name, self.first_host, self.second_host
        )
    }
}

/// All rows, each with the counter that switches it.
pub(crate) struct NameTable(pub(crate) Vec<(Row, Counter)>);

impl NameTable {
    /// What is known of a host: the row of its name says so now, or the name servers are to be asked.
    pub(super) fn known(&self, host: &str) -> Known {
        if let Some(address) = literal(host) {
            return Known::Address(address);
        }
        let Some((row, counter)) = self.0.iter().find(|(row, _)| row.name == host) else {
            return Known::of(host);
        };
        match counter.get_acquire() {
            REFUSE => Known::Refused("(forced)".to_owned()),
            FIRST => Known::of(&row.first_host),
            SECOND => Known::of(&row.second_host),
            _ => Known::of(host),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use headrace_buffers::AtomicBuffer;

    use super::*;

    fn row(name: &str, first_host: &str, second_host: &str) -> Row {
        Row {
            name: name.to_owned(),
            first_host: first_host.to_owned(),
            second_host: second_host.to_owned(),
        }
    }

    #[test]
    fn rows_have_three_columns_and_others_are_passed_over() {
        assert_eq!(
            Row::parse_all("a,b,c|too,few|too,many,of,them|d,localhost,gone.test|"),
            [row("a", "b", "c"), row("d", "localhost", "gone.test")]
        );
        assert_eq!(
            row("a", "b", "c").label(),
            "NameEntry{name='a', initialResolutionHost='b', reResolutionHost='c'}"
        );
    }

    #[test]
    fn the_counter_of_a_row_says_where_its_name_leads() {
        let counter = Counter::new(AtomicBuffer::allocate(128), 0).unwrap();
        let table = NameTable(vec![(row("here", "localhost", "gone.test"), counter.clone())]);
        let localhost = Known::Address(Ipv4Addr::LOCALHOST.into());
        for (value, expected) in [
            (-1, Known::Refused("(forced)".to_owned())),
            (0, localhost.clone()),
            (1, Known::Ask("gone.test".to_owned())),
            (2, Known::Ask("here".to_owned())),
        ] {
            counter.set(value);
            assert_eq!(table.known("here"), expected, "{value}");
        }
        assert_eq!(table.known("elsewhere"), Known::Ask("elsewhere".to_owned()));
        assert_eq!(table.known("localhost"), localhost);
        assert_eq!(table.known("127.0.0.1"), localhost);
    }
}
