//! The nearest match for a name that nobody knows.

/// The candidate that differs least from `name`, if it is near enough to be meant; the first of equals.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates.into_iter().filter(|candidate| *candidate != name) {
        let near = distance(&name.to_lowercase(), &candidate.to_lowercase());
        if near <= limit && candidate.chars().count() > near && best.is_none_or(|(least, _)| near < least) {
            best = Some((near, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Damerau-Levenshtein: insertions, deletions, replacements and swaps of neighbours that turn one name into the other.
pub fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    // Row i, column j: from the first i characters of the one to the first j of the other.
    let mut rows: Vec<Vec<usize>> = (0..=one.len()).map(|i| (i..=i + other.len()).collect()).collect();
    for i in 1..=one.len() {
        for j in 1..=other.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_each_kind_of_edit_once() {
        for (one, other, expected) in
            [("relu", "relu", 0), ("relu", "rleu", 1), ("relu", "relu6", 1), ("gelu", "relu", 1), ("", "abc", 3)]
        {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{other} {one}");
        }
    }

    #[test]
    fn nearest_prefers_the_least_distance_then_the_first() {
        assert_eq!(nearest("hiden", ["hidden", "heads"]), Some("hidden"));
        assert_eq!(nearest("fc3", ["fc1", "fc2"]), Some("fc1"));
        assert_eq!(nearest("True", ["tree", "true"]), Some("true"));
    }

    #[test]
    fn nearest_is_silent_where_nothing_is_near() {
        assert_eq!(nearest("attention", ["softmax", "linear"]), None);
        assert_eq!(nearest("x", ["y"]), None);
    }
}
