//! What rustc does with the two calls of `model!`, as far as it matters: follows chains, keeps the macros of items, and
//! waits for those that come later.

use std::collections::BTreeMap;

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::quote;

use crate::pipeline::{expand, expand_item};
use crate::watch::Watch;

/// Invocations that can name each other's items.
#[derive(Default)]
pub struct Expander {
    /// Payloads by path.
    macros: BTreeMap<String, TokenStream>,
    waiting: Vec<Chain>,
    /// What all of it became, in order.
    pub tokens: TokenStream,
    /// What was asked to be shown.
    pub dumps: Vec<String>,
    wanted: String,
    passed: Option<Box<dyn FnMut(&'static str)>>,
}

/// `path ! { input }`
struct Chain {
    module: String,
    path: String,
    input: TokenStream,
}

impl Expander {
    /// One invocation alone.
    pub fn of(text: &str, wanted: &str) -> Expander {
        let mut expander = Expander { wanted: wanted.into(), ..Expander::default() };
        expander.module("crate", text);
        expander
    }

    /// One invocation alone; calls `passed` with each stage that is through, `declare` for all of the first call.
    pub fn watched(text: &str, passed: Box<dyn FnMut(&'static str)>) -> Expander {
        let mut expander = Expander { passed: Some(passed), ..Expander::default() };
        expander.module("crate", text);
        expander
    }

    /// Adds what another version of the compiler may have made.
    pub fn provide(&mut self, path: &str, payload: &str) {
        self.macros.insert(path.into(), payload.parse().unwrap_or_default());
    }

    /// Adds an invocation, and follows all chains as far as they go.
    pub fn module(&mut self, module: &str, text: &str) {
        let tokens = expand(text.parse().unwrap_or_default());
        if let Some(passed) = &mut self.passed {
            passed("declare");
        }
        self.take(module, tokens);
        while let Some(at) = self.waiting.iter().position(|chain| self.is_known(&chain.path)) {
            let Chain { module, path, input } = self.waiting.remove(at);
            match self.macros.get(&path) {
                None => {
                    let mut watch = Watch::new(&self.wanted);
                    if let Some(passed) = &mut self.passed {
                        watch = watch.calling(passed);
                    }
                    let tokens = expand_item(input, &mut watch);
                    self.dumps.extend(watch.texts);
                    self.take(&module, tokens);
                }
                Some(payload) => {
                    let mut trees = input.into_iter();
                    let next: TokenStream = match trees.next() {
                        Some(TokenTree::Group(group)) => group.stream(),
                        _ => unreachable!("a chain names what comes next"),
                    };
                    let rest: TokenStream = trees.collect();
                    let call = quote!(#next ! { #rest { #payload } });
                    self.take(&module, call);
                }
            }
        }
    }

    /// The paths that lead nowhere so far.
    pub fn missing(&self) -> Vec<&str> {
        self.waiting.iter().map(|chain| chain.path.as_str()).collect()
    }

    /// The payload of an item, as text.
    pub fn payload(&self, path: &str) -> String {
        self.macros.get(path).map(ToString::to_string).unwrap_or_default()
    }

    /// The messages of all `compile_error!`, in order.
    pub fn errors(&self) -> Vec<String> {
        let trees: Vec<TokenTree> = self.tokens.clone().into_iter().collect();
        let errors = trees.windows(3).filter_map(|three| match three {
            [TokenTree::Ident(name), TokenTree::Punct(_), TokenTree::Group(group)] if name == "compile_error" => {
                let text = group.stream().to_string();
                Some(text.trim_matches('"').replace("\\n", "\n").replace("\\\"", "\""))
            }
            _ => None,
        });
        errors.collect()
    }

    fn is_known(&self, path: &str) -> bool {
        path.ends_with("::__item") || self.macros.contains_key(path)
    }

    /// Takes chains and macros out of what one call made.
    fn take(&mut self, module: &str, tokens: TokenStream) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let (mut at, mut path, mut start) = (0, String::new(), 0);
        while at < trees.len() {
            match (&trees[at], trees.get(at + 1)) {
                (TokenTree::Ident(word), Some(TokenTree::Punct(_))) if word == "macro_rules" => {
                    if let (Some(TokenTree::Ident(_)), Some(TokenTree::Group(rules))) =
                        (trees.get(at + 2), trees.get(at + 3))
                    {
                        let name = used_as(&trees[at + 4..]);
                        self.macros.insert(format!("{module}::{name}"), payload(rules));
                        // Their names depend on how often text was parsed before.
                        let used = trees[at..]
                            .iter()
                            .position(|tree| matches!(tree, TokenTree::Punct(p) if p.as_char() == ';'));
                        at += used.map_or(4, |end| end + 1);
                        (path, start) = (String::new(), at);
                        continue;
                    }
                }
                (TokenTree::Punct(punct), Some(TokenTree::Group(input))) if punct.as_char() == '!' => {
                    if !path.is_empty() && !path.ends_with("compile_error") {
                        let input = input.stream();
                        self.waiting.push(Chain { module: module.into(), path: std::mem::take(&mut path), input });
                    } else {
                        self.tokens.extend(trees[start..at + 2].iter().cloned());
                    }
                    at += 2;
                    (path, start) = (String::new(), at);
                    continue;
                }
                _ => {}
            }
            let is_path = match &trees[at] {
                TokenTree::Ident(word) => word == "crate" || path.is_empty() || path.ends_with("::"),
                TokenTree::Punct(punct) => punct.as_char() == ':',
                _ => false,
            };
            if !is_path || matches!(trees[at], TokenTree::Ident(_)) && !path.ends_with(':') {
                self.tokens.extend(trees[start..at].iter().cloned());
                (path, start) = (String::new(), at);
            }
            match &trees[at] {
                TokenTree::Ident(word) => path += &word.to_string(),
                TokenTree::Punct(punct) if punct.as_char() == ':' => path.push(':'),
                _ => {
                    self.tokens.extend(trees[start..=at].iter().cloned());
                    start = at + 1;
                }
            }
            at += 1;
        }
        self.tokens.extend(trees[start.min(trees.len())..].iter().cloned());
    }
}

/// The name in `use macro as Name;`.
fn used_as(trees: &[TokenTree]) -> String {
    let mut words = trees.iter().filter_map(|tree| match tree {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    });
    words.by_ref().find(|word| word == "as");
    words.next().unwrap_or_default()
}

/// What the first rule of an item's macro appends: the last braces of the braces behind `!`.
fn payload(rules: &Group) -> TokenStream {
    let braces = |stream: TokenStream, last: bool| {
        let mut groups = stream.into_iter().filter_map(|tree| match tree {
            TokenTree::Group(group) if group.delimiter() == proc_macro2::Delimiter::Brace => Some(group.stream()),
            _ => None,
        });
        (if last { groups.last() } else { groups.next() }).unwrap_or_default()
    };
    braces(braces(braces(rules.stream(), false), true), true)
}
