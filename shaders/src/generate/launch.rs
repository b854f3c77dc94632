//! A launch while its text is written: buffers, words, helper functions and workgroup memory of all its members.
//!
//! A text is written twice: the first pass finds out which buffers are read or written one element at a time, the
//! second declares the others as arrays of vec4. Names depend on structure alone, so equal structures make equal texts.

use std::collections::{BTreeMap, BTreeSet};

use crate::dim::Dim;
use crate::prog::DType;
use crate::schedule::{ALIGN, Binding, Dispatch, MAX_BINDINGS, MAX_WORDS, Member, Operand, Place, TextId, Word};

use super::Unsupported;
use super::space::{Axes, strides};

/// The body of one member.
pub(super) struct Body {
    /// Statements over `group` (counted from the member's first) and `lane`; barriers only in uniform control flow.
    pub code: String,
    /// Threads in a workgroup.
    pub threads: u32,
    /// The number of workgroups.
    pub groups: Dim,
}

/// An operand in memory, or a word.
#[derive(Clone)]
pub(super) struct View {
    source: Source,
    /// What its elements are.
    pub dtype: DType,
    /// Prefix of its words.
    pub name: String,
    /// What is added to every index.
    front: Vec<String>,
    /// Whether the first element lies at a multiple of 16 bytes.
    pub aligned: bool,
    /// Distances between neighbours along its own axes.
    pub strides: Vec<Dim>,
}

#[derive(Clone)]
enum Source {
    Buffer(usize),
    Word(String),
}

struct Bound<'a> {
    place: &'a Place,
    memory: &'static str,
    binding: Binding,
    written: bool,
}

/// The state of a text in the making.
pub(super) struct Launch<'a> {
    members: &'a [Member],
    /// Which of them are in this text.
    chosen: Vec<usize>,
    member: usize,
    bound: Vec<Bound<'a>>,
    words: Vec<(String, Word)>,
    helpers: BTreeMap<&'static str, &'static str>,
    functions: Vec<String>,
    shared: BTreeMap<String, (&'static str, u32)>,
    /// Buffers declared as vec4: those that the pass before used only so.
    wide: BTreeSet<usize>,
    used_wide: BTreeSet<usize>,
    used_narrow: BTreeSet<usize>,
}

/// The WGSL type of a value.
pub(super) fn value_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::U32 => "u32",
        DType::I32 => "i32",
        DType::Bool => "bool",
    }
}

/// The WGSL type of an element in memory.
pub(super) fn memory_type(dtype: DType) -> &'static str {
    if dtype == DType::Bool { "u32" } else { value_type(dtype) }
}

/// A sum of terms.
pub(super) fn sum(terms: &[String]) -> String {
    if terms.is_empty() { "0u".into() } else { terms.join(" + ") }
}

/// An expression plus a number.
pub(super) fn plus(expression: &str, number: u32) -> String {
    if number == 0 { expression.to_string() } else { format!("{expression} + {number}u") }
}

/// The same as an operand of a product.
pub(super) fn grouped(expression: &str, number: u32) -> String {
    if number == 0 { expression.to_string() } else { format!("({expression} + {number}u)") }
}

impl<'a> Launch<'a> {
    /// A text of the chosen members, with the buffers that an earlier pass found to be vec4.
    pub(super) fn new(members: &'a [Member], chosen: &[usize], wide: BTreeSet<usize>) -> Launch<'a> {
        Launch {
            members,
            chosen: chosen.to_vec(),
            member: chosen.first().copied().unwrap_or_default(),
            bound: vec![],
            words: vec![],
            helpers: BTreeMap::new(),
            functions: vec![],
            shared: BTreeMap::new(),
            wide,
            used_wide: BTreeSet::new(),
            used_narrow: BTreeSet::new(),
        }
    }

    /// What is written from now on belongs to this member.
    pub(super) fn enter(&mut self, member: usize) {
        self.member = member;
    }

    /// The member in work.
    pub(super) fn member(&self) -> &'a Member {
        &self.members[self.member]
    }

