//! A model on a device: its tensors, its entries as programs, and the calls that run them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use meganeura_shaders::prog::DType;
use meganeura_shaders::schedule::{BufferKind, Init, Model as ModelData, Role, Schedule, Tensor as TensorData};

use crate::arguments::{Data, Given, IntoArgument, Wanted, solve};
use crate::device::{Backend, Buffer, Device};
use crate::init::Values;
use crate::parameters::Parameters;
use crate::pool::Pool;
use crate::replay::{Call, Place, Program, Recipe, Stretch, Updates, bytes, replayer};
use crate::storage::{Arena, Kind};
use crate::tensor::{Element, Tensor};
use crate::weights::{self, Expected, Rules, WeightSource, Weights};
use crate::{Error, Result};

/// A model's tensors, as `model!` emits them.
#[derive(Debug)]
pub struct Model {
    /// A `schedule::Model`, encoded.
    pub bytes: &'static [u8],
}

/// An entry, as `model!` emits it.
pub struct Entry {
    /// Unique in its model.
    pub name: &'static str,
    /// A `schedule::Schedule`, encoded.
    pub schedule: &'static [u8],
    /// The shader texts that it names.
    pub texts: &'static [&'static str],
}

/// A parameter, or an array of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The dotted path; `{}` stands for each index of an array of layers.
    pub name: &'static str,
    /// Sizes; first one axis for each `{}`.
    pub shape: &'static [usize],
    /// Whether training changes it.
    pub trained: bool,
}

/// An argument of a call, of any element type.
pub struct AnyArgument<'a> {
    element: &'static str,
    given: Given,
    data: AnyData<'a>,
}

enum AnyData<'a> {
    Host(Cow<'a, [u8]>),
    Word([u8; 4]),
    Device(&'a Device, &'a Buffer),
}

impl<'a> AnyArgument<'a> {
    /// Values of any shape, for whoever knows it only at run time; `element` is the type's name in the language.
    pub fn of_shape(element: &'static str, shape: Vec<usize>, bytes: &'a [u8]) -> AnyArgument<'a> {
        AnyArgument { element, given: Given::Shape(shape), data: AnyData::Host(Cow::Borrowed(bytes)) }
    }

    fn host(&self) -> Option<&[u8]> {
        match &self.data {
            AnyData::Host(bytes) => Some(bytes.as_ref()),
            AnyData::Word(bytes) => Some(bytes),
            AnyData::Device(..) => None,
        }
    }
}

/// A tensor argument.
pub fn argument<'a, T: Element>(value: impl IntoArgument<'a, T>) -> Result<AnyArgument<'a>> {
    let argument = value.into_argument()?;
    let data = match argument.data {
        Data::Host(values) => AnyData::Host(T::bytes(values)),
        Data::Device(tensor) => AnyData::Device(tensor.device(), tensor.buffer()),
    };
    Ok(AnyArgument { element: T::NAME, given: argument.given, data })
}

/// A scalar argument.
pub fn scalar<T: Element>(value: T) -> AnyArgument<'static> {
    let mut word = [0; 4];
    word.copy_from_slice(&T::bytes(&[value]));
    AnyArgument { element: T::NAME, given: Given::Shape(vec![]), data: AnyData::Word(word) }
}

/// A result of a call, of any element type.
#[derive(Clone)]
pub struct AnyTensor {
    device: Device,
    buffer: Buffer,
    shape: Vec<usize>,
    dtype: DType,
}

impl AnyTensor {
    /// As a tensor of its element type.
    pub(crate) fn into_tensor<T: Element>(self) -> Result<Tensor<T>> {
        if self.dtype.to_string() == T::NAME {
            return Ok(Tensor::of_buffer(&self.device, self.buffer, &self.shape));
        }
        let problem = format!("expected a result of {}, found {}", T::NAME, self.dtype);
        Err(Error::Kernel { kernel: "result".into(), problem })
    }
}

/// Values inside of a call, by the dotted path of the layer that taps them. One that a loop makes has an axis for it.
#[derive(Clone)]
pub struct Trace {
    values: Vec<(String, AnyTensor)>,
}

