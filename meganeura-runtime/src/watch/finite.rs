//! Looks for values that are not finite in what a step made.

use std::fmt;

use meganeura_shaders::dim::{Dim, Env};
use meganeura_shaders::prog::DType;
use meganeura_shaders::schedule::{self, ALIGN, BufferId, ELEMENT, Member, Operand, Schedule, steps};

use crate::device::Device;
use crate::replay::{Place, Recipe, Steps, start};
use crate::{Error, Result};

/// Which step first made a value that is not finite, and where.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NotFinite {
    /// The model's name.
    pub model: String,
    /// The entry's; of a training step `loss, training`.
    pub entry: String,
    /// The number of the step in the schedule.
    pub step: usize,
    /// Its kernels.
    pub kernel: String,
    /// What it computes, as the language names it.
    pub what: String,
    /// The dotted path of the layer that it serves, empty at the top.
    pub layer: String,
    /// The iterations of the loops around it, outermost first.
    pub iteration: Vec<i64>,
    /// NaN or an infinity.
    pub value: f32,
    /// The first place of such a value in the result.
    pub position: Vec<usize>,
    /// The shape of the result.
    pub shape: Vec<usize>,
    /// What it read that was not finite before: the name of an argument or tensor, a value, and its first place.
    pub read: Option<(String, f32, Vec<usize>)>,
}

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, entry, step, kernel, what, layer, iteration, value, position, shape, read } = self;
        write!(f, "step {step} of `{model}.{entry}` makes {value} at {position:?} of {shape:?}: {kernel} `{what}`")?;
        if !layer.is_empty() {
            write!(f, " of layer `{layer}`")?;
        }
        match iteration.as_slice() {
            [] => {}
            [one] => write!(f, ", iteration {one}")?,
            more => write!(f, ", iterations {more:?}")?,
        }
        match read {
            Some((name, value, position)) => write!(f, "; it reads {value} at {position:?} of `{name}`"),
            None => Ok(()),
        }
    }
}

/// A float and where it stands.
type Found = Option<(f32, Vec<usize>)>;

/// Fails if a launched step made a float that is not finite.
pub(super) fn check<'a>(
    device: &Device,
    schedule: &Schedule,
    recipe: &Recipe,
    described: &Steps,
    step: usize,
    locate: &dyn Fn(BufferId, u64) -> Result<Place<'a>>,
) -> Result<()> {
    let launched = &described.launched[step];
    let Some(data) = steps(&recipe.plan(schedule).items).into_iter().nth(launched.number) else { return Ok(()) };
    let look = Look { device, env: &recipe.env, index: &launched.index, locate };
    for member in data.members.iter().filter(|member| member.dtype == DType::F32) {
        let Some((value, position)) = look.first(&member.write, &member.shape)? else { continue };
        let text = described.text(launched);
        let shape = recipe.env.shape(&member.shape).into_iter().map(|size| size.unsigned_abs() as usize);
        return Err(Error::NotFinite(Box::new(NotFinite {
            model: described.model.clone(),
            entry: described.entry.clone(),
            step: launched.number,
            kernel: text.kernel.clone(),
            what: text.what.clone(),
            layer: text.layer.clone(),
            iteration: described.iteration(launched),
            value,
            position,
            shape: shape.collect(),
            read: look.read(schedule, &data.members, member)?,
        })));
    }
    Ok(())
}

/// A look at the memory of a call after one of its launches.
struct Look<'l, 'a> {
    device: &'l Device,
    env: &'l Env,
    /// The indices of the loops.
    index: &'l [i64],
    locate: &'l dyn Fn(BufferId, u64) -> Result<Place<'a>>,
}

impl Look<'_, '_> {
    /// What a member read that is not finite, if none of its launch has written over it.
    fn read(
        &self,
        schedule: &Schedule,
        launch: &[Member],
        member: &Member,
    ) -> Result<Option<(String, f32, Vec<usize>)>> {
        for (operand, shape, dtype) in &member.reads {
            let Operand::Memory(place) = operand else { continue };
            let own = self.span(place, shape);
            let is_written = |other: &Member| {
                let written = self.span(&other.write, &other.shape);
                other.write.buffer == place.buffer && own.start < written.end && written.start < own.end
            };
            if *dtype == DType::F32
                && !launch.iter().any(is_written)
                && let Some((value, position)) = self.first(place, shape)?
            {
                return Ok(Some((schedule.buffers[place.buffer].name.clone(), value, position)));
            }
        }
        Ok(None)
    }