    /// The buffers that this pass used as vec4 only.
    pub(super) fn wide(&self) -> BTreeSet<usize> {
        self.used_wide.difference(&self.used_narrow).copied().collect()
    }

    /// A name of the member in work; short where it is alone.
    pub(super) fn named(&self, name: &str) -> String {
        if self.chosen.len() > 1 {
            let position = self.chosen.iter().position(|m| *m == self.member).unwrap_or_default();
            format!("m{position}_{name}")
        } else {
            name.to_string()
        }
    }

    /// A word of `p`, as an expression.
    pub(super) fn word(&mut self, name: &str, word: Word) -> String {
        let name = self.named(name);
        self.word_as(name, word)
    }

    fn word_as(&mut self, name: String, word: Word) -> String {
        match self.words.iter().find(|(known, _)| *known == name) {
            Some((_, known)) => assert!(*known == word, "two words would be called {name}"),
            None => self.words.push((name.clone(), word)),
        }
        format!("p.{name}")
    }

    /// A size as an expression.
    pub(super) fn size(&mut self, name: &str, size: &Dim) -> String {
        self.word(name, Word::Size(size.clone()))
    }

    /// A function of the text, by its whole text.
    pub(super) fn function(&mut self, text: String) {
        self.functions.push(text);
    }

    /// A helper that WGSL lacks.
    pub(super) fn helper(&mut self, (name, text): (&'static str, &'static str)) {
        self.helpers.insert(name, text);
    }

    /// An array in workgroup memory; members share those of one name.
    pub(super) fn shared(&mut self, name: &str, element: &'static str, length: u32) {
        let entry = self.shared.entry(name.to_string()).or_insert((element, 0));
        assert!(entry.0 == element, "one type for each name in workgroup memory");
        entry.1 = entry.1.max(length);
    }

    /// Bytes of workgroup memory.
    pub(super) fn shared_bytes(&self) -> u32 {
        self.shared.values().map(|(element, length)| length * if element.starts_with("vec4") { 16 } else { 4 }).sum()
    }

    /// Argument `k` of the member in work, called `name`.
    pub(super) fn argument(&mut self, k: usize, name: &str) -> Result<View, Unsupported> {
        let (operand, shape, dtype) = &self.member().reads[k];
        match operand {
            Operand::Memory(place) => self.view(place, shape, *dtype, name, Binding::Read(self.member, k)),
            Operand::Index(id) => {
                let word = self.word(name, Word::Index(*id));
                let word = match dtype {
                    DType::U32 => word,
                    DType::I32 => format!("i32({word})"),
                    _ => return Err(Unsupported::new("the index of a loop as another type than an integer")),
                };
                let (strides, front) = (vec![Dim::from(0); shape.len()], vec![]);
                Ok(View { source: Source::Word(word), dtype: *dtype, name: name.into(), front, aligned: true, strides })
            }
        }
    }

    /// The result of the member in work.
    pub(super) fn result(&mut self) -> Result<View, Unsupported> {
        let member = self.member();
        self.view(&member.write, &member.shape, member.dtype, "out", Binding::Write(self.member))
    }

    fn view(
        &mut self,
        place: &'a Place,
        shape: &[Dim],
        dtype: DType,
        name: &str,
        binding: Binding,
    ) -> Result<View, Unsupported> {
        let (strides, first) = strides(Some(place), shape)?;
        let buffer = self.bind(place, dtype, binding);
        let is_multiple =
            |by: i64| place.offset.is_multiple_of(by) && place.slots.iter().all(|slot| slot.stride.is_multiple_of(by));
        let mut front = vec![];
        if !is_multiple(ALIGN) {
            front.push(self.word_as(format!("b{buffer}_inside"), Word::Inside(buffer)));
        }
        if first != Dim::from(0) {
            front.push(self.size(&format!("{name}_first"), &first));
        }
        let aligned = is_multiple(16) && first.is_multiple_of(4);
        Ok(View { source: Source::Buffer(buffer), dtype, name: name.into(), front, aligned, strides })
    }