impl Trace {
    /// The paths, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(path, _)| path.as_str())
    }

    /// The value at a path. Fails with [`Error::Mismatch`] if there is none, or one of other elements.
    pub fn get<T: Element>(&self, path: &str) -> Result<Tensor<T>> {
        let fault = |expected: String, found: String| Error::Mismatch { name: path.into(), expected, found };
        let Some((_, value)) = self.values.iter().find(|(known, _)| known == path) else {
            let paths: Vec<&str> = self.paths().collect();
            return Err(fault(format!("one of {}", paths.join(", ")), "none of that path".into()));
        };
        if value.dtype.to_string() != T::NAME {
            return Err(fault(format!("elements of {}", T::NAME), value.dtype.to_string()));
        }
        value.clone().into_tensor()
    }
}

/// Elements that are converted and copied at a time while a file is loaded.
const LOADED: usize = 1 << 18;

/// One tensor: of an array of layers, the one of this row.
struct Row {
    tensor: usize,
    row: usize,
    name: String,
    shape: Vec<usize>,
}

/// A model on a device.
pub struct Session {
    device: Device,
    model: Arc<ModelData>,
    parameters: Parameters,
    /// What no file holds; none before the first call, and after a reset.
    states: Option<Parameters>,
    programs: BTreeMap<&'static str, Program>,
    pool: Pool,
    /// One arena serves all entries, since calls run one after the other.
    arena: Arena,
    /// What random numbers follow from, with the number of calls.
    seed: u64,
    calls: u32,
}

impl Session {
    /// A model whose parameters follow from a seed.
    pub fn new(device: &Device, model: &Model, seed: u64) -> Result<Session> {
        let session = Session { seed, ..Session::empty(device, model)? };
        session.rows().try_for_each(|row| session.initialise(&row, seed))?;
        Ok(session)
    }

    /// A model with the parameters of a file; those that may be missing and are begin as in a new one.
    pub fn load(device: &Device, model: &Model, source: WeightSource<'_>, rules: Rules) -> Result<Session> {
        let session = Session::empty(device, model)?;
        let rules = &session.model.ignored.iter().fold(rules, Rules::allow_unexpected);
        let expected = |row: Row| Expected { name: row.name, shape: row.shape };
        let weights = Weights::open(source, &session.rows().map(expected).collect::<Vec<_>>(), rules)?;
        let mut values = vec![];
        for (index, row) in session.rows().enumerate() {
            if !weights.has(index) {
                session.initialise(&row, 0)?;
                continue;
            }
            let elements: usize = row.shape.iter().product();
            values.resize(elements.min(LOADED), 0.0);
            for first in (0..elements).step_by(LOADED) {
                let values = &mut values[..LOADED.min(elements - first)];
                if !weights.read(index, first, values) {
                    return Err(Error::Kernel { kernel: row.name, problem: "checked weights cannot be read".into() });
                }
                session.parameters.write(device, row.tensor, row.row, first, values)?;
            }
        }
        Ok(session)
    }

    /// Another one over the same parameters: what one of them trains is seen by both.
    pub fn share(&self) -> Session {
        let (programs, pool) = Default::default();
        let (device, model, parameters) = (self.device.clone(), self.model.clone(), self.parameters.clone());
        let arena = Arena::new(&device);
        Session { device, model, parameters, states: None, programs, pool, arena, seed: self.seed, calls: 0 }
    }

    fn initialise(&self, row: &Row, seed: u64) -> Result<()> {
        let mut values = vec![0.0; row.shape.iter().product()];
        Values::new(&self.model.tensors[row.tensor].init, seed, &row.name, &row.shape)?.fill(0, &mut values);
        self.write(row.tensor, row.row, &values)
    }

    fn empty(device: &Device, model: &Model) -> Result<Session> {
        let read = postcard::from_bytes(model.bytes);
        let fault = |error| Error::Kernel { kernel: "model".into(), problem: format!("cannot be read: {error}") };
        let model: Arc<ModelData> = Arc::new(read.map_err(fault)?);
        let saved: Vec<bool> = model.tensors.iter().map(|tensor| tensor.saved).collect();
        let parameters = Parameters::new(device, Kind::Parameters, &model.tensors, &saved)?;
        let (programs, pool) = Default::default();
        Ok(Session {
            device: device.clone(),
            model,
            parameters,
            states: None,
            programs,
            pool,
            arena: Arena::new(device),
            seed: 0,
            calls: 0,
        })
    }

