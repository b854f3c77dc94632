//! The dimensions of a call, from what its arguments are given as.
//!
//! A shape fixes its axes one by one, a bare length the product of all of them. Equations with one unknown are solved
//! until nothing more is found; then every size is compared with what the dimensions say, so the error names the
//! argument and both values.

use meganeura_shaders::dim::{Dim, Env, Shape, Solved, product};
use meganeura_shaders::schedule::Schedule;

use crate::{Error, Result};

/// How the size of an argument is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Given {
    /// The number of its elements.
    Length(usize),
    /// The size of each axis.
    Shape(Vec<usize>),
}

/// The dimensions at which the arguments have these sizes; `given` has one for each argument of the schedule.
pub fn bind(schedule: &Schedule, given: &[Given]) -> Result<Env> {
    let symbols = &schedule.symbols;
    let declared = symbols.declared();
    let mut known: Vec<Option<i64>> = vec![None; declared.len()];
    if given.len() != schedule.arguments.len() {
        let (expected, found) = (schedule.arguments.len(), given.len());
        return Err(Error::Argument {
            entry: schedule.name.clone(),
            argument: "arguments".into(),
            problem: format!("expected {expected} of them, found {found}"),
        });
    }
    let mut equations: Vec<(usize, Dim, i64)> = vec![];
    for (k, (argument, given)) in schedule.arguments.iter().zip(given).enumerate() {
        match given {
            Given::Length(length) => equations.push((k, product(&argument.shape), *length as i64)),
            Given::Shape(shape) if shape.len() == argument.shape.len() => {
                equations.extend(argument.shape.iter().zip(shape).map(|(dim, size)| (k, dim.clone(), *size as i64)));
            }
            Given::Shape(shape) => {
                let (expected, found) = (symbols.show_shape(&argument.shape), format!("{shape:?}"));
                return Err(fault(schedule, k, format!("expected shape {expected}, found {found}")));
            }
        }
    }
    loop {
        let before = known.clone();
        for (k, dim, size) in &equations {
            match symbols.solve(&known, dim, *size) {
                Solved::Found { place, value } => known[place] = Some(value),
                Solved::Inexact { place, rest, factor } => {
                    let name = declared[place].name;
                    let rest = if rest == 0 { String::new() } else { format!(" plus {rest}") };
                    let problem = format!("expected a multiple of {factor}{rest} (for `{name}`), found {size}");
                    return Err(fault(schedule, *k, problem));
                }
                Solved::Known(_) | Solved::Open => {}
            }
        }
        if known == before {
            break;
        }
    }
    let open = known.iter().position(Option::is_none);
    if let Some(place) = open {
        let name = declared[place].name;
        let uses = |shape: &Shape| shape.iter().any(|dim| dim.symbols().contains(&declared[place].symbol));
        let k = schedule.arguments.iter().position(|argument| uses(&argument.shape)).unwrap_or(0);
        let problem = format!("its length alone does not tell `{name}`; pass a shape with it, as in `(&data, [..])`");
        return Err(fault(schedule, k, problem));
    }
    let values: Vec<i64> = known.into_iter().flatten().collect();
    for (k, dim, size) in &equations {
        let known: Vec<Option<i64>> = values.iter().copied().map(Some).collect();
        let Solved::Known(expected) = symbols.solve(&known, dim, *size) else { continue };
        if expected != *size {
            let shape = symbols.show_shape(&schedule.arguments[*k].shape);
            return Err(fault(schedule, *k, format!("expected {expected} ({shape}), found {size}")));
        }
    }
    symbols.bind(&values).map_err(|out| Error::Dimension { entry: schedule.name.clone(), problem: out.to_string() })
}

fn fault(schedule: &Schedule, argument: usize, problem: String) -> Error {
    let argument = schedule.arguments[argument].name.clone();
    Error::Argument { entry: schedule.name.clone(), argument, problem }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use meganeura_shaders::prog::DType;
    use meganeura_shaders::schedule::Argument;

    fn schedule() -> Schedule {
        let mut schedule = Schedule { name: "logits".into(), ..Schedule::default() };
        let (batch, seq) = (schedule.symbols.declare("batch", 1, 256, 1), schedule.symbols.declare("seq", 1, 16, 1));
        let argument = |name: &str, shape| Argument { name: name.into(), dtype: DType::F32, shape, below: None };
        schedule.arguments.push(argument("x", vec![batch.clone(), seq, Dim::from(4)]));
        schedule.arguments.push(argument("y", vec![batch]));
        schedule
    }

    fn values(given: &[Given]) -> Result<Vec<i64>> {
        let schedule = schedule();
        let env = bind(&schedule, given)?;
        Ok(schedule.symbols.declared().iter().map(|bounds| bounds.dim.eval(&env)).collect())
    }

    #[test]
    fn lengths_and_shapes_together_tell_all_dimensions() {
        assert_eq!(values(&[Given::Length(24), Given::Length(2)]).unwrap(), [2, 3]);
        assert_eq!(values(&[Given::Shape(vec![5, 2, 4]), Given::Length(5)]).unwrap(), [5, 2]);
    }

    #[test]
    fn errors_name_the_argument_and_both_values() {
        let error = |given: &[Given]| values(given).unwrap_err().to_string();
        let text = error(&[Given::Length(25), Given::Length(2)]);
        assert!(text.contains("`x`") && text.contains("multiple of 8") && text.contains("25"), "{text}");
        let text = error(&[Given::Shape(vec![5, 2, 4]), Given::Length(6)]);
        assert!(text.contains("`y`") && text.contains('5') && text.contains('6'), "{text}");
        let text = error(&[Given::Shape(vec![5, 2, 3]), Given::Length(5)]);
        assert!(text.contains("`x`") && text.contains("expected 4") && text.contains("found 3"), "{text}");
        let text = error(&[Given::Shape(vec![300, 2, 4]), Given::Length(300)]);
        assert!(text.contains("`batch` must lie in 1..=256, found 300"), "{text}");
        let text = error(&[Given::Shape(vec![0, 2, 4]), Given::Length(0)]);
        assert!(text.contains("`batch` must lie in 1..=256, found 0"), "{text}");
    }
}
