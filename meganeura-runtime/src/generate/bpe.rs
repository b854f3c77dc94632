//! Byte pair encoding: a piece's bytes as tokens, pairs merged by rank.
//!
//! In: tokens and merges in the order of their ranks. Out: for each piece the tokens that are left when no pair
//! merges; of equal ranks the leftmost is first. The time is n log n in the bytes of a piece, whatever they are.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What the tokens of a vocabulary merge to.
#[derive(Clone, Debug)]
pub(super) struct Bpe {
    /// The token of each byte, where there is one.
    bytes: Vec<Option<u32>>,
    /// Pairs in order, each with its rank and what it becomes.
    merges: Vec<((u32, u32), (u32, u32))>,
}

/// No neighbour.
const NONE: usize = usize::MAX;

struct Symbol {
    token: u32,
    before: usize,
    after: usize,
    merged: bool,
}

impl Bpe {
    /// From tokens by their texts and merges, each two texts with a space between. A merge of what is no token is
    /// refused.
    pub(super) fn new<'a>(
        tokens: &BTreeMap<&str, u32>,
        merges: impl Iterator<Item = Option<&'a str>>,
    ) -> Result<Bpe, String> {
        let bytes =
            super::text::ALPHABET.iter().map(|c| tokens.get(c.encode_utf8(&mut [0; 4]) as &str).copied()).collect();
        let mut all = vec![];
        for (rank, merge) in merges.enumerate() {
            let text = merge.unwrap_or_default();
            let parts = text.split_once(' ').and_then(|(left, right)| {
                let whole = [left, right].concat();
                Some((*tokens.get(left)?, *tokens.get(right)?, *tokens.get(whole.as_str())?))
            });
            let Some((left, right, whole)) = parts else {
                return Err(format!("`{text}` as merge {rank}"));
            };
            let rank = u32::try_from(rank).map_err(|error| error.to_string())?;
            all.push(((left, right), (rank, whole)));
        }
        all.sort_unstable();
        all.dedup_by_key(|(pair, _)| *pair);
        Ok(Bpe { bytes, merges: all })
    }

    fn merge(&self, left: u32, right: u32) -> Option<(u32, u32)> {
        let at = self.merges.binary_search_by_key(&(left, right), |(pair, _)| *pair).ok()?;
        Some(self.merges[at].1)
    }

    /// Adds the tokens of a piece. Bytes without a token are left out.
    pub(super) fn encode(&self, piece: &str, into: &mut Vec<u32>) {
        let tokens: Vec<u32> = piece.bytes().filter_map(|byte| self.bytes[usize::from(byte)]).collect();
        let symbol = |(at, token): (usize, &u32)| Symbol {
            token: *token,
            before: at.checked_sub(1).unwrap_or(NONE),
            after: if at + 1 < tokens.len() { at + 1 } else { NONE },
            merged: false,
        };
        let mut symbols: Vec<Symbol> = tokens.iter().enumerate().map(symbol).collect();
        let mut queue = BinaryHeap::new();
        let offer = |queue: &mut BinaryHeap<_>, symbols: &[Symbol], left: usize| {
            let Some(first) = symbols.get(left) else { return };
            let Some(second) = symbols.get(first.after) else { return };
            if let Some((rank, whole)) = self.merge(first.token, second.token) {
                queue.push(Reverse((rank, left, first.token, second.token, whole)));
            }
        };
        (0..symbols.len()).for_each(|left| offer(&mut queue, &symbols, left));
        while let Some(Reverse((_, left, first, second, whole))) = queue.pop() {
            let right = symbols[left].after;
            // What was offered may have changed since.
            let stands = !symbols[left].merged && symbols[left].token == first;
            if !stands || symbols.get(right).is_none_or(|symbol| symbol.token != second) {
                continue;
            }
            let after = symbols[right].after;
            symbols[right].merged = true;
            symbols[left].token = whole;
            symbols[left].after = after;
            if let Some(next) = symbols.get_mut(after) {
                next.before = left;
            }
            let before = symbols[left].before;
            offer(&mut queue, &symbols, before);
            offer(&mut queue, &symbols, left);
        }
        into.extend(symbols.iter().filter(|symbol| !symbol.merged).map(|symbol| symbol.token));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn bpe(tokens: &[&str], merges: &[&str]) -> Result<Bpe, String> {
        let tokens = tokens.iter().enumerate().map(|(id, text)| (*text, id as u32)).collect();
        Bpe::new(&tokens, merges.iter().map(|merge| Some(*merge)))
    }

    fn encoded(bpe: &Bpe, text: &str) -> Vec<u32> {
        let mut tokens = vec![];
        bpe.encode(text, &mut tokens);
        tokens
    }

    #[test]
    fn the_lowest_rank_merges_first_and_of_equal_ones_the_leftmost() {
        let bpe = bpe(&["a", "b", "c", "ab", "bc", "abc", "aa"], &["b c", "a b", "ab c", "a a"]).unwrap();
        // b c comes before a b, and there is no merge of a and bc.
        assert_eq!(encoded(&bpe, "abc"), [0, 4]);
        assert_eq!(encoded(&bpe, "ababc"), [3, 0, 4]);
        assert_eq!(encoded(&bpe, "aaa"), [6, 0]);
        assert_eq!(encoded(&bpe, "aaaab"), [6, 0, 3]);
        assert_eq!(encoded(&bpe, ""), [0; 0]);
    }

    #[test]
    fn bytes_without_a_token_are_left_out() {
        let bpe = bpe(&["a", "b", "ab", "Ġ"], &["a b"]).unwrap();
        assert_eq!(encoded(&bpe, "a b"), [0, 3, 1]);
        assert_eq!(encoded(&bpe, "axb"), [2]);
        assert_eq!(encoded(&bpe, "é"), [0; 0]);
    }

    #[test]
    fn merges_of_what_is_no_token_are_refused() {
        for merge in ["a c", "c a", "b a", "ab", ""] {
            assert!(bpe(&["a", "b", "ab"], &["a b", merge]).unwrap_err().contains("as merge 1"), "{merge}");
        }
        assert!(Bpe::new(&BTreeMap::new(), [None].into_iter()).is_err());
    }

    #[test]
    fn long_pieces_take_no_square_of_their_length() {
        let bpe = bpe(&["a", "aa", "aaaa"], &["a a", "aa aa"]).unwrap();
        // A million bytes by rescanning for each merge would be 10¹² steps.
        let tokens = encoded(&bpe, &"a".repeat(1_000_003));
        assert_eq!((tokens.len(), &tokens[249_998..]), (250_002, &[2, 2, 1, 0][..]));
    }
}
