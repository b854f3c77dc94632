//! The tree to typed graphs: names, constants, dimensions, shapes, element types.
//!
//! [`declare`] reports what the text of an invocation shows: names, cycles, arities, and what is not available yet.
//! [`resolve_model`] builds one graph for each entry of a model, with functions and layers inlined where they are called
//! and each loop over layers as one `Repeat`; it reports everything that only values show, at the user's token, in the
//! user's names. What failed becomes poison, whose users stay silent, so one mistake is one error. Where nothing was
//! reported the graphs are verified and complete.

mod arguments;
mod arithmetic;
mod body;
mod builtin_layers;
mod call;
mod declare;
mod describe;
mod entry;
mod expression;
mod functions;
mod index;
mod initialisers;
mod instance;
mod items;
mod loops;
mod mentions;
mod moving;
mod names;
mod tensors;
mod types;
mod update;
mod value;
mod writes;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use meganeura_shaders::dim::{Dim, Symbols};
use meganeura_shaders::schedule::Model;
use proc_macro2::{Span, TokenStream};
use std::rc::Rc;

pub use declare::{check, declare};
pub use items::Items;

use crate::errors::{At, Errors, Inside};
use crate::ir::{Graph, Origin, Served, SpanId, Type, ValueId};
use crate::syntax::{Element, Expr, Function, Item, Statement, TypeKind};
use value::{Layer, LoopId, Row, Value};

/// A model whose every entry is a graph.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Its name and tensors.
    pub model: Model,
    /// Its entries, in order of declaration.
    pub entries: Vec<Entry>,
    /// The places that origins of nodes refer to.
    pub spans: Vec<At>,
}

/// One `pub fn` of a model.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Where its name stands.
    pub at: At,
    /// Its doc attributes as written.
    pub docs: TokenStream,
    /// The forward computation; its outputs are the results, then what is tapped.
    pub graph: Graph,
    /// What a training step computes before gradients, where that is something else: its outputs hold updates of buffers
    /// as well.
    pub training: Option<Graph>,
    /// Which parameters it trains, where it is a loss.
    pub train: Option<Train>,
    /// What a call passes, in order; argument k is read by the store of that number.
    pub arguments: Vec<Argument>,
    /// What a call gives, in order.
    pub results: Vec<Type>,
}

/// What a loss trains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Train {
    /// The pattern of `#[train(params = "..")]`.
    pub params: Option<String>,
    /// The tensors of the model, by index.
    pub tensors: Vec<usize>,
}

/// An argument of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// A bounded scalar: the symbol that stands for it in shapes.
    pub dimension: Option<Dim>,
}

/// One walk over a model: of its members alone, or of an entry.
pub(super) struct Resolver<'a, 'e> {
    items: &'a Items<'a>,
    errors: &'e mut Errors,
    graph: Graph,
    /// Where nodes come from, by `SpanId`; those of earlier entries stay.
    spans: Vec<At>,
    /// Runtime dimensions that this walk knows.
    dimensions: BTreeMap<String, Dim>,
    tensors: Vec<tensors::Tensor>,
    /// Names in files that models do not need.
    ignored: Vec<String>,
    /// Tensors whose names differ in numbers alone.
    alike: BTreeMap<String, Vec<usize>>,
    /// Items that are being instantiated.
    instantiating: Vec<&'a Item>,
    frames: Vec<Frame<'a>>,
    /// Loops that are open, outermost first.
    loops: Vec<OpenLoop>,
    loop_count: u32,
    /// Tensors that were read, by index, and their rows.
    reads: BTreeMap<(usize, Vec<Row>), ValueId>,
    /// Which tensors the entry trains.
    trained: Vec<bool>,
    /// Whether this is what a training step runs.
    training: bool,
    /// Whether a training step differs from a call.
    depends_on_mode: bool,
    /// Assignments to buffers.
    written: Vec<writes::Written>,
    /// Buffers with a new value.
    changed: BTreeSet<usize>,
    /// Rows of buffers that open loops have written.
    stacked: Vec<(LoopId, writes::Rows)>,
    /// Values that a traced call gives.
    taps: Vec<functions::taps::Tap>,
    /// Runtime dimensions whose absence was reported.
    unbound: BTreeSet<String>,
    /// Members whose tensors' names were reported, by line and column.
    collided: BTreeSet<(usize, usize)>,
    depth: u32,
    calls: u32,
    layers: u32,
    /// Random numbers of the entry so far, by the places that make them.
    places: u32,
}

/// A loop whose body is being resolved; the graph has one open block for each.
struct OpenLoop {
    id: LoopId,
    /// Its index in the graph, from 0.
    index: ValueId,
    count: Dim,
}

/// A function, or the members of an item, while its names mean something.
struct Frame<'a> {
    layer: Layer<'a>,
    /// Empty while members are instantiated.
    function: &'a str,
    /// The function's `u32` scalars; in its types those stand for themselves.
    scalars: Vec<&'a str>,
    locals: Vec<Local<'a>>,
    /// Sizes that the call has bound.
    sizes: BTreeMap<&'a str, Dim>,
    /// What `..` stands for.
    leading: Option<Vec<Dim>>,
    site: Option<Site>,
    statement: u32,
    stated: Stated<'a>,
    /// The statement in words, once a node served it.
    served: Option<Rc<Served>>,
}

