//! The dimensions of a call from its arguments.

use super::Given;
use crate::{Error, Result};
use meganeura_shaders::dim::{Bounds, Dim, Env, OutOfBounds, Symbols, product};

/// A tensor argument as an entry declares it, and what a call gives for it.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its declared sizes.
    pub shape: &'a [Dim],
    /// What was passed.
    pub given: &'a Given,
}

/// Values that are tried for a dimension that occurs in a product with itself.
const TRIES: i64 = 1 << 16;

/// The value of every symbol of an entry.
///
/// `scalars` are the dimensions that the call passes as numbers, by name. Fails with [`Error::Mismatch`] if an
/// argument does not fit, a dimension is out of its bounds or cannot be known.
pub fn solve(symbols: &Symbols, scalars: &[(&str, i64)], arguments: &[Wanted]) -> Result<Env> {
    let declared = symbols.declared();
    let values = declared.iter().map(|bounds| (bounds.low == bounds.high).then_some(bounds.low)).collect();
    let mut solver = Solver { symbols, values, declared };
    for &(name, value) in scalars {
        let known = solver.declared.iter().position(|bounds| bounds.name == name);
        if let Some(index) = known {
            solver.values[index] = Some(value);
        }
    }
    let mut facts = Vec::new();
    for argument in arguments {
        argument.facts(symbols, &mut facts)?;
    }
    solver.run(&facts)?;
    if solver.values.contains(&None) {
        let mut hints = Vec::new();
        arguments.iter().for_each(|argument| argument.hints(&mut hints));
        solver.run(&hints)?;
        solver.run(&facts)?;
    }
    if let Some(fact) = facts.iter().find(|fact| solver.unknown(&fact.dim).next().is_some()) {
        return Err(Error::Mismatch {
            name: fact.argument.name.to_string(),
            expected: format!("a shape with it, since more than one size of {} is unknown", fact.declared(symbols)),
            found: fact.argument.found(),
        });
    }
    let env = solver.env()?;
    for fact in &facts {
        if fact.dim.eval(&env) != fact.value {
            return Err(fact.argument.mismatch(symbols, &env));
        }
    }
    Ok(env)
}

/// An argument says that this dimension has this value.
struct Fact<'a> {
    argument: Wanted<'a>,
    dim: Dim,
    value: i64,
}

impl Fact<'_> {
    fn declared(&self, symbols: &Symbols) -> String {
        symbols.show_shape(self.argument.shape)
    }
}

impl<'a> Wanted<'a> {
    fn facts(&self, symbols: &Symbols, facts: &mut Vec<Fact<'a>>) -> Result<()> {
        match self.given {
            Given::Length { elements, .. } => {
                let dim = product(self.shape);
                facts.push(Fact { argument: *self, dim, value: *elements as i64 });
            }
            Given::Shape(sizes) if sizes.len() == self.shape.len() => {
                for (dim, &size) in self.shape.iter().zip(sizes) {
                    facts.push(Fact { argument: *self, dim: dim.clone(), value: size as i64 });
                }
            }
            Given::Shape(_) => {
                return Err(Error::Mismatch {
                    name: self.name.to_string(),
                    expected: format!("the shape {}", symbols.show_shape(self.shape)),
                    found: self.found(),
                });
            }
        }
        Ok(())
    }

    fn hints(&self, hints: &mut Vec<Fact<'a>>) {
        if let (Given::Length { rows: Some((count, row)), .. }, [first, rest @ ..]) = (self.given, self.shape) {
            hints.push(Fact { argument: *self, dim: first.clone(), value: *count as i64 });
            hints.push(Fact { argument: *self, dim: product(rest), value: *row as i64 });
        }
    }

    fn found(&self) -> String {
        match self.given {
            Given::Length { elements: 1, .. } => "1 element".to_string(),
            Given::Length { elements, .. } => format!("{elements} elements"),
            Given::Shape(sizes) => format!("{sizes:?}"),
        }
    }

    fn mismatch(&self, symbols: &Symbols, env: &Env) -> Error {
        let (declared, sizes) = (symbols.show_shape(self.shape), env.shape(self.shape));
        let sizes_of = if self.shape.iter().all(|dim| dim.constant().is_some()) {
            declared
        } else {
            format!("{declared} = {sizes:?}")
        };
        let expected = match self.given {
            Given::Length { .. } => format!("{} elements for {sizes_of}", sizes.iter().product::<i64>()),
            Given::Shape(_) => format!("the shape {sizes_of}"),
        };
        Error::Mismatch { name: self.name.to_string(), expected, found: self.found() }
    }
}

struct Solver<'a> {
    symbols: &'a Symbols,
    declared: Vec<Bounds<'a>>,
    /// Of the declared dimensions.
    values: Vec<Option<i64>>,
}

