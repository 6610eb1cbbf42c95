//! The arguments of a rule: `key=value|key=value`.

use std::str::FromStr;

/// Keys and values, checked against the keys that a rule knows.
pub(super) struct Arguments<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Arguments<'a> {
    pub(super) fn parse(text: Option<&'a str>, known: &[&str]) -> Result<Self, String> {
        let text = text.ok_or("it has no arguments")?;
        let pairs = text.split('|').filter(|piece| !piece.is_empty()).map(|piece| {
            piece
                .split_once('=')
                .filter(|(key, _)| known.contains(key))
                .ok_or_else(|| format!("{piece} is not one of {}, followed by =value", known.join(", ")))
        });
        Ok(Self(pairs.collect::<Result<_, _>>()?))
    }

    /// The text of a key, if it was given.
    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.0
            .iter()
            .find(|(known, _)| *known == key)
            .map(|(_, value)| *value)
    }

    /// The number of a key, which must be given.
    pub(super) fn number<T: FromStr>(&self, key: &str) -> Result<T, String> {
        let text = self.text(key).ok_or_else(|| format!("it has no {key}"))?;
        text.parse()
            .map_err(|_| format!("{key}={text} is no number of its kind"))
    }
}
