//! The contract between compiler and runtime: buffers, steps that bind them, loops of steps, plans of memory.
//!
//! Everything is data. Sizes are polynomials over the symbols of the entry; the runtime evaluates them when the
//! dimensions of a call are known, unrolls the loops while it replays, and decides nothing but which variant of a
//! step its device runs.

use serde::{Deserialize, Serialize};

use crate::dim::{Dim, Env, Shape, Symbols};
use crate::kernel::Kernel;
use crate::prog::DType;

/// An index into [`Schedule::buffers`].
pub type BufferId = usize;
/// An index into [`Schedule::loops`].
pub type LoopId = usize;
/// An index into the shader texts of an entry.
pub type TextId = u32;

/// Bytes of one element in memory.
pub const ELEMENT: i64 = 4;
/// Bindings start at multiples of this many bytes, and so do the rows of arrays with one row an iteration.
pub const ALIGN: i64 = 256;
/// Buffers that a launch may bind: distinct arguments and results, parameters included.
pub const MAX_BINDINGS: usize = 15;
/// Words of the uniform `p`.
pub const MAX_WORDS: usize = 60;

/// How a tensor of a model begins.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Init {
    /// All elements equal.
    Constant(f64),
    /// Uniform between two bounds.
    Uniform(f64, f64),
    /// Normal with mean 0 and this standard deviation.
    Normal(f64),
    /// Uniform in ±gain · √(3 / fan-in) with gain √(2 / (1 + a²)).
    KaimingUniform {
        /// The negative slope of the activation that follows.
        a: f64,
    },
    /// Normal with standard deviation √2 / √fan-in.
    KaimingNormal,
    /// Uniform in ±√(6 / (fan-in + fan-out)).
    XavierUniform,
    /// Normal with standard deviation √(2 / (fan-in + fan-out)).
    XavierNormal,
    /// Of shape `[4, n]`: `base^(-k / n) / 2π` for k below n in four parts whose sum it is, the first three of 7 bits each.
    Turns {
        /// What is raised.
        base: f64,
    },
}

/// A tensor that a model owns: a parameter, or an array of them with one for each iteration of a loop.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tensor {
    /// The dotted path; `{}` stands for each index of the arrays around it, outermost first.
    pub name: String,
    /// Sizes: first one axis for each `{}`, then the shape of one tensor.
    pub shape: Vec<i64>,
    /// How many leading axes count iterations.
    pub loops: usize,
    /// Whether training changes it.
    pub trained: bool,
    /// Whether files hold it; a state lives from call to call and begins anew.
    pub saved: bool,
    /// How it begins.
    pub init: Init,
}

impl Tensor {
    /// The shape of one tensor.
    pub fn one(&self) -> &[i64] {
        &self.shape[self.loops..]
    }

    /// The names of all tensors of the array in the order in which they lie; one of a single tensor.
    pub fn names(&self) -> Vec<String> {
        self.shape[..self.loops].iter().fold(vec![self.name.clone()], |names, count| {
            let each = |name: String| (0..*count).map(move |k| name.replacen("{}", &k.to_string(), 1));
            names.into_iter().flat_map(each).collect()
        })
    }

    /// Bytes from one row of an array to the next; of a single tensor its bytes, rounded up to [`ALIGN`].
    pub fn stride(&self) -> i64 {
        let bytes = self.one().iter().product::<i64>() * ELEMENT;
        (bytes + ALIGN - 1) / ALIGN * ALIGN
    }

    /// Bytes of all rows.
    pub fn bytes(&self) -> i64 {
        self.shape[..self.loops].iter().product::<i64>() * self.stride()
    }
}

/// What a model is apart from its entries.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Its tensors, in order of declaration.
    pub tensors: Vec<Tensor>,
    /// Names in files that it does not need, as patterns in which `*` stands for any text.
    pub ignored: Vec<String>,
}

/// An argument of an entry.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Argument {
    /// Its name in the source.
    pub name: String,
    /// What its elements are.
    pub dtype: DType,
    /// Its sizes.
    pub shape: Shape,
    /// Every element must be below this (labels, token ids).
    pub below: Option<Dim>,
}

/// What a buffer is for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum BufferKind {
    /// Lives in the arena while it is needed; `owner` is the innermost loop that has a new one each iteration.
    Arena {
        /// The loop, if any.
        owner: Option<LoopId>,
    },
    /// Argument k of the entry.
    Argument(usize),
    /// Tensor k of the model.
    Tensor(usize),
    /// What random numbers of the call follow from: the two words of the seed, and the step.
    Random,
    /// Output k of the schedule.
    Output(usize),
}

/// A stretch of memory with a size.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Buffer {
    /// For people.
    pub name: String,
    /// What it is for.
    pub kind: BufferKind,
    /// Its size.
    pub bytes: Dim,
}