    /// The number of the buffer; equal places are one binding.
    fn bind(&mut self, place: &'a Place, dtype: DType, binding: Binding) -> usize {
        let written = matches!(binding, Binding::Write(_));
        let known = self.bound.iter().position(|bound| bound.place == place);
        let number = known.unwrap_or_else(|| {
            self.bound.push(Bound { place, memory: memory_type(dtype), binding, written });
            self.bound.len() - 1
        });
        self.bound[number].written |= written;
        number
    }

    /// The coordinate along one of the axes under a linear index.
    pub(super) fn coordinate(&mut self, axes: &Axes, axis: usize, index: &str) -> String {
        let last = axes.sizes.len() - 1;
        let fours = if axes.fours && axis == last { " * 4u" } else { "" };
        if last == 0 {
            return format!("{index}{fours}");
        }
        let inner = axes.sizes[axis + 1..].iter().fold(Dim::from(1), |product, size| &product * size);
        let quotient = if axis == last {
            index.to_string()
        } else {
            let inner = self.size(&format!("{}_in{axis}", axes.name), &inner);
            format!("{index} / {inner}")
        };
        if axis == 0 {
            format!("({quotient})")
        } else {
            let size = self.size(&format!("{}_size{axis}", axes.name), &axes.sizes[axis]);
            format!("({quotient} % {size}){fours}")
        }
    }

    /// How far a linear index moves a view whose strides along the merged axes are given.
    pub(super) fn moved(&mut self, view: &View, axes: &Axes, strides: &[Dim], index: &str) -> Vec<String> {
        let mut terms = vec![];
        for (axis, stride) in strides.iter().enumerate() {
            if *stride == Dim::from(0) || index == "0u" {
                continue;
            }
            let coordinate = self.coordinate(axes, axis, index);
            terms.push(if stride.is_one() {
                coordinate
            } else {
                let stride = self.size(&format!("{}_{}{axis}", view.name, axes.name), stride);
                format!("{coordinate} * {stride}")
            });
        }
        terms
    }

    /// Where a view begins.
    pub(super) fn front(&self, view: &View) -> Vec<String> {
        view.front.clone()
    }

    fn is_wide(&mut self, buffer: usize, four: bool) -> bool {
        if four {
            self.used_wide.insert(buffer)
        } else {
            self.used_narrow.insert(buffer)
        };
        self.wide.contains(&buffer)
    }

    /// One element at an index, as a value.
    pub(super) fn load(&mut self, view: &View, at: &str) -> String {
        let buffer = match &view.source {
            Source::Word(word) => return word.clone(),
            Source::Buffer(buffer) => *buffer,
        };
        self.is_wide(buffer, false);
        let element = self.typed(buffer, view.dtype, &format!("b{buffer}[{at}]"), "");
        if view.dtype == DType::Bool { format!("({element} != 0u)") } else { element }
    }

    /// Four elements from an index on that is a multiple of four, as a vec4 of values.
    pub(super) fn load4(&mut self, view: &View, at: &str) -> String {
        let buffer = match &view.source {
            Source::Word(word) => return format!("vec4<{}>({word})", value_type(view.dtype)),
            Source::Buffer(buffer) => *buffer,
        };
        let raw = if self.is_wide(buffer, true) {
            format!("b{buffer}[({at}) / 4u]")
        } else {
            let each: Vec<String> = (0..4).map(|c| format!("b{buffer}[{}]", plus(at, c))).collect();
            format!("vec4<{}>({})", self.bound[buffer].memory, each.join(", "))
        };
        let four = self.typed(buffer, view.dtype, &raw, "vec4");
        if view.dtype == DType::Bool { format!("({four} != vec4<u32>())") } else { four }
    }

    fn typed(&self, buffer: usize, dtype: DType, raw: &str, vector: &str) -> String {
        let wanted = memory_type(dtype);
        match vector {
            _ if self.bound[buffer].memory == wanted => raw.to_string(),
            "" => format!("bitcast<{wanted}>({raw})"),
            vector => format!("bitcast<{vector}<{wanted}>>({raw})"),
        }
    }