impl Solver<'_> {
    /// Solves one unknown after the other until no fact has exactly one.
    fn run(&mut self, facts: &[Fact]) -> Result<()> {
        loop {
            let mut progress = false;
            for fact in facts {
                let mut unknown = self.unknown(&fact.dim);
                let (Some(index), None) = (unknown.next(), unknown.next()) else { continue };
                drop(unknown);
                self.values[index] = Some(self.solve_one(fact, index)?);
                progress = true;
            }
            if !progress {
                return Ok(());
            }
        }
    }

    /// Declared dimensions without a value that `dim` depends on.
    fn unknown<'s>(&'s self, dim: &Dim) -> impl Iterator<Item = usize> + use<'s> {
        let symbols = dim.symbols();
        (0..self.values.len())
            .filter(move |&index| self.values[index].is_none() && symbols.contains(&self.declared[index].symbol))
    }

    fn solve_one(&self, fact: &Fact, index: usize) -> Result<i64> {
        let bounds = &self.declared[index];
        // Given directly, a value out of its bounds is reported as such in the end.
        if fact.dim == bounds.dim {
            return Ok(fact.value);
        }
        let refuse = |env: &Env| {
            let sizes: Vec<String> = fact.argument.shape.iter().map(|dim| self.show_known(dim, env)).collect();
            Err(Error::Mismatch {
                name: fact.argument.name.to_string(),
                expected: format!("[{}] for some `{}`", sizes.join(", "), bounds.name),
                found: fact.argument.found(),
            })
        };
        let env = self.env_with(None)?;
        match fact.dim.linear_in(bounds.symbol, &env) {
            Some((constant, factor)) if factor != 0 => {
                let rest = fact.value - constant;
                if rest % factor != 0 {
                    return refuse(&env);
                }
                // The symbol counts steps from the lowest multiple.
                Ok(bounds.low % bounds.step + bounds.step * (rest / factor))
            }
            // A size of zero leaves it open; the lowest value is as good as any.
            Some((constant, _)) if constant == fact.value => Ok(bounds.low),
            Some(_) => refuse(&env),
            None => {
                let values = (0..TRIES).map(|step| bounds.low + step * bounds.step).take_while(|&v| v <= bounds.high);
                for value in values {
                    let env = self.env_with(Some((index, value)))?;
                    if fact.dim.eval(&env) == fact.value {
                        return Ok(value);
                    }
                }
                refuse(&env)
            }
        }
    }

    fn show_known(&self, dim: &Dim, env: &Env) -> String {
        if self.unknown(dim).next().is_none() { dim.eval(env).to_string() } else { self.symbols.show(dim) }
    }

    /// All symbols; unknown dimensions have their lowest values.
    fn env_with(&self, one: Option<(usize, i64)>) -> Result<Env> {
        let value = |(index, value): (usize, &Option<i64>)| match one {
            Some((other, value)) if other == index => value,
            _ => value.unwrap_or(self.declared[index].low),
        };
        self.bind(&self.values.iter().enumerate().map(value).collect::<Vec<_>>())
    }

    fn env(&self) -> Result<Env> {
        let known: Vec<i64> = self.values.iter().map_while(|value| *value).collect();
        self.bind(&known)
    }

    fn bind(&self, values: &[i64]) -> Result<Env> {
        self.symbols.bind(values).map_err(|OutOfBounds { name, value, low, high, step }| {
            let step = if step == 1 { String::new() } else { format!(" in steps of {step}") };
            Error::Mismatch {
                name,
                expected: format!("a value from {low} to {high}{step}"),
                found: value.map_or("none".to_string(), |value| value.to_string()),
            }
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    struct Entry {
        symbols: Symbols,
        batch: Dim,
        seq: Dim,
        height: Dim,
    }

    fn entry() -> Entry {
        let mut symbols = Symbols::default();
        let batch = symbols.declare("batch", 1, 256, 1);
        let seq = symbols.declare("seq", 1, 64, 1);
        let height = symbols.declare("h", 16, 2048, 16);
        Entry { symbols, batch, seq, height }
    }

    fn length(elements: usize) -> Given {
        Given::Length { elements, rows: None }
    }

    fn shape(sizes: &[usize]) -> Given {
        Given::Shape(sizes.to_vec())
    }

    /// The values of batch, seq and h; h is passed as a number.
    fn dims(entry: &Entry, arguments: &[(Vec<Dim>, Given)]) -> std::result::Result<[i64; 3], String> {
        let names = ["x", "y", "z"];
        let wanted: Vec<Wanted> =
            arguments.iter().zip(names).map(|((shape, given), name)| Wanted { name, shape, given }).collect();
        let env = solve(&entry.symbols, &[("h", 32)], &wanted).map_err(|error| error.to_string())?;
        Ok([&entry.batch, &entry.seq, &entry.height].map(|dim| dim.eval(&env)))
    }

    fn n(value: i64) -> Dim {
        Dim::from(value)
    }

    #[test]
    fn one_unknown_follows_from_a_length() {
        let e = entry();
        let (b, s) = (e.batch.clone(), e.seq.clone());
        assert_eq!(
            dims(&e, &[(vec![b.clone(), n(784)], length(7 * 784)), (vec![s.clone()], length(5))]),
            Ok([7, 5, 32])
        );
        // In whatever order: y gives seq, then x gives batch.
        let x = vec![b.clone(), s.clone(), n(3)];
        assert_eq!(dims(&e, &[(x, length(6 * 4 * 3)), (vec![s.clone()], length(4))]), Ok([6, 4, 32]));
        // Polynomials.
        let odd = vec![&(&n(2) * &s) + &n(1)];
        assert_eq!(dims(&e, &[(odd, length(41)), (vec![b.clone()], length(1))]), Ok([1, 20, 32]));
        assert_eq!(
            dims(&e, &[(vec![b.clone(), b.clone()], length(144)), (vec![s.clone()], length(2))]),
            Ok([12, 2, 32])
        );
    }

    #[test]
    fn shapes_give_every_dimension() {
        let e = entry();
        let x = vec![e.batch.clone(), e.seq.clone()];
        assert_eq!(dims(&e, &[(x.clone(), shape(&[3, 11]))]), Ok([3, 11, 32]));
        let text = dims(&e, &[(x, shape(&[33]))]).unwrap_err();
        assert_eq!(text, "`x`: expected the shape [batch, seq], found [33]");
    }

    #[test]
    fn rows_of_a_loader_decide_only_what_is_open() {
        let e = entry();
        let rows = |rows: usize, row: usize| Given::Length { elements: rows * row, rows: Some((rows, row)) };
        let x = vec![e.batch.clone(), e.seq.clone()];
        assert_eq!(dims(&e, &[(x, rows(4, 9))]), Ok([4, 9, 32]));
        assert_eq!(dims(&e, &[(vec![e.seq.clone()], rows(1, 9)), (vec![e.batch.clone()], rows(2, 1))]), Ok([2, 9, 32]));
    }

    #[test]
    fn what_does_not_fit_names_the_argument_and_both_values() {
        let e = entry();
        let (b, s) = (e.batch.clone(), e.seq.clone());
        let image = vec![b.clone(), n(784)];
        for (arguments, text) in [
            (
                vec![(image.clone(), length(785)), (vec![s.clone()], length(1))],
                "`x`: expected [batch, 784] for some `batch`, found 785 elements",
            ),
            (
                vec![(image.clone(), length(784 * 2)), (vec![b.clone()], length(3)), (vec![s.clone()], length(1))],
                "`y`: expected 2 elements for [batch] = [2], found 3 elements",
            ),
            (
                vec![(image.clone(), shape(&[2, 783])), (vec![s.clone()], length(1))],
                "`x`: expected the shape [batch, 784] = [2, 784], found [2, 783]",
            ),
            (
                vec![(vec![b.clone()], length(257)), (vec![s.clone()], length(1))],
                "`batch`: expected a value from 1 to 256, found 257",
            ),
            (
                vec![(vec![b.clone()], length(0)), (vec![s.clone()], length(1))],
                "`batch`: expected a value from 1 to 256, found 0",
            ),
            (
                vec![(vec![b.clone(), s.clone()], length(12))],
                "`x`: expected a shape with it, since more than one size of [batch, seq] is unknown, found 12 elements",
            ),
            (vec![(vec![b.clone()], length(12))], "`seq`: expected a value from 1 to 64, found none"),
            (
                vec![(vec![n(3)], length(4)), (vec![b.clone()], length(1)), (vec![s.clone()], length(1))],
                "`x`: expected 3 elements for [3], found 4 elements",
            ),
            (
                vec![(vec![b.clone(), b.clone()], length(145)), (vec![s.clone()], length(1))],
                "`x`: expected [batch, batch] for some `batch`, found 145 elements",
            ),
        ] {
            assert_eq!(dims(&e, &arguments), Err(text.to_string()));
        }
    }

    #[test]
    fn stepped_dimensions_count_in_steps() {
        let e = entry();
        let solve_h = |size: usize| {
            let (x, y) = ([e.height.clone(), n(2)], [e.batch.clone(), e.seq.clone()]);
            let (given, ones) = (length(size), shape(&[1, 1]));
            let wanted =
                [Wanted { name: "x", shape: &x, given: &given }, Wanted { name: "y", shape: &y, given: &ones }];
            solve(&e.symbols, &[], &wanted).map(|env| e.height.eval(&env)).map_err(|error| error.to_string())
        };
        assert_eq!(solve_h(96), Ok(48));
        assert_eq!(solve_h(100), Err("`x`: expected [h, 2] for some `h`, found 100 elements".to_string()));
        let given = shape(&[40, 1, 1]);
        let x = [e.height.clone(), e.batch.clone(), e.seq.clone()];
        let error = solve(&e.symbols, &[], &[Wanted { name: "x", shape: &x, given: &given }]).unwrap_err();
        assert_eq!(error.to_string(), "`h`: expected a value from 16 to 2048 in steps of 16, found 40");
    }
}
