//! Stored tensors against what a model expects; every difference is one problem.

use super::container::Container;
use super::published::twins;
use super::{Expected, Rules};
use crate::error::WeightProblem;
use std::collections::{BTreeMap, BTreeSet};

/// Comparisons of names that hints may cost: their number is that of missing times unexpected ones.
const HINTS: usize = 20_000;

/// For each expected tensor its name in the container, and problems in the order of the model, then of the file.
pub(super) fn check(
    container: &Container,
    expected: &[Expected],
    rules: &Rules,
    problems: &mut Vec<WeightProblem>,
) -> Vec<Option<String>> {
    // Tensors of a file without a readable header are not missing; saying so once is enough.
    if problems.iter().any(|problem| matches!(problem, WeightProblem::Header(_))) {
        return Vec::new();
    }
    let mut stored: BTreeMap<String, &str> = BTreeMap::new();
    for name in container.tensors().keys() {
        let renamed = rules.renamed(name);
        if let Some(first) = stored.get(&renamed) {
            let (first, second) = (first.to_string(), name.clone());
            problems.push(WeightProblem::Renamed { name: renamed, first, second });
        } else {
            stored.insert(renamed, name);
        }
    }
    let fits = |name: &str, shape: &[usize]| container.stored(name).is_some_and(|stored| stored.shape == *shape);
    let mut names = Vec::with_capacity(expected.len());
    let mut missing = Vec::new();
    for Expected { name, shape } in expected {
        // A tensor that the file omits is its twin, if it may be one with another.
        let own = stored.get(name).copied();
        let own =
            own.or_else(|| twins(name).find_map(|twin| stored.get(&twin).copied().filter(|twin| fits(twin, shape))));
        let found = own.and_then(|stored| Some((stored, container.stored(stored)?)));
        names.push(found.map(|(name, _)| name.to_string()));
        let Some((_, found)) = found else {
            if !rules.may_miss(name) {
                missing.push(name.as_str());
                problems.push(WeightProblem::Missing { name: name.clone(), shape: shape.clone() });
            }
            continue;
        };
        if found.shape != *shape {
            let (expected, found) = (shape.clone(), found.shape.clone());
            problems.push(WeightProblem::Shape { name: name.clone(), expected, found });
        }
        if found.kind.block().is_none() {
            problems.push(WeightProblem::Type { name: name.clone(), found: found.kind.to_string() });
        }
    }
    let wanted: BTreeSet<&str> = expected.iter().map(|expected| expected.name.as_str()).collect();
    // A tensor that the file repeats is no other: it is only in the way if its values differ.
    let repeats = |name: &str, own: &str| {
        let twin = |twin: String| {
            wanted.contains(twin.as_str()) && stored.get(&twin).is_some_and(|twin| container.same(own, twin))
        };
        twins(name).any(twin)
    };
    // One that stands for a tensor of another name is not unexpected either.
    let used: BTreeSet<&str> = names.iter().flatten().map(String::as_str).collect();
    let unexpected: Vec<_> = stored
        .iter()
        .filter(|(name, _)| !wanted.contains(name.as_str()) && !rules.may_have(name))
        .filter(|(name, own)| !used.contains(*own) && !repeats(name, own))
        .collect();
    let hints = unexpected.len() * missing.len() <= HINTS;
    for (name, stored) in unexpected {
        let nearest = if hints { nearest(name, missing.iter().copied()) } else { None };
        let shape = container.stored(stored).map_or(Vec::new(), |stored| stored.shape.clone());
        problems.push(WeightProblem::Unexpected { name: name.clone(), shape, nearest });
    }
    names
}

/// The candidate with the fewest edits, if it is at most a third of the name away or differs only in its prefix.
fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let within = |a: &str, b: &str| a.strip_suffix(b).is_some_and(|rest| rest.ends_with('.'));
    let distance = |candidate: &&str| {
        if within(name, candidate) || within(candidate, name) { 1 } else { edits(name, candidate) }
    };
    let (best, candidate) = candidates.map(|candidate| (distance(&candidate), candidate)).min()?;
    (best <= name.chars().count().div_ceil(3)).then(|| candidate.to_string())
}

/// Insertions, deletions and replacements between two texts.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_close_or_has_another_prefix() {
        let names = ["fc1.weight", "fc2.weight", "model.norm.bias"];
        assert_eq!(nearest("fc1.weigth", names.into_iter()).as_deref(), Some("fc1.weight"));
        assert_eq!(nearest("norm.bias", names.into_iter()).as_deref(), Some("model.norm.bias"));
        assert_eq!(nearest("a.b.c.fc2.weight", names.into_iter()).as_deref(), Some("fc2.weight"));
        assert_eq!(nearest("embedding", names.into_iter()), None);
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
    }
}
