//! The rules are written down, and each can fail.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn each_rule_has_a_row_in_the_documentation_and_each_row_a_rule() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/internals/world.md");
    let page = std::fs::read_to_string(page).unwrap();
    let documented: BTreeSet<String> = page
        .split("\n## Rules")
        .nth(1)
        .and_then(|section| section.split("\n## ").next())
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|row| row.split_once('`'))
        .map(|(name, _)| name.to_owned())
        .collect();
    let names = super::publication::RULES.iter().map(|rule| rule.name);
    let names = names.chain(super::image::RULES.iter().map(|rule| rule.name));
    let names = names.chain(super::driver::RULES.iter().map(|rule| rule.name));
    let checked: BTreeSet<String> = names.map(str::to_owned).collect();
    assert_eq!(documented, checked);
}
