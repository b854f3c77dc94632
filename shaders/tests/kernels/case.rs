//! A launch with numbers: lays members out in poisoned memory, runs them on the CPU and every variant of them on Vulkan,
//! and compares with the reference. What no result covers must stay as it was.

use std::collections::BTreeMap;

use meganeura_shaders::dim::{Dim, Env, Shape, Symbols};
use meganeura_shaders::generate::{Form, Texts, dispatches_as, validate, variants};
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::prog::DType;
use meganeura_shaders::reference::{Tensor, copy_targets, eval_typed};
use meganeura_shaders::schedule::{Binding, Dispatch, Lead, Member, Operand, Place, Variant, Word};

use crate::devices::{Devices, Run, on_cpu};
use crate::tolerance::Class;

/// A quiet NaN as f32, a huge number as an integer.
const POISON: u32 = 0x7fc0_dead;

/// How places are laid out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Layout {
    /// From the start of a binding.
    Aligned,
    /// 16 bytes into one.
    Inside,
    /// 4 bytes into one.
    Odd,
    /// The first axis has padded rows, counted from the second.
    Padded,
    /// The same with rows that start at odd elements.
    Ragged,
}

pub(crate) const LAYOUTS: [Layout; 5] = [Layout::Aligned, Layout::Inside, Layout::Odd, Layout::Padded, Layout::Ragged];

/// How far results may be from the reference.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Near {
    Exact,
    /// As the class of each member's kernel says.
    Class,
    /// Within this, relative to the larger of 1 and the reference: less than the class.
    By(f64),
}

pub(crate) struct Case {
    pub(crate) symbols: Symbols,
    pub(crate) members: Vec<Member>,
    pub(crate) loops: Vec<u32>,
    pub(crate) near: Near,
    /// The value of an argument's element, from the argument's number and the element's.
    pub(crate) data: fn(usize, usize) -> f64,
}

/// Small integers of both signs, so that sums of products are exact.
pub(crate) fn integers(argument: usize, element: usize) -> f64 {
    (hash(argument, element) % 7) as f64 - 3.0
}

/// Numbers in -2 .. 2.
pub(crate) fn floats(argument: usize, element: usize) -> f64 {
    f64::from((f64::from(hash(argument, element) % 40_000) / 10_000.0 - 2.0) as f32)
}

/// Positive numbers in 0.5 .. 2.5.
pub(crate) fn positive(argument: usize, element: usize) -> f64 {
    f64::from((floats(argument, element).abs() + 0.5) as f32)
}

fn hash(argument: usize, element: usize) -> u32 {
    let mut x = (argument as u32 + 1).wrapping_mul(0x9e37_79b9) ^ (element as u32).wrapping_mul(0x85eb_ca6b);
    x ^= x >> 15;
    x = x.wrapping_mul(0x2c1b_3c6d);
    x ^ x >> 13
}

pub(crate) fn place(buffer: usize, shape: &[Dim], layout: Layout) -> Place {
    let mut place = Place { buffer, offset: Dim::from(0), slots: vec![], lead: vec![] };
    match layout {
        Layout::Aligned => {}
        Layout::Inside => place.offset = Dim::from(256 + 16),
        Layout::Odd => place.offset = Dim::from(512 + 4),
        Layout::Padded | Layout::Ragged => {
            if let Some((rows, inner)) = shape.split_first() {
                let inner = inner.iter().fold(Dim::from(1), |product, size| &product * size);
                let stride = &(&inner * &Dim::from(4)) + &Dim::from(if layout == Layout::Padded { 32 } else { 20 });
                place.lead.push(Lead { first: Dim::from(1), count: rows.clone(), stride });
            }
        }
    }
    place
}

/// A member over arguments in buffers of their own, from buffer `first` on; the result's is the last.
pub(crate) fn member(kernel: Kernel, args: &[(Shape, DType)], layout: Layout, first: usize) -> Member {
    let shapes: Vec<&Shape> = args.iter().map(|(shape, _)| shape).collect();
    let dtypes: Vec<DType> = args.iter().map(|(_, dtype)| *dtype).collect();
    let (shape, dtype) = (kernel.shape(&shapes).unwrap(), kernel.dtype(&dtypes).unwrap());
    let reads = args
        .iter()
        .enumerate()
        .map(|(k, (shape, dtype))| (Operand::Memory(place(first + k, shape, layout)), shape.clone(), *dtype));
    let reads = reads.collect();
    let write = place(first + args.len(), &shape, layout);
    Member { kernel, reads, write, shape, dtype }
}

