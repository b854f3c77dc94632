//! What a plan launches at known dimensions, in words: for profiles and for messages.

use meganeura_shaders::dim::Env;
use meganeura_shaders::schedule::{Item, LoopId, Plan, Schedule, Step};

use super::facts::unroll;
use crate::Result;

/// The steps of a plan at known dimensions.
#[derive(Debug)]
pub(crate) struct Steps {
    /// The model's name.
    pub(crate) model: String,
    /// The entry's.
    pub(crate) entry: String,
    /// Its dimensions.
    pub(crate) sizes: Vec<(String, i64)>,
    /// The steps of the text, loop bodies once.
    pub(crate) texts: Vec<TextStep>,
    /// What is launched, in order.
    pub(crate) launched: Vec<Launched>,
}

/// A step of the text.
#[derive(Debug)]
pub(crate) struct TextStep {
    /// The names of its kernels.
    pub(crate) kernel: String,
    /// What it computes, as the language names it.
    pub(crate) what: String,
    /// The layer that it serves.
    pub(crate) layer: String,
    /// Bytes that a launch moves.
    pub(crate) bytes: u64,
    /// Floating-point operations of a launch.
    pub(crate) flops: u64,
    /// The loops around it, outermost first.
    loops: Vec<LoopId>,
}

/// A launch of a step.
#[derive(Debug)]
pub(crate) struct Launched {
    /// The number of the step in the text.
    pub(crate) number: usize,
    /// The indices of all loops of the schedule.
    pub(crate) index: Vec<i64>,
}

impl Steps {
    pub(super) fn new(model: &str, schedule: &Schedule, plan: &Plan, env: &Env) -> Result<Steps> {
        let (mut texts, mut launched) = (vec![], vec![]);
        collect(&plan.items, &mut vec![], env, &mut texts);
        unroll(schedule, plan, env, |_, number, index| {
            launched.push(Launched { number, index: index.to_vec() });
            Ok(())
        })?;
        let sizes =
            schedule.symbols.declared().into_iter().map(|bounds| (bounds.name.to_string(), bounds.dim.eval(env)));
        let (model, entry) = (model.to_string(), schedule.name.clone());
        Ok(Steps { model, entry, sizes: sizes.collect(), texts, launched })
    }

    /// Steps without sizes or loops, each launched once.
    #[cfg(test)]
    pub(crate) fn named(model: &str, entry: &str, kernels: &[&str]) -> Steps {
        let text = |kernel: &&str| TextStep {
            kernel: kernel.to_string(),
            what: "@ \"quoted\" \\".into(),
            layer: "blocks".into(),
            bytes: 1000,
            flops: 2000,
            loops: vec![],
        };
        let launched = (0..kernels.len()).map(|number| Launched { number, index: vec![] }).collect();
        let texts = kernels.iter().map(text).collect();
        Steps { model: model.into(), entry: entry.into(), sizes: vec![("batch".into(), 3)], texts, launched }
    }

    /// The step of the text that is launched.
    pub(crate) fn text(&self, launched: &Launched) -> &TextStep {
        &self.texts[launched.number]
    }

    /// The iterations of the loops around a launch, outermost first.
    pub(crate) fn iteration(&self, launched: &Launched) -> Vec<i64> {
        self.text(launched).loops.iter().map(|id| launched.index[*id]).collect()
    }
}

fn collect(items: &[Item], around: &mut Vec<LoopId>, env: &Env, texts: &mut Vec<TextStep>) {
    for item in items {
        match item {
            Item::Step(step) => texts.push(described(step, around, env)),
            Item::Loop { id, body } => {
                around.push(*id);
                collect(body, around, env, texts);
                around.pop();
            }
        }
    }
}

fn described(step: &Step, around: &[LoopId], env: &Env) -> TextStep {
    let mut kernels: Vec<(&str, usize)> = vec![];
    for member in &step.members {
        let name = member.kernel.name();
        match kernels.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => kernels.push((name, 1)),
        }
    }
    let shown = |(name, count): (&str, usize)| if count == 1 { name.into() } else { format!("{name} ×{count}") };
    let kernel = kernels.into_iter().map(shown).collect::<Vec<String>>().join(" + ");
    let origin = step.origins.first().cloned().unwrap_or_default();
    let backward = if origin.backward { "∂ " } else { "" };
    TextStep {
        kernel,
        what: format!("{backward}{}", origin.what),
        layer: origin.path,
        bytes: step.bytes(env),
        flops: step.flops(env),
        loops: around.to_vec(),
    }
}