/// The statement that a frame is at.
#[derive(Clone, Copy)]
enum Stated<'a> {
    Nothing,
    Statement(&'a Statement),
    /// The value of a block.
    Tail(&'a Expr),
}

/// Where mistakes are shown that stand in no text of this invocation.
#[derive(Clone, Debug)]
enum Site {
    /// All at the use: the body is built in.
    Whole(At),
    /// At the member that reaches the layer, with the place in the layer.
    Imported { member: Span, layer: Rc<str> },
}

impl Site {
    fn at(&self, span: Span) -> At {
        match self {
            Site::Whole(at) => at.clone(),
            Site::Imported { member, layer } => {
                At { span: *member, inside: Some(Inside { layer: layer.clone(), span }) }
            }
        }
    }
}

impl<'a> Frame<'a> {
    fn new(layer: Layer<'a>, function: Option<&'a Function>, site: Option<Site>) -> Frame<'a> {
        let parameters = function.iter().flat_map(|function| &function.parameters);
        let scalars = parameters.filter(|parameter| matches!(parameter.ty.kind, TypeKind::Scalar(Element::U32)));
        Frame {
            layer,
            function: function.map_or("", |function| &function.name.name),
            scalars: scalars.map(|parameter| parameter.name.name.as_str()).collect(),
            locals: vec![],
            sizes: BTreeMap::new(),
            leading: None,
            site,
            statement: 0,
            stated: Stated::Nothing,
            served: None,
        }
    }

    /// Nodes serve this statement from now on.
    fn state(&mut self, number: u32, stated: Stated<'a>) {
        (self.statement, self.stated, self.served) = (number, stated, None);
    }
}

/// A name inside a function.
struct Local<'a> {
    name: &'a str,
    value: Value<'a>,
    kind: LocalKind,
    /// The last assignment.
    assigned: Option<Span>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LocalKind {
    Parameter,
    Fixed,
    Mutable,
}

/// Whether a layer of that name is built in.
pub fn is_builtin(name: &str) -> bool {
    builtin_layers::is_one(name)
}

/// The graphs of a model; none where it has a mistake.
pub fn resolve_model(item: &Item, items: &Items<'_>, errors: &mut Errors) -> Option<Resolved> {
    entry::resolve(item, items, errors)
}

impl<'a, 'e> Resolver<'a, 'e> {
    fn new(items: &'a Items<'a>, errors: &'e mut Errors, symbols: Symbols, spans: Vec<At>) -> Self {
        Resolver {
            items,
            errors,
            graph: Graph::new(symbols),
            spans,
            dimensions: BTreeMap::new(),
            tensors: vec![],
            ignored: vec![],
            alike: BTreeMap::new(),
            instantiating: vec![],
            frames: vec![],
            loops: vec![],
            loop_count: 0,
            reads: BTreeMap::new(),
            trained: vec![],
            training: false,
            depends_on_mode: false,
            written: vec![],
            changed: BTreeSet::new(),
            stacked: vec![],
            taps: vec![],
            unbound: BTreeSet::new(),
            collided: BTreeSet::new(),
            depth: 0,
            calls: 0,
            layers: 0,
            places: 0,
        }
    }

    fn frame(&self) -> &Frame<'a> {
        let Some(frame) = self.frames.last() else { unreachable!("names have a meaning inside a frame only") };
        frame
    }

    fn frame_mut(&mut self) -> &mut Frame<'a> {
        let Some(frame) = self.frames.last_mut() else { unreachable!("names have a meaning inside a frame only") };
        frame
    }

    /// A mistake of the user, at the user's text.
    fn report(&mut self, span: Span, message: impl Into<String>) {
        let at = self.place(span);
        self.errors.push(at, message);
    }

    /// The place in the user's text that a place in the current body serves.
    fn place(&self, span: Span) -> At {
        match self.frames.last().and_then(|frame| frame.site.as_ref()) {
            Some(site) => site.at(span),
            None => span.into(),
        }
    }

    /// New nodes come from here.
    fn at(&mut self, span: Span) {
        let user = self.frames.iter().rposition(|frame| !matches!(frame.site, Some(Site::Whole(_))));
        let statement = user.map_or(0, |user| self.frames[user].statement);
        let served = user.and_then(|user| self.served(user));
        let path = self.frame().layer.instance.member_path.clone();
        let place = self.place(span);
        self.spans.push(place);
        let span = Some(SpanId(self.spans.len() as u32 - 1));
        self.graph.origin = Origin { path, statement, span, served, ..Origin::default() };
    }

    /// The statement that a frame is at, in words.
    fn served(&mut self, frame: usize) -> Option<Rc<Served>> {
        let Frame { layer, function, site, statement, stated, served, .. } = &mut self.frames[frame];
        if let Some(known) = served {
            return Some(known.clone());
        }
        let span = match stated {
            Stated::Nothing => return None,
            Stated::Statement(statement) => statement.span,
            Stated::Tail(value) => value.span,
        };
        self.spans.push(site.as_ref().map_or_else(|| span.into(), |site| site.at(span)));
        let made = Rc::new(Served {
            path: layer.instance.member_path.clone(),
            function: function.to_string(),
            number: *statement,
            text: describe::statement(*stated),
            span: Some(SpanId(self.spans.len() as u32 - 1)),
        });
        Some(served.insert(made).clone())
    }

    /// Without reports: what fails here is reported elsewhere.
    fn silently<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let kept = std::mem::take(self.errors);
        let value = run(self);
        *self.errors = kept;
        value
    }

    /// Reports and gives poison.
    fn fail(&mut self, span: Span, message: impl Into<String>) -> Value<'a> {
        self.report(span, message);
        Value::Poison
    }
}

/// The second line of a message: a value with its type.
fn with_value(message: String, name: &str, ty: &str) -> String {
    format!("{message}\n       {name}: {ty}")
}

/// How messages call an argument: its text, or the parameter's name where that is long.
fn argument_name(expr: &Expr, parameter: &str) -> String {
    describe::short(expr).unwrap_or_else(|| parameter.to_string())
}