    /// Zeros, and the tables that operations need.
    fn fresh_states(&self) -> Result<Parameters> {
        let tensors = &self.model.tensors;
        let unsaved: Vec<bool> = tensors.iter().map(|tensor| !tensor.saved).collect();
        let states = Parameters::new(&self.device, Kind::States, tensors, &unsaved)?;
        let filled = |tensor: &TensorData| !tensor.saved && tensor.init != Init::Constant(0.0);
        for (index, tensor) in tensors.iter().enumerate().filter(|(_, tensor)| filled(tensor)) {
            for (row, name) in tensor.names().into_iter().enumerate() {
                let shape = sizes(tensor.one());
                let mut values = vec![0.0; shape.iter().product()];
                Values::new(&tensor.init, 0, &name, &shape)?.fill(0, &mut values);
                states.write(&self.device, index, row, 0, &values)?;
            }
        }
        Ok(states)
    }

    /// Sets one row of a tensor of the model, by their numbers.
    pub fn write(&self, tensor: usize, row: usize, values: &[f32]) -> Result<()> {
        self.parameters.write(&self.device, tensor, row, 0, values)
    }

    /// Sets all states to zero, and the number of calls too.
    pub fn reset(&mut self) {
        (self.states, self.calls) = (None, 0);
    }

    /// Every tensor that files hold, arrays written out.
    fn rows(&self) -> impl Iterator<Item = Row> {
        self.model.tensors.iter().enumerate().filter(|(_, tensor)| tensor.saved).flat_map(|(k, tensor)| {
            let names = tensor.names().into_iter().enumerate();
            names.map(move |(row, name)| Row { tensor: k, row, name, shape: sizes(tensor.one()) })
        })
    }

    /// Writes the parameters whose names match to a file. Fails with [`Error::Mismatch`] if none does.
    pub fn save(&self, pattern: &str, path: &Path) -> Result<()> {
        let rows: Vec<Row> = self.rows().filter(|row| weights::matches(pattern, &row.name)).collect();
        if rows.is_empty() && self.rows().next().is_some() {
            let (name, expected) = (self.model.name.clone(), format!("a parameter whose name matches `{pattern}`"));
            return Err(Error::Mismatch { name, expected, found: "none".into() });
        }
        let entry = |row: &Row| weights::Entry { name: row.name.clone(), shape: row.shape.clone() };
        let entries: Vec<weights::Entry> = rows.iter().map(entry).collect();
        weights::save(path, &entries, |index, first, values| {
            self.parameters.read(&self.device, rows[index].tensor, rows[index].row, first, values)
        })
    }

