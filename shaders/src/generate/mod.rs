//! From kernel descriptions to WGSL.
//!
//! In comes a launch: kernels with places and shapes. Out come variants of it: texts, bindings, words and grids. A text
//! depends on structure (template, programs, types, layouts, alignment); sizes are words, and count only for the form of
//! a product (contract/table.rs) and where its sum is known to end with a whole turn. Workgroups of the members follow
//! each other in one dispatch where all have one workgroup size, else each member has its own.

mod column_sum;
mod concat;
mod contract;
mod copy;
mod gather;
mod launch;
mod passes;
mod piece;
mod pointwise;
mod rows;
mod scan;
mod scatter;
mod space;
mod text;
mod validate;

use std::collections::BTreeSet;
use std::fmt;

use crate::dim::{Dim, Symbols, product};
use crate::kernel::Kernel;
use crate::schedule::{Condition, Dispatch, Member, Variant};

use contract::Choosing;
pub use contract::{Form, Tile, Vector};
use launch::{Body, Launch};
pub use text::Texts;
pub use validate::validate;

/// Bytes of workgroup memory that every device has.
const BASELINE: u32 = 16 * 1024;

/// Why a launch has no text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsupported {
    /// What the templates lack.
    pub what: String,
}

impl Unsupported {
    fn new(what: impl Into<String>) -> Unsupported {
        Unsupported { what: what.into() }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no kernel template covers {}", self.what)
    }
}

impl std::error::Error for Unsupported {}

/// One way to run a member.
#[derive(Clone, PartialEq, Debug)]
enum Choice {
    Pointwise,
    Rows { lanes: u32 },
    ColumnSum,
    Copy,
    Gather,
    ScatterAdd,
    Scan,
    Concat,
    Contract(Form),
}

/// All ways to run a launch, best first; the last has [`Condition::Always`].
pub fn variants(members: &[Member], symbols: &mut Symbols, texts: &mut Texts) -> Result<Vec<Variant>, Unsupported> {
    let mut products: Vec<Option<Choosing>> = vec![];
    for (number, member) in members.iter().enumerate() {
        let Kernel::Contract(contract) = &member.kernel else {
            products.push(None);
            continue;
        };
        let (rows, columns) = contract::sizes(&mut Launch::new(members, &[number], BTreeSet::new()), contract)?;
        products.push(Some(Choosing { rows, columns, results: product(&member.shape) }));
    }
    let sum = |of: fn(&Choosing) -> &Dim| products.iter().flatten().fold(Dim::from(0), |sum, one| &sum + of(one));
    let (columns, results) = (sum(|one| &one.columns), sum(|one| &one.results));
    let mut choices = vec![];
    for (member, sizes) in products.into_iter().enumerate() {
        choices.push(match sizes {
            Some(Choosing { rows, .. }) => {
                let sizes = Choosing { rows, columns: columns.clone(), results: results.clone() };
                contract::choose(&sizes).into_iter().map(|(when, form)| (when, Choice::Contract(form))).collect()
            }
            None => ways(members, member)?,
        });
    }
    let mut conditions: Vec<&Condition> = vec![];
    for (condition, _) in choices.iter().flatten().filter(|(condition, _)| *condition != Condition::Always) {
        if !conditions.contains(&condition) {
            conditions.push(condition);
        }
    }
    conditions.push(&Condition::Always);
    let mut variants = vec![];
    for condition in conditions {
        // A member takes its own way under the condition, else the one that it may always take.
        let chosen = choices.iter().map(|ways| {
            let own = ways.iter().find(|(own, _)| own == condition);
            own.or(ways.last())
                .map(|(_, choice)| choice.clone())
                .ok_or_else(|| Unsupported::new("a member without a way"))
        });
        let chosen = chosen.collect::<Result<Vec<_>, _>>()?;
        let mut bytes = 0;
        let dispatches = dispatches(members, &chosen, symbols, texts, asks_for_memory(condition), &mut bytes)?;
        let condition = with_memory(condition, bytes);
        if condition == Condition::Always && bytes > BASELINE {
            return Err(Unsupported::new("a launch beyond the workgroup memory that every device has"));
        }
        variants.push(Variant { condition, dispatches });
    }
    Ok(variants)
}

/// Whether a condition lets a variant take more workgroup memory than every device has.
fn asks_for_memory(condition: &Condition) -> bool {
    match condition {
        Condition::WorkgroupMemory(_) => true,
        Condition::All(all) => all.iter().any(asks_for_memory),
        Condition::Always | Condition::AtMost(..) => false,
    }
}

/// The condition with the bytes that turned out to be needed.
fn with_memory(condition: &Condition, bytes: u32) -> Condition {
    match condition {
        Condition::WorkgroupMemory(_) => Condition::WorkgroupMemory(bytes),
        Condition::All(all) if asks_for_memory(condition) => Condition::All(
            all.iter().map(|one| if asks_for_memory(one) { with_memory(one, bytes) } else { one.clone() }).collect(),
        ),
        Condition::AtMost(..) | Condition::All(_) if bytes > BASELINE => {
            Condition::All(vec![condition.clone(), Condition::WorkgroupMemory(bytes)])
        }
        Condition::Always | Condition::AtMost(..) | Condition::All(_) => condition.clone(),
    }
}

