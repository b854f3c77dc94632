//! Whatever the tokens are, the parser ends without a panic, and what is left can be walked.

use super::first_page::{DECODER, MLP};
use super::show;
use crate::errors::Errors;
use crate::syntax::{ItemBody, MemberKind, parse};
use proc_macro2::{Delimiter, Group, LineColumn, TokenStream, TokenTree};

/// xorshift: the same mutations in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap()
    }
}

fn pool() -> Vec<TokenTree> {
    let text = "if else for in let mut fn pub use layer model param state buffer step as self _ true x f32 Linear
        0 1 1.5 1u8 \"s\" 'c' , ; : :: . .. ..= = == < <= > >= + - * / @ & | ! # $ ? -> ** () [] {} (x) [0] {x}
        #[train] [..] <a, b> (self) {let x = ;} r#if";
    text.parse::<TokenStream>().unwrap().into_iter().collect()
}

/// Changes one place somewhere inside.
fn mutate(stream: TokenStream, random: &mut Random, pool: &[TokenTree]) -> TokenStream {
    let mut trees: Vec<_> = stream.into_iter().collect();
    let groups: Vec<_> = (0..trees.len()).filter(|at| matches!(trees[*at], TokenTree::Group(_))).collect();
    if !groups.is_empty() && random.below(4) > 0 {
        let at = groups[random.below(groups.len())];
        if let TokenTree::Group(group) = &trees[at] {
            let inner = mutate(group.stream(), random, pool);
            trees[at] = TokenTree::Group(Group::new(group.delimiter(), inner));
        }
        return trees.into_iter().collect();
    }
    let at = random.below(trees.len());
    let new = pool[random.below(pool.len())].clone();
    match random.below(6) {
        _ if trees.is_empty() => trees.push(new),
        0 => drop(trees.remove(at)),
        1 => trees[at] = new,
        2 => trees.insert(at, new),
        3 => {
            let other = random.below(trees.len());
            trees.swap(at, other);
        }
        4 => trees.insert(at, trees[random.below(trees.len())].clone()),
        _ => {
            let end = at + random.below(trees.len() - at) + 1;
            let inner: TokenStream = trees.drain(at..end).collect();
            let delimiter = [Delimiter::None, Delimiter::Parenthesis, Delimiter::Brace, Delimiter::Bracket];
            trees.insert(at, TokenTree::Group(Group::new(delimiter[random.below(4)], inner)));
        }
    }
    trees.into_iter().collect()
}

#[test]
fn twenty_thousand_mutations_of_the_first_page_end_without_a_panic() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let pool = pool();
    let texts: [TokenStream; 2] = [MLP.parse().unwrap(), DECODER.parse().unwrap()];
    let (mut broken, mut names) = (0, 0);
    for round in 0..20_000 {
        let mut stream = texts[usize::from(round % 4 == 0)].clone();
        for _ in 0..=random.below(3) {
            stream = mutate(stream, &mut random, &pool);
        }
        let mut errors = Errors::new();
        let source = parse(stream, &mut errors);
        broken += usize::from(!errors.is_empty());
        for item in &source.items {
            names += 1;
            let ItemBody::Definition(definition) = &item.body else { continue };
            let shown = show::members(&definition.members);
            let poison = shown.contains("POISON") || !definition.dimensions.complete;
            assert!(!poison || !errors.is_empty(), "poison without an error: {}", item.text);
            for member in &definition.members {
                member.name().map(|name| name.to_token());
                if let MemberKind::Function(function) = &member.kind {
                    function.parameters.iter().for_each(|parameter| drop(parameter.name.to_token()));
                    let poison = show::block(&function.body).contains("POISON");
                    assert!(!poison || item.broken, "poison in a sound item: {}", item.text);
                }
            }
        }
    }
    assert!(broken > 10_000 && broken < 20_000, "{broken} of 20000 mutations are mistakes");
    assert!(names > 20_000, "items survive: {names}");
}

fn size(stream: &TokenStream) -> usize {
    let inner = |tree: TokenTree| match tree {
        TokenTree::Group(group) => 1 + size(&group.stream()),
        _ => 1,
    };
    stream.clone().into_iter().map(inner).sum()
}

/// Everything but the token with this number, whose place is kept.
fn without(stream: &TokenStream, number: &mut usize, dropped: &mut Option<LineColumn>) -> TokenStream {
    let mut kept = vec![];
    for tree in stream.clone() {
        if dropped.is_none() && *number == 0 {
            *dropped = Some(tree.span().start());
            continue;
        }
        *number = number.saturating_sub(1);
        kept.push(match tree {
            TokenTree::Group(group) => {
                let mut new = Group::new(group.delimiter(), without(&group.stream(), number, dropped));
                new.set_span(group.span());
                TokenTree::Group(new)
            }
            tree => tree,
        });
    }
    kept.into_iter().collect()
}

#[test]
fn one_token_too_few_is_one_mistake() {
    let mut counts = [0; 2];
    for text in [MLP, DECODER] {
        let whole: TokenStream = text.parse().unwrap();
        for number in 0..size(&whole) {
            let mut dropped = None;
            let stream = without(&whole, &mut number.clone(), &mut dropped);
            let mut errors = Errors::new();
            parse(stream, &mut errors);
            let found = errors.sorted().len();
            let place = dropped.map(|place| (place.line, place.column + 1));
            assert!(found < 2, "without the token at {place:?}:\n{}", errors.render());
            counts[found] += 1;
        }
    }
    assert!(counts[1] > 3 * counts[0], "{counts:?}");
}