    /// A statement that writes one value.
    pub(super) fn store(&mut self, view: &View, at: &str, value: &str) -> String {
        let Source::Buffer(buffer) = view.source else { return String::new() };
        self.is_wide(buffer, false);
        let value = if view.dtype == DType::Bool { format!("select(0u, 1u, {value})") } else { value.to_string() };
        format!("b{buffer}[{at}] = {};", self.stored(buffer, view.dtype, value, ""))
    }

    /// A statement that writes a vec4 of values from an index on that is a multiple of four.
    pub(super) fn store4(&mut self, view: &View, at: &str, value: &str) -> String {
        let Source::Buffer(buffer) = view.source else { return String::new() };
        let value = match view.dtype {
            DType::Bool => format!("select(vec4<u32>(), vec4<u32>(1u), {value})"),
            _ => value.to_string(),
        };
        let value = self.stored(buffer, view.dtype, value, "vec4");
        if self.is_wide(buffer, true) {
            return format!("b{buffer}[({at}) / 4u] = {value};");
        }
        let each: Vec<String> = (0..4).map(|c| format!("b{buffer}[{}] = four[{c}];", plus(at, c))).collect();
        format!("{{ let four = {value}; {} }}", each.join(" "))
    }

    fn stored(&self, buffer: usize, dtype: DType, value: String, vector: &str) -> String {
        let memory = self.bound[buffer].memory;
        match vector {
            _ if memory == memory_type(dtype) => value,
            "" => format!("bitcast<{memory}>({value})"),
            vector => format!("bitcast<{vector}<{memory}>>({value})"),
        }
    }

    /// The whole text, with what a dispatch of it needs.
    pub(super) fn finish(
        mut self,
        bodies: &[Body],
        intern: impl FnOnce(String) -> TextId,
    ) -> Result<Dispatch, Unsupported> {
        let threads = bodies.first().map_or(1, |body| body.threads);
        assert!(bodies.iter().all(|body| body.threads == threads), "members of a text agree in workgroup size");
        let (mut end, mut code) = (Dim::from(0), String::new());
        for (position, body) in bodies.iter().enumerate() {
            let first = std::mem::take(&mut end);
            end = &first + &body.groups;
            let is_last = position + 1 == bodies.len();
            let bound = match is_last {
                true => self.word_as("groups".into(), Word::Size(end.clone())),
                false => self.word_as(format!("end{position}"), Word::Size(end.clone())),
            };
            let otherwise = if position == 0 { "    if" } else { " else if" };
            let start = if position == 0 { String::new() } else { format!(" - p.end{}", position - 1) };
            let indented: String = body.code.lines().map(|line| format!("        {line}\n")).collect();
            code += &format!(
                "{otherwise} (workgroup < {bound}) {{\n        let group = workgroup{start};\n{indented}    }}"
            );
        }
        if self.bound.len() > MAX_BINDINGS {
            return Err(Unsupported::new("more buffers than a launch may bind"));
        }
        if self.words.len() > MAX_WORDS {
            return Err(Unsupported::new("more words than the uniform of a launch holds"));
        }
        let mut text = String::from("struct P {\n");
        for (name, _) in &self.words {
            text += &format!("    {name}: u32,\n");
        }
        text += "}\n";
        for (number, bound) in self.bound.iter().enumerate() {
            let access = if bound.written { "storage, read_write" } else { "storage" };
            let element = match self.wide.contains(&number) {
                true => format!("vec4<{}>", bound.memory),
                false => bound.memory.to_string(),
            };
            text += &format!("var<{access}> b{number}: array<{element}>;\n");
        }
        text += "var<uniform> p: P;\n";
        for (name, (element, length)) in &self.shared {
            text += &format!("var<workgroup> {name}: array<{element}, {length}>;\n");
        }
        self.helpers.values().for_each(|helper| text += helper);
        self.functions.iter().for_each(|function| text += function);
        text += &format!(
            "@compute @workgroup_size({threads})
fn main(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(num_workgroups) grid: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {{
    let workgroup = id.x + id.y * grid.x;
{code}
}}
"
        );
        Ok(Dispatch {
            text: intern(text),
            bindings: self.bound.iter().map(|bound| bound.binding.clone()).collect(),
            words: self.words,
            groups: end,
            barrier: false,
        })
    }
}