/// The ways of one member that is no product, with their conditions.
fn ways(members: &[Member], member: usize) -> Result<Vec<(Condition, Choice)>, Unsupported> {
    let always = |choice| vec![(Condition::Always, choice)];
    Ok(match &members[member].kernel {
        Kernel::Rows(prog) if prog.reduces_rows() => {
            let length = rows::lengths(prog, &Launch::new(members, &[member], BTreeSet::new()))?;
            let either = [Choice::Rows { lanes: rows::SHORT }, Choice::Rows { lanes: rows::LONG }];
            split(length, rows::LONGEST_SHORT, either)
        }
        Kernel::Rows(_) => always(Choice::Pointwise),
        Kernel::ColumnSum(_) => always(Choice::ColumnSum),
        Kernel::Copy(_) => always(Choice::Copy),
        Kernel::Gather => always(Choice::Gather),
        Kernel::ScatterAdd(_) => always(Choice::ScatterAdd),
        Kernel::Scan(_) => always(Choice::Scan),
        Kernel::Concat(_) => always(Choice::Concat),
        Kernel::Contract(_) => unreachable!("the table chooses for products"),
    })
}

/// The dispatches of products that all take one form, whatever the table says, and the bytes of workgroup memory that
/// these need: for measurements and tests.
pub fn dispatches_as(
    members: &[Member],
    form: Form,
    symbols: &mut Symbols,
    texts: &mut Texts,
) -> Result<(Vec<Dispatch>, u32), Unsupported> {
    if members.iter().any(|member| !matches!(member.kernel, Kernel::Contract(_))) {
        return Err(Unsupported::new("the form of a product for what is none"));
    }
    let mut bytes = 0;
    let chosen = vec![Choice::Contract(form); members.len()];
    let dispatches = dispatches(members, &chosen, symbols, texts, true, &mut bytes)?;
    Ok((dispatches, bytes))
}

/// The first way where a size is at most `most`, else the second; only one where the size is a number. Bounds decide
/// nothing, so that a generous one changes no text.
fn split(size: Dim, most: i64, [small, large]: [Choice; 2]) -> Vec<(Condition, Choice)> {
    match size.constant() {
        Some(size) if size <= most => vec![(Condition::Always, small)],
        Some(_) => vec![(Condition::Always, large)],
        None => vec![(Condition::AtMost(size, most), small), (Condition::Always, large)],
    }
}

/// One dispatch for all, else one for each member. Only a large one may take more workgroup memory than every device
/// has.
fn dispatches(
    members: &[Member],
    chosen: &[Choice],
    symbols: &mut Symbols,
    texts: &mut Texts,
    may_be_large: bool,
    bytes: &mut u32,
) -> Result<Vec<Dispatch>, Unsupported> {
    let all: Vec<usize> = (0..members.len()).collect();
    let (mut sketch, mut needed) = (texts.clone(), 0);
    if members.len() > 1
        && let Some(joint) = dispatch(members, &all, chosen, symbols, &mut sketch, &mut needed).ok().flatten()
        && (needed <= BASELINE || may_be_large)
    {
        (*texts, *bytes) = (sketch, needed);
        return Ok(vec![joint]);
    }
    let mut dispatches = vec![];
    for (member, choice) in chosen.iter().enumerate() {
        let own = dispatch(members, &[member], std::slice::from_ref(choice), symbols, texts, bytes)?;
        dispatches.extend(own);
    }
    Ok(dispatches)
}

/// A dispatch of some members; none where their workgroups differ in size or they need too much memory together.
fn dispatch(
    members: &[Member],
    numbers: &[usize],
    chosen: &[Choice],
    symbols: &mut Symbols,
    texts: &mut Texts,
    bytes: &mut u32,
) -> Result<Option<Dispatch>, Unsupported> {
    let mut first = Launch::new(members, numbers, BTreeSet::new());
    let sketched = bodies(&mut first, numbers, chosen, symbols)?;
    if sketched.iter().any(|body| body.threads != sketched[0].threads) {
        return Ok(None);
    }
    let mut launch = Launch::new(members, numbers, first.wide());
    let bodies = bodies(&mut launch, numbers, chosen, symbols)?;
    let shared = launch.shared_bytes();
    let dispatch = launch.finish(&bodies, |text| texts.intern(text))?;
    *bytes = shared.max(*bytes);
    Ok(Some(dispatch))
}

fn bodies(
    launch: &mut Launch<'_>,
    numbers: &[usize],
    chosen: &[Choice],
    symbols: &mut Symbols,
) -> Result<Vec<Body>, Unsupported> {
    let mut bodies = vec![];
    for (member, choice) in numbers.iter().zip(chosen) {
        launch.enter(*member);
        bodies.push(body(launch, choice, symbols)?);
    }
    Ok(bodies)
}

fn body(launch: &mut Launch<'_>, choice: &Choice, symbols: &mut Symbols) -> Result<Body, Unsupported> {
    match (&launch.member().kernel, choice) {
        (Kernel::Rows(prog), Choice::Pointwise) => pointwise::body(launch, prog, symbols),
        (Kernel::Rows(prog), Choice::Rows { lanes }) => rows::body(launch, prog, *lanes, symbols),
        (Kernel::ColumnSum(prog), Choice::ColumnSum) => column_sum::body(launch, prog, symbols),
        (Kernel::Contract(contract), Choice::Contract(form)) => contract::body(launch, contract, *form, symbols),
        (Kernel::Copy(copy), Choice::Copy) => copy::body(launch, copy, symbols),
        (Kernel::Gather, Choice::Gather) => gather::body(launch, symbols),
        (Kernel::ScatterAdd(_), Choice::ScatterAdd) => scatter::body(launch, symbols),
        (Kernel::Scan(scan), Choice::Scan) => scan::body(launch, *scan),
        (Kernel::Concat(_), Choice::Concat) => concat::body(launch, symbols),
        _ => unreachable!("choices are made for the kernel that they are taken with"),
    }
}