/// `(base + loop index) * stride`, with `parity` `((base + loop index) & 1) * stride`, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Added to the index.
    pub base: Dim,
    /// The loop whose index counts; none: the base alone.
    pub index: Option<LoopId>,
    /// Whether two slots alternate.
    pub parity: bool,
    /// Bytes from one slot to the next.
    pub stride: Dim,
}

/// An axis whose elements lie `stride` bytes apart, starting at the `first`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lead {
    /// The index of the first element.
    pub first: Dim,
    /// The number of elements.
    pub count: Dim,
    /// Bytes from one to the next.
    pub stride: Dim,
}

/// Where a value lies: `offset + Σ slots` bytes into a buffer. Its first `lead.len()` axes are padded rows, the rest is
/// dense. Slots and rows go from the outside in, and what one holds ends before the next one of it begins; `offset`
/// stays inside the innermost. So two places differ if slots at the same depth do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The buffer.
    pub buffer: BufferId,
    /// Bytes, a multiple of 4; not always of [`ALIGN`] (a leading slice): what is beyond a line is a word of the kernel.
    pub offset: Dim,
    /// Rows of arrays that iterations walk over.
    pub slots: Vec<Slot>,
    /// Leading axes that are padded.
    pub lead: Vec<Lead>,
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operand {
    /// A value in memory.
    Memory(Place),
    /// The index of a loop, as u32.
    Index(LoopId),
}

/// One kernel of a launch with what it reads and writes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Member {
    /// What it computes.
    pub kernel: Kernel,
    /// Arguments with their shapes and types.
    pub reads: Vec<(Operand, Shape, DType)>,
    /// Where the result goes.
    pub write: Place,
    /// The shape of the result.
    pub shape: Shape,
    /// The type of the result.
    pub dtype: DType,
}

impl Member {
    /// The places that it reads, with shapes.
    pub fn places_read(&self) -> impl Iterator<Item = (&Place, &Shape)> {
        self.reads.iter().filter_map(|(operand, shape, _)| match operand {
            Operand::Memory(place) => Some((place, shape)),
            Operand::Index(_) => None,
        })
    }
}

/// Which statement a step serves, and how it came about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Origin {
    /// The dotted path of members, empty at the top.
    pub path: String,
    /// The operation, as the language names it.
    pub what: String,
    /// Whether the step belongs to the backward pass.
    pub backward: bool,
    /// The rules of the search that made it.
    pub rules: Vec<String>,
    /// What else the compiler knows of it, by number in a table that it keeps to itself.
    #[serde(skip)]
    pub choice: Option<usize>,
}

/// Kernels that run at once, in one launch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The kernels.
    pub members: Vec<Member>,
    /// Whether everything before must have ended.
    pub barrier: bool,
    /// Where it comes from, one for each member.
    pub origins: Vec<Origin>,
    /// How devices run it: the first whose condition holds. The last holds always.
    pub variants: Vec<Variant>,
}

impl Step {
    /// All memory that is touched, results last.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        let reads = self.members.iter().flat_map(|m| m.places_read().map(|(place, _)| place));
        reads.chain(self.members.iter().map(|m| &m.write))
    }
}

/// When a variant or a plan may be taken.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Condition {
    /// Always.
    Always,
    /// The dimension is at most this.
    AtMost(Dim, i64),
    /// The device gives a workgroup at least this many bytes of shared memory.
    WorkgroupMemory(u32),
    /// All of these.
    All(Vec<Condition>),
}

/// One way to run a step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Variant {
    /// When it may be taken.
    pub condition: Condition,
    /// What it runs, in order.
    pub dispatches: Vec<Dispatch>,
}

/// What `b0`, `b1`, … are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Binding {
    /// Argument `1` of member `0`.
    Read(usize, usize),
    /// The result of a member.
    Write(usize),
}

/// The value of one u32 word of the uniform `p`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Word {
    /// A size.
    Size(Dim),
    /// A size as the bits of an f32.
    SizeAsFloat(Dim),
    /// The elements between where `b<k>` is bound (a line of [`ALIGN`] bytes) and where its value begins.
    Inside(usize),
    /// The index of a loop.
    Index(LoopId),
}

/// One dispatch of a compute shader; its entry point is `main`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Dispatch {
    /// The shader.
    pub text: TextId,
    /// `b0`, `b1`, … in order, at most [`MAX_BINDINGS`].
    pub bindings: Vec<Binding>,
    /// The words of `p` with their names, at most [`MAX_WORDS`].
    pub words: Vec<(String, Word)>,
    /// The number of workgroups; the runtime spreads them over the axes of the grid, and the shader finds its own as
    /// `workgroup_id.x + workgroup_id.y * num_workgroups.x`, leaving at once if that is past the end (word `groups`).
    pub groups: Dim,
    /// Whether the dispatch before it, of the same step, must have ended.
    pub barrier: bool,
}