fn begin(place: &Place, env: &Env, loops: &[u32]) -> i64 {
    let slots = place.slots.iter().map(|slot| {
        let index = slot.base.eval(env) + slot.index.map_or(0, |id| i64::from(loops[id]));
        (if slot.parity { index & 1 } else { index }) * slot.stride.eval(env)
    });
    place.offset.eval(env) + slots.sum::<i64>()
}

/// The words of memory that the elements lie in.
fn addresses(place: &Place, shape: &[i64], env: &Env, loops: &[u32]) -> Vec<usize> {
    let first = begin(place, env, loops) / 4;
    let inner: i64 = shape.iter().skip(place.lead.len()).product();
    let count: i64 = shape.iter().product();
    let address = |element: i64| {
        let (mut rows, mut at) = (element / inner, first + element % inner);
        for (lead, size) in place.lead.iter().zip(shape).rev() {
            at += (lead.first.eval(env) + rows % size) * lead.stride.eval(env) / 4;
            rows /= size;
        }
        at as usize
    };
    (0..count).map(address).collect()
}

fn bits(dtype: DType, value: f64) -> u32 {
    match dtype {
        DType::F32 => (value as f32).to_bits(),
        DType::U32 | DType::Bool => value as u32,
        DType::I32 => value as i32 as u32,
    }
}

fn value(dtype: DType, bits: u32) -> f64 {
    match dtype {
        DType::F32 => f64::from(f32::from_bits(bits)),
        DType::U32 | DType::Bool => f64::from(bits),
        DType::I32 => f64::from(bits as i32),
    }
}

/// What a case must leave behind.
struct Expected {
    results: Vec<(Tensor, Vec<usize>)>,
    /// The words that no result covers.
    stays: Vec<Vec<Option<u32>>>,
}

impl Case {
    pub(crate) fn new(symbols: &Symbols, members: Vec<Member>) -> Case {
        Case { symbols: symbols.clone(), members, loops: vec![], near: Near::Class, data: floats }
    }

    pub(crate) fn exact(mut self) -> Case {
        self.near = Near::Exact;
        self.data = integers;
        self
    }

    pub(crate) fn near(mut self, by: f64) -> Case {
        let least = self.members.iter().map(|member| Class::of(&member.kernel, member.dtype).bound());
        assert!(least.fold(0.0, f64::max) >= by, "a case asks for no less than its class");
        self.near = Near::By(by);
        self
    }

    pub(crate) fn data(mut self, data: fn(usize, usize) -> f64) -> Case {
        self.data = data;
        self
    }

