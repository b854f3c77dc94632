//! The compiler on one screen: tokens of one `model!` in, tokens or errors out.
//!
//! Two calls. [`expand`] takes what the text alone shows and starts a chain for each item (see [`crate::sharing`]);
//! [`expand_item`] is its end, with what the item's imports brought: it hands the item on and compiles it if it is a
//! model. Errors are gathered in one sink and come out together; after the last gate nothing that a user writes can
//! fail. A verifier follows each stage; what it finds is a fault of this compiler and says so.

use std::fmt::Display;

use meganeura_shaders::generate::{Texts, validate, variants};
use meganeura_shaders::schedule::Role;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::quote;

use crate::autodiff::{Policy, differentiate};
use crate::egraph::{self, Memo};
use crate::emit::{self, Compiled, CompiledEntry, Scheduled};
use crate::errors::Errors;
use crate::evaluation::evaluated;
use crate::explain::explain;
use crate::ir::Graph;
use crate::lower::{lower, plain};
use crate::normalise::normalise;
use crate::prune::prune;
use crate::resolve::{self, Items, Resolved};
use crate::sharing::{self, Arrived};
use crate::syntax::{self, Item, ItemKind, Source};
use crate::watch::Watch;
use crate::{diag, schedule, unused};

/// The first call: expands `[$crate] items..`.
pub fn expand(tokens: TokenStream) -> TokenStream {
    let (facade, text) = facade(tokens);
    let mut errors = Errors::new();
    let source = declare(text, &mut errors);
    let types = types(&facade, &source);
    let chains = sharing::chains(&facade, &source);
    let (unused, names) = match errors.is_empty() {
        true => (sharing::unused_imports(&source), unused::bindings(&source)),
        false => Default::default(),
    };
    let errors = errors.to_compile_errors();
    quote!(#errors #types #chains #unused #names)
}

/// The second call, one for each item: expands what its chain has gathered.
pub fn expand_item(tokens: TokenStream, watch: &mut Watch<'_>) -> TokenStream {
    let mut errors = Errors::new();
    let Arrived { facade, source, mut imported } = sharing::arrive(tokens, &mut errors);
    watch.passed("parse");
    let Some(item) = source.items.first() else { return errors.to_compile_errors() };
    let mut items = Items::arrived(&source, &imported);
    let sound = resolve::check(&source, &mut items, &mut errors);
    watch.passed("check");
    let model = compile(item, &items, &mut errors, watch).map(|compiled| {
        let late = items.definition_of(item).filter(|(_, imported)| *imported).map(|(definition, _)| definition);
        emit::planned(&facade, item, late, &compiled)
    });
    let carrier = sharing::units(&source.items, &sound, &mut imported).map(|id| sharing::carrier(item, &id, &imported));
    let errors = errors.to_compile_errors();
    let tokens = quote!(#errors #model #carrier);
    watch.passed("emit");
    tokens
}

/// Parses one invocation and reports what its text shows: form, names, arity, cycles.
pub fn declare(tokens: TokenStream, errors: &mut Errors) -> Source {
    let source = syntax::parse(tokens, errors);
    resolve::declare(&source, &Items::new(&source), errors);
    source
}

/// The types of the models with their methods.
fn types(facade: &TokenStream, source: &Source) -> TokenStream {
    let items = Items::new(source);
    let models = source.items.iter().filter(|item| item.kind == ItemKind::Model);
    let models = models.filter(|item| items.own_item(&item.name.name).is_some_and(|first| std::ptr::eq(first, *item)));
    models
        .map(|item| emit::declared(facade, item, items.definition_of(item).map(|(definition, _)| definition)))
        .collect()
}

/// One model: resolve, differentiate, and every entry to its schedule; nothing if it has mistakes.
pub fn compile(item: &Item, items: &Items<'_>, errors: &mut Errors, watch: &mut Watch<'_>) -> Option<Compiled> {
    if item.kind == ItemKind::Layer {
        return None;
    }
    let before = errors.count();
    let resolved = resolve::resolve_model(item, items, errors)?;
    watch.passed("resolve");
    let trained = trained(&resolved, errors);
    watch.passed("differentiate");
    if errors.count() > before {
        return None;
    }
    watch.places = resolved.spans;
    let mut memo = Memo::default();
    let entries = resolved.entries.iter().zip(trained).map(|(entry, trained)| {
        let call = with_outputs(&entry.graph, |role| !matches!(role, Role::Tap(_)));
        let traces = entry.graph.outputs.iter().any(|output| matches!(output.role, Role::Tap(_)));
        let mut scheduled = |graph: &Graph, name: &str| scheduled(graph, name, &mut memo, watch);
        let call = scheduled(&evaluated(&call), &entry.name)?;
        let trace = traces.then(|| scheduled(&evaluated(&entry.graph), &format!("{}, traced", entry.name)));
        let train = trained.map(|graph| scheduled(&graph, &format!("{}, training", entry.name)));
        Ok(CompiledEntry { name: entry.name.clone(), call, trace: trace.transpose()?, train: train.transpose()? })
    });
    match entries.collect::<Result<_, Fault>>() {
        Ok(entries) => Some(Compiled { model: resolved.model, entries }),
        Err(Fault { stage, message }) => {
            errors.push(item.name.span, diag::fault(&item.name.name, stage, &message));
            None
        }
    }
}

/// The graph of a training step for each entry that is a loss.
fn trained(resolved: &Resolved, errors: &mut Errors) -> Vec<Option<Graph>> {
    let each = resolved.entries.iter().map(|entry| {
        entry.train.as_ref()?;
        let graph = with_outputs(entry.training.as_ref().unwrap_or(&entry.graph), |role| !matches!(role, Role::Tap(_)));
        let loss = graph.outputs.first()?.value;
        let absent = match differentiate(&graph, loss, Policy::Contractions) {
            Ok(graph) => return Some(graph),
            Err(absent) => absent,
        };
        for absent in absent {
            let at = absent.origin.span.and_then(|id| resolved.spans.get(id.index()));
            errors.push(at.unwrap_or(&entry.at).clone(), diag::no_derivative(&absent.reason));
        }
        None
    });
    each.collect()
}

/// The same graph with some of its outputs.
fn with_outputs(graph: &Graph, keep: impl Fn(&Role) -> bool) -> Graph {
    let mut graph = graph.clone();
    graph.outputs.retain(|output| keep(&output.role));
    graph
}

/// A graph to its schedule: prune, normalise, saturate and extract, lower with barriers and memory plan.
pub fn scheduled(graph: &Graph, name: &str, memo: &mut Memo, watch: &mut Watch<'_>) -> Result<Scheduled, Fault> {
    let mut graph = graph.clone();
    prune(&mut graph);
    let graph = stage("prune", graph, Graph::verify)?;
    watch.show("graph", name, || graph.to_string());
    watch.passed("prune");
    let normal = stage("normalise", normalise(&graph), Graph::verify)?;
    watch.passed("normalise");
    let chosen = egraph::choose(&normal, memo).map_err(|limit| Fault::new("saturate", limit))?;
    let chosen = stage("extract", chosen, Graph::verify)?;
    watch.passed("saturate and extract");
    let mut texts = Texts::default();
    let mut ways = |members: &[_], symbols: &mut _| variants(members, symbols, &mut texts).map_err(|e| e.to_string());
    let mut schedule = lower(&chosen, name, &mut ways).map_err(|error| Fault::new("lower", error))?;
    schedule.unfused = plain::steps(&graph);
    let schedule = stage("schedule", schedule, schedule::verify::verify)?;
    watch.passed("lower");
    let explanation = explain(&schedule, &chosen.choices, &|_| None);
    if watch.wants("egraph") {
        let told = explain(&schedule, &chosen.choices, &|span| watch.place(span));
        watch.show("egraph", name, || match egraph::dump(&graph) {
            Ok(classes) => format!("{told}\n{classes}"),
            Err(limit) => limit.to_string(),
        });
    }
    watch.passed("explain");
    watch.show("schedule", name, || schedule.to_string());
    for text in texts.list() {
        watch.show("wgsl", name, || text.clone());
        validate(text).map_err(|error| Fault::new("generate", format!("{error}\n{text}")))?;
    }
    watch.passed("validate");
    Ok(Scheduled { schedule, texts: texts.list().to_vec(), explanation })
}

/// A stage's result, once its verifier has seen it.
fn stage<T>(name: &'static str, made: T, verify: impl FnOnce(&T) -> Result<(), String>) -> Result<T, Fault> {
    verify(&made).map_err(|problem| Fault::new(name, problem))?;
    Ok(made)
}

/// A fault of this compiler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// After which stage it was found.
    pub stage: &'static str,
    /// What is wrong.
    pub message: String,
}

impl Fault {
    fn new(stage: &'static str, message: impl Display) -> Fault {
        Fault { stage, message: message.to_string() }
    }
}

/// The path of the facade in front, and the rest.
fn facade(tokens: TokenStream) -> (TokenStream, TokenStream) {
    let mut tokens = tokens.into_iter();
    match tokens.next() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => (group.stream(), tokens.collect()),
        first => (quote!(::meganeura), first.into_iter().chain(tokens).collect()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::testing::Expander;

    const NET: &str = "pub model Net<hidden = 12, batch in 1..=256> {
        blocks: [Linear<12, 12>; 3],
        head: Linear<hidden, 3>,
        pub fn logits(x: f32[batch, 12]) -> f32[batch, 3] {
            let mut h = x;
            for block in blocks { h = silu(block(h)); }
            head(h)
        }
        #[train]
        pub fn loss(x: f32[batch, 12], label: u32[batch]) -> f32 { cross_entropy(logits(x), label) }
    }";

    const OTHER: &str = "model Other<batch in 1..=7> {
        norm: RmsNorm<5>,
        pub fn run(x: f32[batch, 5]) -> f32[batch, 5] { softmax(norm(x)) }
    }";

    fn expanded(text: &str) -> String {
        Expander::of(text, "").tokens.to_string()
    }

    #[test]
    fn what_a_model_becomes_does_not_depend_on_what_was_expanded_before() {
        let first = expanded(NET);
        assert!(first.contains("struct Net") && !first.contains("compile_error"), "{first}");
        let other = expanded(OTHER);
        assert!(other.contains("struct Other") && !other.contains("compile_error"), "{other}");
        assert_eq!(expanded(NET), first);
        assert_eq!(expanded(OTHER), other);
    }

    #[test]
    fn dumps_show_the_stages_that_were_asked_for_and_change_nothing() {
        let made = Expander::of(NET, "graph, schedule,wgsl,egraph");
        assert_eq!(made.tokens.to_string(), expanded(NET));
        let text = made.dumps.join("\n");
        for part in ["graph of logits", "repeat 3", "egraph of loss, training", "schedule of loss", "@compute"] {
            assert!(text.contains(part), "{part} is not in the dumps");
        }
        assert!(Expander::of(NET, "").dumps.is_empty());
    }

    #[test]
    fn a_model_with_a_mistake_keeps_its_type_and_methods() {
        let text = expanded(&NET.replace("Linear<hidden, 3>", "Linear<hidden, 4>"));
        assert!(
            text.contains("compile_error") && text.contains("pub fn logits") && text.contains("NetTrainer"),
            "{text}"
        );
    }

    #[test]
    fn depth_and_bounds_change_no_text_and_no_number_of_tokens() {
        let texts = |model: &str| {
            let made = Expander::of(model, "wgsl").dumps;
            made.into_iter().map(|dump| dump.split_once('\n').unwrap().1.to_string()).collect::<Vec<_>>()
        };
        let expected = texts(NET);
        assert!(expected.len() > 4);
        assert_eq!(texts(&NET.replace("; 3]", "; 64]")), expected);
        assert_eq!(texts(&NET.replace("1..=256", "1..=4096")), expected);
        let count = |model: &str| Expander::of(model, "").tokens.into_iter().count();
        assert_eq!(count(&NET.replace("; 3]", "; 64]")), count(NET));
    }
}