/// A step, or a loop of steps.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Item {
    /// One launch.
    Step(Step),
    /// A body that runs once for each iteration.
    Loop {
        /// Which loop.
        id: LoopId,
        /// What it runs.
        body: Vec<Item>,
    },
}

/// How often a loop runs and which way.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Loop {
    /// At least 1.
    pub count: Dim,
    /// Whether the index counts down.
    pub reversed: bool,
    /// The loop around it.
    pub outer: Option<LoopId>,
}

impl Loop {
    /// The index of the first iteration.
    pub fn first(&self) -> Dim {
        if self.reversed { &self.count - &Dim::from(1) } else { Dim::from(0) }
    }

    /// The index of the last iteration.
    pub fn last(&self) -> Dim {
        if self.reversed { Dim::from(0) } else { &self.count - &Dim::from(1) }
    }
}

/// What an output is for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Role {
    /// Result k of the entry.
    Result(usize),
    /// The gradient of tensor k, laid out like the tensor.
    Gradient(usize),
    /// The new value of tensor k, which lies in the tensor itself.
    Update(usize),
    /// Value k that a traced call gives beside the results.
    Tap(usize),
}

/// A value that a call leaves behind.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Output {
    /// What it is for.
    pub role: Role,
    /// For people.
    pub name: String,
    /// Where it lies.
    pub place: Place,
    /// Its shape.
    pub shape: Shape,
    /// Its type.
    pub dtype: DType,
}

/// The step or loop after which a buffer is dead.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum After {
    /// The n-th step of the text.
    Step(usize),
    /// A loop.
    Loop(LoopId),
}

/// When an arena buffer is needed, in epochs (stretches between barriers), and the step or loop of its owner's block
/// that touches it last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Life {
    /// The buffer.
    pub buffer: BufferId,
    /// The first epoch.
    pub first: usize,
    /// The last epoch.
    pub last: usize,
    /// Where it dies.
    pub end: After,
}

/// From the bottom up: a life (an index into [`Plan::lives`]), and the lives that it must lie above.
pub type Order = Vec<(usize, Vec<usize>)>;

/// Steps with the plan of their memory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// When it is taken; the first that holds, and the last holds always.
    pub condition: Condition,
    /// What runs.
    pub items: Vec<Item>,
    /// The arena buffers.
    pub lives: Vec<Life>,
    /// Ways to lay them out: an offset is the highest end of what must lie below, the lowest arena is taken.
    pub orders: Vec<Order>,
}

/// What the dimensions of a call must keep beside their bounds: `low <= high`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Check {
    /// What needs it, as the source writes it.
    pub what: String,
    /// The smaller side.
    pub low: Dim,
    /// The larger side.
    pub high: Dim,
}

impl Check {
    /// Whether these dimensions keep it.
    pub fn holds(&self, env: &Env) -> bool {
        self.low.eval(env) <= self.high.eval(env)
    }

    /// `low <= high` in the source's names.
    pub fn show(&self, symbols: &Symbols) -> String {
        format!("{} <= {}", symbols.show(&self.low), symbols.show(&self.high))
    }
}

/// Everything about one entry of a model, at every size.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Schedule {
    /// The entry's name.
    pub name: String,
    /// Its dimensions.
    pub symbols: Symbols,
    /// What its dimensions must keep beside their bounds; the runtime looks before anything runs.
    pub checks: Vec<Check>,
    /// Its arguments in order.
    pub arguments: Vec<Argument>,
    /// All buffers.
    pub buffers: Vec<Buffer>,
    /// All loops.
    pub loops: Vec<Loop>,
    /// What it leaves behind.
    pub outputs: Vec<Output>,
    /// At least one.
    pub plans: Vec<Plan>,
    /// Launches of a call that the same entry would take without fusion, for people.
    pub unfused: Dim,
}

impl Schedule {
    /// Number of loops around what a loop owns.
    pub fn depth(&self, owner: Option<LoopId>) -> usize {
        owner.map_or(0, |id| 1 + self.depth(self.loops[id].outer))
    }
}

/// The steps of the text in order, loop bodies once.
pub fn steps(items: &[Item]) -> Vec<&Step> {
    fn walk<'s>(items: &'s [Item], steps: &mut Vec<&'s Step>) {
        for item in items {
            match item {
                Item::Step(step) => steps.push(step),
                Item::Loop { body, .. } => walk(body, steps),
            }
        }
    }
    let mut all = Vec::new();
    walk(items, &mut all);
    all
}