    fn sizes(&self, shape: &[Dim]) -> Vec<usize> {
        self.env.shape(shape).into_iter().map(|size| size.max(0).unsigned_abs() as usize).collect()
    }

    /// Words from one element of each axis to the next.
    fn strides(&self, place: &schedule::Place, sizes: &[usize]) -> Vec<usize> {
        let mut strides = vec![1; sizes.len()];
        for axis in (1..sizes.len()).rev() {
            strides[axis - 1] = strides[axis] * sizes[axis];
        }
        for (stride, lead) in strides.iter_mut().zip(&place.lead) {
            *stride = (lead.stride.eval(self.env) / ELEMENT).unsigned_abs() as usize;
        }
        strides
    }

    /// The bytes of a buffer that a value lies in; nothing of an empty one.
    fn span(&self, place: &schedule::Place, shape: &[Dim]) -> std::ops::Range<u64> {
        let sizes = self.sizes(shape);
        if sizes.contains(&0) {
            return 0..0;
        }
        let lead = place.lead.iter().map(|lead| lead.first.eval(self.env) * lead.stride.eval(self.env)).sum::<i64>();
        let first = (start(place, self.env, self.index) + lead).unsigned_abs();
        let strides = self.strides(place, &sizes);
        let last: usize = sizes.iter().zip(&strides).map(|(size, stride)| (size - 1) * stride).sum();
        first..first + (last as u64 + 1) * ELEMENT.unsigned_abs()
    }

    /// The first float of a value that is not finite.
    fn first(&self, place: &schedule::Place, shape: &[Dim]) -> Result<Found> {
        let span = self.span(place, shape);
        if span.is_empty() {
            return Ok(None);
        }
        // Memory is located in whole lines.
        let line = span.start - span.start % ALIGN.unsigned_abs();
        let mut words = vec![0u32; ((span.end - span.start) / 4) as usize];
        match (self.locate)(place.buffer, line)? {
            Place::Device(mut stretch) => {
                stretch.offset += span.start - line;
                self.device.download(stretch.buffer.at(stretch.offset), bytemuck::cast_slice_mut(&mut words))?;
            }
            Place::Program(values, byte) => {
                let from = ((byte + span.start - line) / 4) as usize;
                words.iter_mut().zip(values.get(from..).unwrap_or_default()).for_each(|(to, from)| *to = *from);
            }
        }
        let sizes = self.sizes(shape);
        Ok(search(&words, &sizes, &self.strides(place, &sizes)))
    }
}

/// The first element in row-major order that is not finite.
fn search(words: &[u32], sizes: &[usize], strides: &[usize]) -> Found {
    let count: usize = sizes.iter().product();
    let place = |element: usize| {
        let mut rest = element;
        let mut position = vec![0; sizes.len()];
        for (at, size) in position.iter_mut().zip(sizes).rev() {
            (*at, rest) = (rest % size, rest / size);
        }
        position
    };
    // Rows of the last axis are dense or a single stride apart, so only their beginnings need a position.
    let (row, step) = (sizes.last().copied().unwrap_or(1), strides.last().copied().unwrap_or(1));
    (0..count).step_by(row.max(1)).find_map(|first| {
        let start: usize = place(first).iter().zip(strides).map(|(at, stride)| at * stride).sum();
        (0..row).find_map(|k| {
            let value = f32::from_bits(*words.get(start + k * step)?);
            (!value.is_finite()).then(|| (value, place(first + k)))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_found_in_padded_rows_and_padding_is_no_value() {
        let mut values = vec![1.0f32; 64];
        // Three rows of 5, 16 apart; padding holds whatever was there.
        values[7] = f32::NAN;
        values[16 + 5] = f32::INFINITY;
        let words = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<u32>>();
        assert_eq!(search(&words(&values), &[3, 5], &[16, 1]), None);
        values[32 + 2] = f32::NEG_INFINITY;
        values[32 + 4] = f32::NAN;
        assert_eq!(search(&words(&values), &[3, 5], &[16, 1]), Some((f32::NEG_INFINITY, vec![2, 2])));
        assert_eq!(search(&words(&[f32::INFINITY]), &[], &[]), Some((f32::INFINITY, vec![])));
        assert_eq!(search(&words(&values), &[0, 5], &[16, 1]), None);
    }
}
