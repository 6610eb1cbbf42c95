//! Texts for people: values in errors, and names that were probably meant.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// Most characters of a value that an error repeats.
const EXCERPT_LENGTH_MAX: usize = 120;
/// Longer names are not compared with the known ones.
const COMPARED_LENGTH_MAX: usize = 64;

/// The value, or its beginning and how long it is: an error stays readable whatever it was caused by.
pub fn excerpt(value: &str) -> Cow<'_, str> {
    match value.char_indices().nth(EXCERPT_LENGTH_MAX) {
        None => Cow::Borrowed(value),
        Some((end, _)) => Cow::Owned(format!(
            "{}... ({} characters)",
            &value[..end],
            value.chars().count()
        )),
    }
}

/// The longest prefix of whole characters that fits into so many bytes.
pub fn truncated(text: &str, length_max: usize) -> &str {
    let mut end = text.len().min(length_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The known name that a slip of the pen explains, as [`slipped`] has it, or else the one that has all words of the name and
/// more. For a name that is refused; one with more words may well be another program's.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known: Vec<&str> = known.into_iter().collect();
    if name.len() > COMPARED_LENGTH_MAX {
        return None;
    }
    let folded = name.to_ascii_lowercase();
    only_one_that_begins_so(&folded, &known)
        .or_else(|| with_more_words(&folded, &known))
        .or_else(|| fewest_edits_away(&folded, &known))
}

/// The known name that is fewest edits away, if a slip of the pen can be the reason, or the only one that a name is the
/// beginning of. Case makes no difference.
pub fn slipped<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > COMPARED_LENGTH_MAX {
        return None;
    }
    let folded = name.to_ascii_lowercase();
    let known: Vec<&str> = known.into_iter().collect();
    only_one_that_begins_so(&folded, &known).or_else(|| fewest_edits_away(&folded, &known))
}

/// A name that was cut short is nearer to the whole one than to others of its length.
fn only_one_that_begins_so<'a>(folded: &str, known: &[&'a str]) -> Option<&'a str> {
    let mut longer = known
        .iter()
        .filter(|known| known.to_ascii_lowercase().starts_with(folded));
    let first = longer.next().filter(|_| folded.len() >= STEM_LENGTH_MIN)?;
    longer.next().is_none().then_some(*first)
}

/// The name that has all the words, and the fewest others; none where two have.
fn with_more_words<'a>(folded: &str, known: &[&'a str]) -> Option<&'a str> {
    let wanted = words(folded);
    let missing_in = |known: &&'a str| {
        let all = words(known);
        let is_longer = wanted.len() > 1 && wanted.is_subset(&all) && all.len() > wanted.len();
        is_longer.then(|| (all.len() - wanted.len(), *known))
    };
    let mut longer: Vec<_> = known.iter().filter_map(missing_in).collect();
    longer.sort_unstable();
    let (fewest, nearest) = *longer.first()?;
    let is_only_one = longer.get(1).is_none_or(|(missing, _)| *missing > fewest);
    is_only_one.then_some(nearest)
}

fn words(name: &str) -> BTreeSet<String> {
    name.split(|character: char| !character.is_alphanumeric())
        .map(str::to_ascii_lowercase)
        .collect()
}

fn fewest_edits_away<'a>(folded: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .copied()
        .map(|known| (edit_distance(folded, &known.to_ascii_lowercase()), known))
        .min()
        .filter(|(distance, known)| *distance <= known.len().div_ceil(3).min(SLIPS_MAX))
        .map(|(_, known)| known)
}

/// Fewer letters are the beginning of too much.
const STEM_LENGTH_MIN: usize = 4;

/// More edits than these are another name, however long it is.
const SLIPS_MAX: usize = 4;

/// Characters to insert, remove or replace to make one text the other.
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (from_index, from_char) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = from_index + 1;
        for (to_index, to_char) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(from_char != *to_char);
            diagonal = row[to_index + 1];
            row[to_index + 1] = replaced.min(diagonal + 1).min(row[to_index] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(truncated("aeron:ipc", 5), "aeron");
        assert_eq!(truncated("aé", 2), "a");
        assert_eq!(truncated("a", 2), "a");
    }

    #[test]
    fn a_long_value_is_shown_by_its_beginning_and_length() {
        assert_eq!(excerpt("short"), "short");
        let at_the_limit = "é".repeat(EXCERPT_LENGTH_MAX);
        assert_eq!(excerpt(&at_the_limit), at_the_limit);
        let long = "é".repeat(100_000);
        assert_eq!(excerpt(&long), format!("{at_the_limit}... (100000 characters)"));
    }

    #[test]
    fn the_nearest_name_is_one_that_a_slip_explains() {
        let known = ["aeron.threading.mode", "aeron.mtu.length"];
        assert_eq!(nearest("aeron.thredaing.mode", known), Some(known[0]));
        assert_eq!(nearest("AERON.MTU.LENGHT", known), Some(known[1]));
        assert_eq!(nearest("aeron.archive.dir", known), None);
        let known = [
            "aeron.ipc.term.buffer.length",
            "aeron.term.buffer.length",
            "aeron.mtu.length",
        ];
        assert_eq!(nearest("aeron.term.length", known), Some(known[1]));
        let longer = "aeron.driver.sender.idle.strategy";
        assert_eq!(nearest("aeron.sender.idle.strategy", [longer]), Some(longer));
        assert_eq!(slipped("aeron.sender.idle.strategy", [longer]), None);
        assert_eq!(nearest(&"aeron.mtu.length".repeat(1000), known), None);
    }
}