    /// The variants, every text of them validated.
    pub(crate) fn variants(&self) -> (Symbols, Vec<Variant>, Texts) {
        let (mut symbols, mut texts) = (self.symbols.clone(), Texts::default());
        let variants = variants(&self.members, &mut symbols, &mut texts).unwrap_or_else(|error| panic!("{error}"));
        for text in texts.list() {
            validate(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
        (symbols, variants, texts)
    }

    /// Runs it on the CPU, and every variant whose condition the sizes meet on Vulkan, and compares.
    pub(crate) fn check(&self, devices: &mut Devices, sizes: &[i64]) -> usize {
        let (symbols, variants, texts) = self.variants();
        let env = symbols.bind(sizes).unwrap();
        let (memory, args) = self.memory(&env);
        let expected = self.expected(&env, &memory, &args);
        for threads in &devices.cpu {
            let place = |place: &Place| begin(place, &env, &self.loops);
            let found = on_cpu(threads, &memory, &self.members, &env, &self.loops, place);
            self.compare(&expected, &found, &format!("the CPU with {} threads at {sizes:?}", threads.count()));
        }
        let mut held = 0;
        for variant in variants.iter().filter(|variant| holds(&variant.condition, &env)) {
            held += 1;
            let Some(vulkan) = &mut devices.vulkan else { continue };
            let runs = variant.dispatches.iter().map(|dispatch| self.run(dispatch, &env, &texts));
            let found = vulkan.run(&memory, &runs.collect::<Vec<_>>());
            let text = &texts.list()[variant.dispatches[0].text as usize];
            self.compare(&expected, &found, &format!("{:?} at {sizes:?}\n{text}", variant.condition));
        }
        assert!(held > 0, "some variant always holds");
        held
    }

    /// Runs it on Vulkan in one form, whatever the table says, and compares. Forms that need more workgroup memory than
    /// the tests take are no case.
    pub(crate) fn check_as(&self, devices: &mut Devices, form: Form, sizes: &[i64]) {
        let Some(vulkan) = &mut devices.vulkan else { return };
        let (mut symbols, mut texts) = (self.symbols.clone(), Texts::default());
        let (dispatches, bytes) = dispatches_as(&self.members, form, &mut symbols, &mut texts)
            .unwrap_or_else(|error| panic!("{form:?}: {error}"));
        if bytes > 32 * 1024 {
            return;
        }
        for text in texts.list() {
            validate(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
        let env = symbols.bind(sizes).unwrap_or_else(|error| panic!("{form:?} at {sizes:?}: {error}"));
        let (memory, args) = self.memory(&env);
        let expected = self.expected(&env, &memory, &args);
        let runs = dispatches.iter().map(|dispatch| self.run(dispatch, &env, &texts));
        let found = vulkan.run(&memory, &runs.collect::<Vec<_>>());
        self.compare(&expected, &found, &format!("{form:?} at {sizes:?}\n{}", texts.list()[0]));
    }

    /// What the reference makes of the arguments: for each member the result and where its elements go; and memory with
    /// all that must stay as it was.
    fn expected(&self, env: &Env, memory: &[Vec<u32>], args: &[Vec<Tensor>]) -> Expected {
        let mut stays: Vec<Vec<Option<u32>>> =
            memory.iter().map(|words| words.iter().copied().map(Some).collect()).collect();
        let mut results = vec![];
        for (member, args) in self.members.iter().zip(args) {
            let dtypes: Vec<DType> = member.reads.iter().map(|(_, _, dtype)| *dtype).collect();
            let result = eval_typed(&member.kernel, args, &dtypes, env);
            let at: Vec<usize> = match &member.kernel {
                Kernel::Copy(copy) => {
                    let first = begin(&member.write, env, &self.loops) / 4;
                    copy_targets(copy, env).into_iter().map(|target| (first + target) as usize).collect()
                }
                _ => {
                    assert_eq!(result.shape, env.shape(&member.shape), "the reference has the shape stated");
                    addresses(&member.write, &result.shape, env, &self.loops)
                }
            };
            at.iter().for_each(|address| stays[member.write.buffer][*address] = None);
            results.push((result, at));
        }
        Expected { results, stays }
    }

    fn compare(&self, expected: &Expected, found: &[Vec<u32>], what: &str) {
        for (member, (result, at)) in self.members.iter().zip(&expected.results) {
            for (element, (expected, address)) in result.data.iter().zip(at).enumerate() {
                let found = value(member.dtype, found[member.write.buffer][*address]);
                let bound = match self.near {
                    Near::Exact => 0.0,
                    Near::Class => Class::of(&member.kernel, member.dtype).bound(),
                    Near::By(by) => by,
                };
                let fits = found == *expected || (found - expected).abs() <= bound * expected.abs().max(1.0);
                let (shape, kernel) = (&result.shape, &member.kernel);
                assert!(fits, "element {element} of {shape:?} must be {expected}, found {found}: {what}\n{kernel}");
            }
        }
        for (buffer, (found, stays)) in found.iter().zip(&expected.stays).enumerate() {
            for (word, (found, stays)) in found.iter().zip(stays).enumerate() {
                let stayed = stays.is_none_or(|stays| stays == *found);
                assert!(stayed, "word {word} of buffer {buffer} must stay as it was: {what}");
            }
        }
    }

    fn run<'t>(&self, dispatch: &Dispatch, env: &Env, texts: &'t Texts) -> Run<'t> {
        let place = |binding: &Binding| match binding {
            Binding::Read(member, k) => match &self.members[*member].reads[*k].0 {
                Operand::Memory(place) => place,
                Operand::Index(_) => panic!("an index has no buffer"),
            },
            Binding::Write(member) => &self.members[*member].write,
        };
        let bindings: Vec<&Place> = dispatch.bindings.iter().map(place).collect();
        for (k, one) in bindings.iter().enumerate() {
            assert!(bindings[..k].iter().all(|other| other != one), "equal places are one binding");
        }
        let word = |(_, word): &(String, Word)| match word {
            Word::Size(dim) => dim.eval(env) as u32,
            Word::SizeAsFloat(dim) => (dim.eval(env) as f32).to_bits(),
            Word::Inside(k) => (begin(bindings[*k], env, &self.loops) % 256 / 4) as u32,
            Word::Index(id) => self.loops[*id],
        };
        let whole = |place: &&Place| (place.buffer, (begin(place, env, &self.loops) / 256 * 256) as u64);
        Run {
            text: &texts.list()[dispatch.text as usize],
            bindings: bindings.iter().map(whole).collect(),
            words: dispatch.words.iter().map(word).collect(),
            groups: dispatch.groups.eval(env) as u64,
        }
    }

    /// Poisoned buffers with the arguments in them, and the arguments.
    fn memory(&self, env: &Env) -> (Vec<Vec<u32>>, Vec<Vec<Tensor>>) {
        let mut memory: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        let mut cover = |buffer: usize, at: &[usize]| {
            let words = memory.entry(buffer).or_default();
            let end = at.iter().max().map_or(1, |last| last + 1) + 70;
            words.resize(words.len().max(end), POISON);
        };
        let (mut arguments, mut writes, mut number) = (vec![], vec![], 0);
        for member in &self.members {
            let mut own = vec![];
            for (operand, shape, dtype) in &member.reads {
                let shape = env.shape(shape);
                let mut element = 0;
                let tensor = Tensor::from_fn(&shape, |_| {
                    element += 1;
                    let value = (self.data)(number, element);
                    match dtype {
                        DType::F32 => value,
                        DType::I32 => (value * 2.0).round(),
                        DType::U32 => (value * 2.0).round().abs(),
                        DType::Bool => f64::from(u8::from(value > 0.0)),
                    }
                });
                number += 1;
                own.push(match operand {
                    Operand::Index(id) => Tensor::scalar(f64::from(self.loops[*id])),
                    Operand::Memory(place) => {
                        let at = addresses(place, &shape, env, &self.loops);
                        cover(place.buffer, &at);
                        writes.push((place.buffer, at, *dtype, arguments.len(), own.len()));
                        tensor
                    }
                });
            }
            let at = match &member.kernel {
                Kernel::Copy(copy) => {
                    let first = begin(&member.write, env, &self.loops) / 4;
                    copy_targets(copy, env).into_iter().map(|target| (first + target) as usize).collect()
                }
                _ => addresses(&member.write, &env.shape(&member.shape), env, &self.loops),
            };
            cover(member.write.buffer, &at);
            arguments.push(own);
        }
        // An address that two arguments share holds one value: both see it.
        for (buffer, at, dtype, member, k) in writes {
            let words = memory.get_mut(&buffer).unwrap();
            let tensor: &mut Tensor = &mut arguments[member][k];
            for (address, element) in at.iter().zip(&mut tensor.data) {
                if words[*address] == POISON {
                    words[*address] = bits(dtype, *element);
                }
                *element = value(dtype, words[*address]);
            }
        }
        let last = memory.keys().max().copied().unwrap_or_default();
        ((0..=last).map(|buffer| memory.remove(&buffer).unwrap_or_default()).collect(), arguments)
    }
}

/// Whether a condition holds, for the device that the tests want to see everything on.
pub(crate) fn holds(condition: &meganeura_shaders::schedule::Condition, env: &Env) -> bool {
    use meganeura_shaders::schedule::Condition;
    match condition {
        Condition::Always => true,
        Condition::AtMost(dim, most) => dim.eval(env) <= *most,
        Condition::WorkgroupMemory(bytes) => *bytes <= 32 * 1024,
        Condition::All(all) => all.iter().all(|one| holds(one, env)),
    }
}