    /// Runs an entry.
    pub fn call<R: FromResults>(&mut self, entry: &'static Entry, arguments: &[AnyArgument<'_>]) -> Result<R> {
        let step = self.calls;
        self.calls = step.wrapping_add(1);
        R::from_results(self.run(entry, arguments, step, None, None)?)
    }

    /// Runs an entry and gives what it taps beside its results.
    pub fn trace<R: FromResults>(
        &mut self,
        entry: &'static Entry,
        arguments: &[AnyArgument<'_>],
    ) -> Result<(R, Trace)> {
        let step = self.calls;
        self.calls = step.wrapping_add(1);
        let mut results = self.run(entry, arguments, step, None, None)?;
        let outputs = &self.program(entry)?.schedule().outputs;
        let taps = outputs.iter().filter(|output| matches!(output.role, Role::Tap(_)));
        let names: Vec<String> = taps.map(|output| output.name.clone()).collect();
        let tapped = results.split_off(results.len() - names.len());
        Ok((R::from_results(results)?, Trace { values: names.into_iter().zip(tapped).collect() }))
    }

    /// Runs an entry, its gradients into the given memory, and `then` behind it; `step` is what random numbers count by.
    pub(crate) fn run(
        &mut self,
        entry: &'static Entry,
        arguments: &[AnyArgument<'_>],
        step: u32,
        gradients: Option<&Parameters>,
        then: Option<&Updates>,
    ) -> Result<Vec<AnyTensor>> {
        let program = self.program(entry)?;
        let recipe = prepare(program, arguments)?;
        check(program.schedule(), &recipe, arguments)?;
        self.arena.reserve(recipe.arena.bytes.unsigned_abs())?;
        if self.states.is_none() {
            self.states = Some(self.fresh_states()?);
        }
        let Some(program) = self.programs.get(entry.name) else { unreachable!("opened above") };
        let schedule = program.schedule();

        // Memory of arguments and results; arguments of the program are read where they lie or brought in first.
        let random = [self.seed as u32, (self.seed >> 32) as u32, step];
        let (mut own, mut uploads) = (vec![], vec![]);
        for (id, buffer) in schedule.buffers.iter().enumerate() {
            let what = || format!("`{}` of `{}`", buffer.name, schedule.name);
            let new = |pool: &mut Pool| pool.take(&self.device, what, bytes(schedule, id, &recipe.env));
            // Values of the program: the CPU reads them where they lie.
            let mut bring = |pool: &mut Pool, values| {
                if let (Backend::Host(_), Ok(words)) = (self.device.backend(), bytemuck::try_cast_slice(values)) {
                    return Ok(Own::Program(words));
                }
                let buffer = new(pool)?;
                uploads.extend((!values.is_empty()).then(|| (values, Stretch::from(buffer.at(0)))));
                Ok(Own::Buffer(buffer))
            };
            own.push(match buffer.kind {
                BufferKind::Argument(k) => Some(match &arguments[k].data {
                    AnyData::Device(device, buffer) => {
                        same_device(&self.device, device, &schedule.arguments[k].name)?;
                        Own::Buffer((*buffer).clone())
                    }
                    _ => bring(&mut self.pool, arguments[k].host().unwrap_or_default())?,
                }),
                BufferKind::Random => Some(bring(&mut self.pool, bytemuck::cast_slice(&random))?),
                BufferKind::Output(k) if is_result(&schedule.outputs[k].role) => {
                    Some(Own::Buffer(new(&mut self.pool)?))
                }
                _ => None,
            });
        }
        let fault =
            |what: &str| Error::Kernel { kernel: schedule.name.clone(), problem: format!("{what} has no memory") };
        let locate = |id: usize, offset: u64| {
            match &own[id] {
                Some(Own::Buffer(buffer)) => return Ok(Place::Device(Stretch { buffer: buffer.clone(), offset })),
                Some(Own::Program(words)) => return Ok(Place::Program(words, offset)),
                None => {}
            }
            let binding = match schedule.buffers[id].kind {
                BufferKind::Arena { .. } => {
                    recipe.arena.offsets.get(&id).map(|start| self.arena.at(start.unsigned_abs() + offset))
                }
                BufferKind::Tensor(k) => self.parameters.at(k, offset).or_else(|| self.states.as_ref()?.at(k, offset)),
                BufferKind::Output(k) => match (&schedule.outputs[k].role, gradients) {
                    (Role::Gradient(tensor), Some(gradients)) => gradients.at(*tensor, offset),
                    _ => None,
                },
                BufferKind::Argument(_) | BufferKind::Random => None,
            };
            Ok(Place::Device(binding.ok_or_else(|| fault(&schedule.buffers[id].name))?.into()))
        };
        let call = Call::new(&locate, &uploads, then);
        match self.device.watch() {
            None => recipe.replay(&call)?,
            Some(watch) => watch.replay(&self.device, &self.model.name, schedule, &recipe, call)?,
        }
        let mut results = vec![];
        for (k, output) in schedule.outputs.iter().enumerate().filter(|(_, output)| is_result(&output.role)) {
            let id = schedule.buffers.iter().position(|buffer| buffer.kind == BufferKind::Output(k));
            let Some(Some(Own::Buffer(buffer))) = id.map(|id| &own[id]) else { return Err(fault(&output.name)) };
            let buffer = buffer.clone();
            let shape = sizes(&recipe.env.shape(&output.shape));
            results.push(AnyTensor { device: self.device.clone(), buffer, shape, dtype: output.dtype });
        }
        Ok(results)
    }

    pub(crate) fn program(&mut self, entry: &'static Entry) -> Result<&mut Program> {
        if !self.programs.contains_key(entry.name) {
            let device = self.device.clone();
            let open = |schedule: &Schedule| replayer(&device, schedule, entry.texts);
            self.programs.insert(entry.name, Program::open(entry.schedule, open)?);
        }
        let Some(program) = self.programs.get_mut(entry.name) else { unreachable!("inserted above") };
        Ok(program)
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn model(&self) -> &Arc<ModelData> {
        &self.model
    }

    pub(crate) fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}

/// What only one call has: memory of its own, or values of the program that are read where they lie.
enum Own<'a> {
    Buffer(Buffer),
    Program(&'a [u32]),
}

/// Sizes as the public interface has them.
pub(crate) fn sizes(shape: &[i64]) -> Vec<usize> {
    shape.iter().map(|size| size.unsigned_abs() as usize).collect()
}

/// Whether a call gives it as a tensor of its own.
fn is_result(role: &Role) -> bool {
    matches!(role, Role::Result(_) | Role::Tap(_))
}

/// The dimensions of the call, and what runs at them.
fn prepare(program: &mut Program, arguments: &[AnyArgument<'_>]) -> Result<Arc<Recipe>> {
    let schedule = program.schedule();
    let stated = schedule.arguments.iter().zip(arguments);
    let wanted =
        stated.map(|(stated, argument)| Wanted { name: &stated.name, shape: &stated.shape, given: &argument.given });
    let env = solve(&schedule.symbols, &scalars(schedule, arguments), &wanted.collect::<Vec<_>>())?;
    crate::schedule::check(schedule, &env)?;
    program.recipe(env)
}

/// The dimensions that a call passes as numbers: bounded arguments, which have the names of their symbols.
fn scalars<'s>(schedule: &'s Schedule, arguments: &[AnyArgument<'_>]) -> Vec<(&'s str, i64)> {
    let declared = schedule.symbols.declared();
    let number = |(stated, argument): (&'s meganeura_shaders::schedule::Argument, &AnyArgument<'_>)| {
        let is_dimension = stated.shape.is_empty() && declared.iter().any(|bounds| bounds.name == stated.name);
        let word: u32 = bytemuck::pod_read_unaligned(argument.host().filter(|bytes| bytes.len() == 4)?);
        is_dimension.then_some((stated.name.as_str(), i64::from(word)))
    };
    schedule.arguments.iter().zip(arguments).filter_map(number).collect()
}

/// Everything about the arguments that their sizes do not show.
fn check(schedule: &Schedule, recipe: &Recipe, arguments: &[AnyArgument<'_>]) -> Result<()> {
    for (stated, argument) in schedule.arguments.iter().zip(arguments) {
        let fault = |expected: String, found: String| Error::Mismatch { name: stated.name.clone(), expected, found };
        if argument.element != stated.dtype.to_string() {
            return Err(fault(format!("elements of {}", stated.dtype), argument.element.to_string()));
        }
        let Some(below) = stated.below.as_ref().map(|dim| dim.eval(&recipe.env)) else { continue };
        let ids: Vec<u32> = match &argument.data {
            AnyData::Device(device, buffer) => {
                let count = recipe.env.shape(&stated.shape).iter().product::<i64>().unsigned_abs() as usize;
                Tensor::of_buffer(device, (*buffer).clone(), &[count]).to_vec()?
            }
            // The program's slice may be of u32 already, but bytes promise no alignment.
            _ => {
                let words = argument.host().unwrap_or_default().chunks_exact(4);
                words.map(bytemuck::pod_read_unaligned).collect()
            }
        };
        if let Some(at) = ids.iter().position(|id| i64::from(*id) >= below) {
            return Err(fault(format!("values below {below}"), format!("{} at index {at}", ids[at])));
        }
    }
    Ok(())
}

fn same_device(expected: &Device, found: &Device, what: &str) -> Result<()> {
    if expected.is_same(found) {
        return Ok(());
    }
    Err(Error::OtherDevice { what: format!("`{what}`"), expected: expected.to_string(), found: found.to_string() })
}

/// What a call gives: a tensor, or a tuple of them.
pub trait FromResults: Sized {
    /// From the results in order.
    fn from_results(results: Vec<AnyTensor>) -> Result<Self>;
}

pub(crate) fn next<T: Element>(results: &mut std::vec::IntoIter<AnyTensor>) -> Result<Tensor<T>> {
    let fault = || Error::Kernel { kernel: "result".into(), problem: "the schedule has too few results".into() };
    results.next().ok_or_else(fault)?.into_tensor()
}

/// Of an entry whose declaration has a mistake; it is never called.
impl FromResults for () {
    fn from_results(_: Vec<AnyTensor>) -> Result<Self> {
        Ok(())
    }
}

impl<T: Element> FromResults for Tensor<T> {
    fn from_results(results: Vec<AnyTensor>) -> Result<Self> {
        next(&mut results.into_iter())
    }
}

macro_rules! tuples {
    ($($($T:ident)+;)+) => { $(
        impl<$($T: Element),+> FromResults for ($(Tensor<$T>,)+) {
            fn from_results(results: Vec<AnyTensor>) -> Result<Self> {
                let mut results = results.into_iter();
                Ok(($(next::<$T>(&mut results)?,)+))
            }
        }
    )+ };
}

tuples! { A B; A B C; A B C D; A B C D E; A B C D E F; }
