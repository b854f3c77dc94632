//! Training: forward, backward and update in one submission.

use meganeura_shaders::schedule::{ELEMENT, Role};
use meganeura_shaders::update::ELEMENTS_PER_GROUP;

use crate::optimizer::Optimizer;
use crate::parameters::{Parameters, Run};
use crate::replay::{Launch, Stretch, Updates};
use crate::session::{AnyArgument, AnyTensor, Entry, FromResults, Session, next, sizes};
use crate::storage::Kind;
use crate::tensor::{Element, Tensor};
use crate::{Error, Result};

/// What training keeps beside a model: the optimizer's state covers every tensor that some loss trains.
pub struct Trainer {
    losses: Vec<&'static Entry>,
    optimizer: Optimizer,
    updates: Updates,
    gradients: Parameters,
    moments: Vec<Parameters>,
    groups: Vec<Group>,
    /// The steps of the losses together.
    steps: u32,
}

/// The tensors that the same losses train, and so have had equally many updates.
struct Group {
    losses: Vec<bool>,
    tensors: Vec<bool>,
    runs: Vec<Run>,
    updates: u32,
}

/// The loss of a step; the value is waited for when it is asked for.
#[derive(Clone, Debug)]
pub struct Loss {
    value: Tensor<f32>,
}

impl Loss {
    /// Waits for the step and gives its loss.
    pub fn get(&self) -> Result<f32> {
        let mut value = [0.0];
        self.value.read(&mut value)?;
        Ok(value[0])
    }

    /// The loss on the device, of shape `[]`.
    pub fn tensor(&self) -> &Tensor<f32> {
        &self.value
    }
}

/// A parameter's name and shape, and its gradient row by row.
type Gradient = (String, Vec<usize>, Vec<f32>);

/// Gradients by the names of the parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradients {
    loss: f32,
    tensors: Vec<Gradient>,
}

impl Gradients {
    /// The loss that they belong to.
    pub fn loss(&self) -> f32 {
        self.loss
    }

    /// The gradient of a parameter, row by row; none if it is not trained.
    pub fn get(&self, name: &str) -> Option<&[f32]> {
        self.tensors.iter().find(|(known, ..)| known == name).map(|(_, _, values)| values.as_slice())
    }

    /// Name, shape and values of each, in order of declaration.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[usize], &[f32])> {
        self.tensors.iter().map(|(name, shape, values)| (name.as_str(), shape.as_slice(), values.as_slice()))
    }
}

impl Trainer {
    /// Training of a model with an optimizer by some losses.
    pub fn new(session: &mut Session, losses: &[&'static Entry], optimizer: Optimizer) -> Result<Trainer> {
        optimizer.check()?;
        let (device, model) = (session.device().clone(), session.model().clone());
        let mut trained = vec![vec![false; losses.len()]; model.tensors.len()];
        for (k, loss) in losses.iter().enumerate() {
            for output in &session.program(loss)?.schedule().outputs {
                if let Role::Gradient(tensor) = output.role {
                    trained[tensor][k] = true;
                }
            }
        }
        let any: Vec<bool> = trained.iter().map(|by| by.contains(&true)).collect();
        let memory = |kind| Parameters::new(&device, kind, &model.tensors, &any);
        let gradients = memory(Kind::Gradients)?;
        let moments = (0..optimizer.moments()).map(|_| memory(Kind::Moments)).collect::<Result<Vec<_>>>()?;
        let mut groups: Vec<Group> = vec![];
        for by in trained.iter().filter(|by| by.contains(&true)) {
            if groups.iter().all(|group| group.losses != *by) {
                let tensors: Vec<bool> = trained.iter().map(|other| other == by).collect();
                let runs = session.parameters().runs(&gradients, &tensors);
                groups.push(Group { losses: by.clone(), tensors, runs, updates: 0 });
            }
        }
        let updates = Updates::new(&device, optimizer.update())?;
        Ok(Trainer { losses: losses.to_vec(), optimizer, updates, gradients, moments, groups, steps: 0 })
    }

    /// The optimizer, to change its rates.
    pub fn optimizer(&mut self) -> &mut Optimizer {
        &mut self.optimizer
    }

    /// One step by one of the losses.
    pub fn step<R: FromResults>(
        &mut self,
        session: &mut Session,
        loss: usize,
        arguments: &[AnyArgument<'_>],
    ) -> Result<R> {
        self.optimizer.check()?;
        let most = u64::from(u32::MAX);
        let limit = || Error::Limit { what: "training".into(), limit: "steps", allowed: most, found: most + 1 };
        let step = self.steps.checked_add(1).ok_or_else(limit)?;
        self.updates.launches.clear();
        for group in self.groups.iter().filter(|group| group.losses[loss]) {
            for run in &group.runs {
                let launch = self.launch(session, run, group.updates + 1);
                self.updates.launches.push(launch);
            }
        }
        let results =
            session.run(self.losses[loss], arguments, self.steps, Some(&self.gradients), Some(&self.updates))?;
        self.steps = step;
        self.groups.iter_mut().filter(|group| group.losses[loss]).for_each(|group| group.updates += 1);
        R::from_results(results)
    }

    /// The gradients of one of the losses without an update of parameters.
    pub fn gradients(
        &mut self,
        session: &mut Session,
        loss: usize,
        arguments: &[AnyArgument<'_>],
    ) -> Result<Gradients> {
        let results = session.run(self.losses[loss], arguments, self.steps, Some(&self.gradients), None)?;
        let value = Loss::from_results(results)?.get()?;
        let is_trained = |k: &usize| self.groups.iter().any(|group| group.losses[loss] && group.tensors[*k]);
        let mut tensors = vec![];
        for (k, tensor) in session.model().tensors.iter().enumerate().filter(|(k, _)| is_trained(k)) {
            let shape = sizes(tensor.one());
            for (row, name) in tensor.names().into_iter().enumerate() {
                let mut values = vec![0.0; shape.iter().product()];
                self.gradients.read(session.device(), k, row, 0, &mut values)?;
                tensors.push((name, shape.clone(), values));
            }
        }
        Ok(Gradients { loss: value, tensors })
    }

    fn launch(&self, session: &Session, run: &Run, step: u32) -> Launch {
        let [own, trained] = run.starts;
        let kept = [&self.gradients].into_iter().chain(&self.moments).map(|memory| memory.spot(trained));
        let places = [session.parameters().spot(own)].into_iter().chain(kept).map(Stretch::from).collect();
        let elements = run.bytes / ELEMENT.unsigned_abs();
        let groups = elements.div_ceil(ELEMENTS_PER_GROUP);
        Launch { places, words: self.optimizer.words(groups as u32, elements as u32, step), groups }
    }
}

impl FromResults for Loss {
    fn from_results(results: Vec<AnyTensor>) -> Result<Self> {
        Ok(Loss { value: next(&mut results.into_iter())? })
    }
}

macro_rules! with_metrics {
    ($($($T:ident)+;)+) => { $(
        impl<$($T: Element),+> FromResults for (Loss, $(Tensor<$T>,)+) {
            fn from_results(results: Vec<AnyTensor>) -> Result<Self> {
                let mut results = results.into_iter();
                Ok((Loss { value: next(&mut results)? }, $(next::<$T>(&mut results)?,)+))
            }
        }
    )+ };
}

with_metrics! { A; A B; A B C; A B C D; A B C D E; }
