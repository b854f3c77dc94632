//! Dimensions: polynomials over bounded symbols, always in normal form, so `==` is equality.
//!
//! A dimension with a step is `step · k + rest` over the symbol `k`, and [`Symbols::ceil_div`] interns what does
//! not divide as a *derived* symbol, so division and equality stay syntactic. Values come late: [`Symbols::bind`]
//! makes an [`Env`] from those of a call, and [`Dim::eval`] reads it.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Add, Mul, Sub};

use serde::{Deserialize, Serialize};

/// A runtime dimension, a bounded argument, or a rounded quotient of them; dense for each model.
pub type Symbol = u16;

/// The sorted multiset of the symbols that are factors.
type Monomial = Vec<Symbol>;

/// A shape of a tensor, outermost axis first.
pub type Shape = Vec<Dim>;

/// A constant and terms `coefficient · monomial`, sorted, none zero. A constant alone owns no memory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Dim {
    terms: Vec<(Monomial, i64)>,
    constant: i64,
}

impl From<i64> for Dim {
    fn from(constant: i64) -> Dim {
        Dim { terms: vec![], constant }
    }
}

impl Dim {
    /// The symbol itself.
    pub fn symbol(symbol: Symbol) -> Dim {
        Dim::term(vec![symbol], 1)
    }

    fn term(monomial: Monomial, coefficient: i64) -> Dim {
        Dim::normal(0, vec![(monomial, coefficient)])
    }

    fn normal(mut constant: i64, mut terms: Vec<(Monomial, i64)>) -> Dim {
        terms.retain(|(monomial, c)| {
            if monomial.is_empty() {
                constant += c;
            }
            !monomial.is_empty()
        });
        terms.sort();
        terms.dedup_by(|next, sum| {
            next.0 == sum.0 && {
                sum.1 += next.1;
                true
            }
        });
        terms.retain(|(_, c)| *c != 0);
        Dim { terms, constant }
    }

    /// The value, where no symbol is left.
    pub fn constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// Whether this is the number 1, along which broadcasting stretches.
    pub fn is_one(&self) -> bool {
        self.constant == 1 && self.terms.is_empty()
    }

    /// Every symbol that is a factor of some term.
    pub fn symbols(&self) -> BTreeSet<Symbol> {
        self.terms.iter().flat_map(|(monomial, _)| monomial).copied().collect()
    }

    /// Graded lexicographic order is multiplicative, which is what exact division rests on.
    fn leading(&self) -> Option<(Monomial, i64)> {
        let constant = (self.constant != 0).then(|| (vec![], self.constant));
        self.terms.iter().max_by_key(|(m, _)| (m.len(), m.clone())).cloned().or(constant)
    }

    /// The quotient when `by` divides without a rest.
    pub fn div(&self, by: &Dim) -> Option<Dim> {
        let (divisor, factor) = by.leading()?;
        let (mut rest, mut quotient) = (self.clone(), Dim::default());
        while let Some((mut monomial, coefficient)) = rest.leading() {
            for symbol in &divisor {
                monomial.remove(monomial.iter().position(|s| s == symbol)?);
            }
            let term = (coefficient % factor == 0).then(|| Dim::term(monomial, coefficient / factor))?;
            rest = &rest - &(&term * by);
            quotient = &quotient + &term;
        }
        Some(quotient)
    }

    /// Whether every value in bounds is a multiple of `by`, as the coefficients show.
    pub fn is_multiple_of(&self, by: i64) -> bool {
        self.constant % by == 0 && self.terms.iter().all(|(_, c)| c % by == 0)
    }

    fn substitute(&self, symbol: Symbol, by: &Dim) -> Dim {
        self.terms.iter().fold(Dim::from(self.constant), |sum, (monomial, coefficient)| {
            let power = monomial.iter().filter(|s| **s == symbol).count();
            let others = monomial.iter().copied().filter(|s| *s != symbol).collect();
            let term = (0..power).fold(Dim::term(others, *coefficient), |product, _| &product * by);
            &sum + &term
        })
    }

    /// The value at the given symbols.
    pub fn eval(&self, env: &Env) -> i64 {
        let value = |monomial: &Monomial| monomial.iter().map(|s| env.0[usize::from(*s)]).product::<i64>();
        self.terms.iter().fold(self.constant, |sum, (monomial, c)| sum + c * value(monomial))
    }

    /// `(a, b)` with `self = a + b · symbol` once all other symbols have the values of `env`; none if the symbol
    /// is a factor twice.
    pub fn linear_in(&self, symbol: Symbol, env: &Env) -> Option<(i64, i64)> {
        let mut parts = (self.constant, 0);
        for (monomial, c) in &self.terms {
            let others = monomial.iter().filter(|s| **s != symbol).map(|s| env.0[usize::from(*s)]);
            let value = c * others.product::<i64>();
            match monomial.iter().filter(|s| **s == symbol).count() {
                0 => parts.0 += value,
                1 => parts.1 += value,
                _ => return None,
            }
        }
        Some(parts)
    }
}

/// The product of all factors; 1 of none.
pub fn product<'a>(factors: impl IntoIterator<Item = &'a Dim>) -> Dim {
    factors.into_iter().fold(Dim::from(1), |product, factor| &product * factor)
}

/// What shapes are made of: symbolic in the graph, numbers in costs and evaluations.
pub trait Size: Clone + PartialEq + From<i64> {
    /// Whether broadcasting stretches along this axis.
    fn is_one(&self) -> bool;
}

impl Size for Dim {
    fn is_one(&self) -> bool {
        Dim::is_one(self)
    }
}

impl Size for i64 {
    fn is_one(&self) -> bool {
        *self == 1
    }
}

/// NumPy's rule for two shapes; none where they do not fit.
pub fn broadcast<S: Size>(a: &[S], b: &[S]) -> Option<Vec<S>> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut shape = long.to_vec();
    let offset = long.len() - short.len();
    for (x, y) in shape[offset..].iter_mut().zip(short) {
        if x.is_one() {
            *x = y.clone();
        } else if x != y && !y.is_one() {
            return None;
        }
    }
    Some(shape)
}

impl Add for &Dim {
    type Output = Dim;
    fn add(self, other: &Dim) -> Dim {
        if self.terms.is_empty() && other.terms.is_empty() {
            return Dim::from(self.constant + other.constant);
        }
        Dim::normal(self.constant + other.constant, self.terms.iter().chain(&other.terms).cloned().collect())
    }
}

impl Sub for &Dim {
    type Output = Dim;
    fn sub(self, other: &Dim) -> Dim {
        self + &(&Dim::from(-1) * other)
    }
}

impl Mul for &Dim {
    type Output = Dim;
    fn mul(self, other: &Dim) -> Dim {
        let scaled =
            |terms: &[(Monomial, i64)], by: i64| terms.iter().map(|(m, c)| (m.clone(), c * by)).collect::<Vec<_>>();
        let mut terms = [scaled(&self.terms, other.constant), scaled(&other.terms, self.constant)].concat();
        for (left, a) in &self.terms {
            for (right, b) in &other.terms {
                let mut monomial = [left.as_slice(), right].concat();
                monomial.sort_unstable();
                terms.push((monomial, a * b));
            }
        }
        Dim::normal(self.constant * other.constant, terms)
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
enum Definition {
    /// The symbol `k` of the dimension `step · k + rest`.
    Bounded {
        name: String,
        low: i64,
        high: i64,
        step: i64,
        rest: i64,
    },
    CeilDiv {
        numerator: Dim,
        divisor: i64,
    },
}

/// The symbols of a model: what each stands for and between which bounds.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
pub struct Symbols(Vec<Definition>);

/// One value for each symbol.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Env(Vec<i64>);

impl Env {
    /// The sizes of a shape.
    pub fn shape(&self, shape: &[Dim]) -> Vec<i64> {
        shape.iter().map(|dim| dim.eval(self)).collect()
    }
}

/// A value outside the bounds that a dimension was declared with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutOfBounds {
    /// The dimension's name.
    pub name: String,
    /// What it was given; none if nothing was.
    pub value: Option<i64>,
    /// The least value allowed.
    pub low: i64,
    /// The greatest value allowed.
    pub high: i64,
    /// Allowed values lie this far apart.
    pub step: i64,
}

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutOfBounds { name, value, low, high, step } = self;
        let range = if *step == 1 { format!("{low}..={high}") } else { format!("{low}..={high} step {step}") };
        match value {
            Some(value) => write!(f, "`{name}` must lie in {range}, found {value}"),
            None => write!(f, "`{name}` (in {range}) has no value"),
        }
    }
}

impl std::error::Error for OutOfBounds {}

/// A dimension as declared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bounds<'a> {
    /// The name in the source.
    pub name: &'a str,
    /// The symbol that carries it.
    pub symbol: Symbol,
    /// The dimension as a polynomial over its symbol.
    pub dim: Dim,
    /// The least value.
    pub low: i64,
    /// The greatest value.
    pub high: i64,
    /// The distance between allowed values.
    pub step: i64,
}

impl Symbols {
    /// Declares `name in low..=high step step` (`step` at least 1, `low` not negative) and returns it.
    pub fn declare(&mut self, name: &str, low: i64, high: i64, step: i64) -> Dim {
        let rest = low % step;
        let definition =
            Definition::Bounded { name: name.into(), low: low / step, high: (high - rest) / step, step, rest };
        self.0.push(definition);
        &Dim::term(vec![(self.0.len() - 1) as Symbol], step) + &Dim::from(rest)
    }

    /// `⌈numerator / divisor⌉` with a positive divisor.
    pub fn ceil_div(&mut self, numerator: &Dim, divisor: i64) -> Dim {
        let split = |by: &dyn Fn(i64) -> i64| {
            let terms = numerator.terms.iter().map(|(m, c)| (m.clone(), by(*c))).collect();
            Dim::normal(by(numerator.constant), terms)
        };
        let (whole, rest) = (split(&|c| c.div_euclid(divisor)), split(&|c| c.rem_euclid(divisor)));
        if let Some(rest) = rest.constant() {
            return &whole + &Dim::from((rest + divisor - 1) / divisor);
        }
        let wanted = Definition::CeilDiv { numerator: rest, divisor };
        let known = self.0.iter().position(|definition| *definition == wanted);
        let symbol = known.unwrap_or_else(|| {
            self.0.push(wanted);
            self.0.len() - 1
        });
        &whole + &Dim::symbol(symbol as Symbol)
    }

    /// The declared dimensions in order.
    pub fn declared(&self) -> Vec<Bounds<'_>> {
        let bounds = |(symbol, definition): (usize, &'_ Definition)| match definition {
            Definition::CeilDiv { .. } => None,
            Definition::Bounded { low, high, step, rest, .. } => {
                let dim = &Dim::term(vec![symbol as Symbol], *step) + &Dim::from(*rest);
                Some((symbol as Symbol, dim, low * step + rest, high * step + rest, *step))
            }
        };
        let name = |symbol: Symbol| match &self.0[usize::from(symbol)] {
            Definition::Bounded { name, .. } => name.as_str(),
            Definition::CeilDiv { .. } => "",
        };
        let all = self.0.iter().enumerate().filter_map(bounds);
        all.map(|(symbol, dim, low, high, step)| Bounds { name: name(symbol), symbol, dim, low, high, step }).collect()
    }

    fn range(&self, symbol: Symbol) -> (i64, i64) {
        match &self.0[usize::from(symbol)] {
            Definition::Bounded { low, high, .. } => (*low, *high),
            Definition::CeilDiv { numerator, divisor } => {
                let (low, high) = self.bounds(numerator);
                let up = |value: i64| value.saturating_add(divisor - 1) / divisor;
                (up(low), up(high))
            }
        }
    }

    /// Interval bounds, sound and not always tight (symbols are never negative).
    pub fn bounds(&self, dim: &Dim) -> (i64, i64) {
        dim.terms.iter().fold((dim.constant, dim.constant), |(low, high), (monomial, c)| {
            let c = *c;
            let (least, most) = monomial.iter().fold((1i64, 1i64), |(a, b), symbol| {
                let (low, high) = self.range(*symbol);
                (a.saturating_mul(low), b.saturating_mul(high))
            });
            let (least, most) = if c < 0 { (most, least) } else { (least, most) };
            (low.saturating_add(least.saturating_mul(c)), high.saturating_add(most.saturating_mul(c)))
        })
    }

    /// Proof that `dim >= 0` for all values in bounds: written from some corner of the box, as a polynomial in the
    /// distances from that corner, no coefficient is negative.
    pub fn nonnegative(&self, dim: &Dim) -> bool {
        let symbols = dim.symbols();
        self.bounds(dim).0 >= 0
            || symbols.len() < 12
                && (0u32..1 << symbols.len()).any(|corner| {
                    let shifted = symbols.iter().enumerate().fold(dim.clone(), |dim, (bit, &symbol)| {
                        let ((low, high), distance) = (self.range(symbol), Dim::symbol(symbol));
                        let from_low = &Dim::from(low) + &distance;
                        let from_high = &Dim::from(high) - &distance;
                        dim.substitute(symbol, if corner >> bit & 1 == 0 { &from_low } else { &from_high })
                    });
                    shifted.constant >= 0 && shifted.terms.iter().all(|(_, c)| *c >= 0)
                })
    }

    /// The values of all symbols, from those of the declared dimensions in order of declaration.
    pub fn bind(&self, dimensions: &[i64]) -> Result<Env, OutOfBounds> {
        let (mut env, mut values) = (Env::default(), dimensions.iter());
        for definition in &self.0 {
            let value = match definition {
                Definition::CeilDiv { numerator, divisor } => (numerator.eval(&env) + divisor - 1) / divisor,
                Definition::Bounded { name, low, high, step, rest } => {
                    let value = values.next().copied();
                    let fits =
                        |value: &i64| (value - rest) % step == 0 && (*low..=*high).contains(&((value - rest) / step));
                    let fault = || OutOfBounds {
                        name: name.clone(),
                        value,
                        low: low * step + rest,
                        high: high * step + rest,
                        step: *step,
                    };
                    (value.filter(fits).ok_or_else(fault)? - rest) / step
                }
            };
            env.0.push(value);
        }
        Ok(env)
    }

    /// Where plans are compared: all dimensions small, middling or large, and each against all others.
    pub fn samples(&self) -> Vec<Env> {
        let declared = self.declared();
        let at = |weight: &dyn Fn(usize) -> f64| {
            let value = |(k, bounds): (usize, &Bounds<'_>)| {
                let (low, high) = (bounds.low / bounds.step, bounds.high / bounds.step);
                let between = ((low + 1) as f64).powf(1.0 - weight(k)) * ((high + 1) as f64).powf(weight(k));
                (between.round() as i64 - 1).clamp(low, high) * bounds.step + bounds.low % bounds.step
            };
            self.bind(&declared.iter().enumerate().map(value).collect::<Vec<_>>()).ok()
        };
        let ends: [&dyn Fn(usize) -> f64; 3] = [&|_| 0.0, &|_| 0.5, &|_| 1.0];
        let mut samples: Vec<Env> = ends.into_iter().filter_map(at).collect();
        for one in 0..declared.len() {
            samples.extend(at(&|k| f64::from(u8::from(k == one))));
            samples.extend(at(&|k| f64::from(u8::from(k != one))));
        }
        samples
    }

    /// The dimension in the source's names.
    pub fn show(&self, dim: &Dim) -> String {
        let mut constant = dim.constant;
        let terms = dim.terms.iter().map(|(monomial, c)| {
            let (mut times, mut over, mut factors) = (*c, 1, vec![]);
            // `step · k` of a stepped dimension is the dimension less its rest.
            let stepped = monomial.iter().map(|symbol| self.stepped(*symbol)).collect::<Option<Vec<_>>>();
            let steps = stepped.iter().flatten().map(|(_, step, _)| step).product::<i64>();
            match (stepped, monomial.len()) {
                (Some(parts), 1) if times % steps == 0 => {
                    times /= steps;
                    constant -= times * parts[0].2;
                    factors.push(parts[0].0.to_string());
                }
                (Some(parts), _)
                    if parts.iter().all(|part| part.2 == 0) && (times % steps == 0 || steps % times == 0) =>
                {
                    (times, over) =
                        if times % steps == 0 { (times / steps, 1) } else { (times.signum(), steps / times.abs()) };
                    factors.extend(parts.iter().map(|part| part.0.to_string()));
                }
                _ => factors.extend(monomial.iter().map(|symbol| self.show_symbol(*symbol))),
            }
            let sign = if times < 0 { "-" } else { "" };
            if times.abs() != 1 {
                factors.insert(0, times.abs().to_string());
            }
            let product = format!("{sign}{}", factors.join("·"));
            if over == 1 { product } else { format!("{product}/{over}") }
        });
        let mut terms: Vec<String> = terms.collect();
        if constant != 0 || terms.is_empty() {
            terms.push(constant.to_string());
        }
        terms.join(" + ").replace("+ -", "- ")
    }

    /// Name, step and rest of a declared dimension.
    fn stepped(&self, symbol: Symbol) -> Option<(&str, i64, i64)> {
        match &self.0[usize::from(symbol)] {
            Definition::Bounded { name, step, rest, .. } => Some((name, *step, *rest)),
            Definition::CeilDiv { .. } => None,
        }
    }

    /// A shape as `[batch, 10]`.
    pub fn show_shape(&self, shape: &[Dim]) -> String {
        format!("[{}]", shape.iter().map(|dim| self.show(dim)).collect::<Vec<_>>().join(", "))
    }

    fn show_symbol(&self, symbol: Symbol) -> String {
        match &self.0[usize::from(symbol)] {
            Definition::Bounded { name, step: 1, .. } => name.clone(),
            Definition::Bounded { name, step, .. } => format!("⌊{name}/{step}⌋"),
            Definition::CeilDiv { numerator, divisor } => format!("⌈{}/{divisor}⌉", self.show(numerator)),
        }
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms = self.terms.iter().map(|(monomial, c)| {
            let symbols: Vec<String> = monomial.iter().map(|s| format!("s{s}")).collect();
            if *c == 1 { symbols.join("·") } else { format!("{c}·{}", symbols.join("·")) }
        });
        let constant = (self.constant != 0 || self.terms.is_empty()).then(|| self.constant.to_string());
        write!(f, "{}", terms.chain(constant).collect::<Vec<_>>().join("+"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn equality_is_by_normal_form() {
        let mut symbols = Symbols::default();
        let (a, b) = (symbols.declare("a", 1, 9, 1), symbols.declare("b", 2, 7, 1));
        let left = &(&a + &b) * &(&a - &b);
        assert_eq!(left, &(&a * &a) - &(&b * &b));
        assert_eq!(left.div(&(&a + &b)), Some(&a - &b));
        assert_eq!(left.div(&(&a + &Dim::from(1))), None);
        assert_eq!(symbols.show(&left), "a·a - b·b");
    }

    #[test]
    fn a_stepped_dimension_divides_by_its_step() {
        let mut symbols = Symbols::default();
        let h = symbols.declare("h", 16, 2048, 16);
        assert_eq!(h.div(&Dim::from(2)).unwrap().eval(&symbols.bind(&[48]).unwrap()), 24);
        let (half, more) = (h.div(&Dim::from(2)).unwrap(), &(&h * &Dim::from(3)) - &Dim::from(5));
        assert_eq!([&h, &half, &more, &(&h * &half)].map(|dim| symbols.show(dim)), ["h", "h/2", "3·h - 5", "h·h/2"]);
        let odd = symbols.declare("w", 5, 45, 4);
        assert_eq!([&odd, &(&odd * &Dim::from(2))].map(|dim| symbols.show(dim)), ["w", "2·w"]);
        let error = symbols.bind(&[40]).unwrap_err();
        assert_eq!(error.to_string(), "`h` must lie in 16..=2048 step 16, found 40");
    }

    #[test]
    fn ceil_div_is_exact_at_every_value() {
        let mut symbols = Symbols::default();
        let (a, b) = (symbols.declare("a", 1, 40, 1), symbols.declare("b", 1, 3, 1));
        let size = &(&(&a * &b) * &Dim::from(12)) + &Dim::from(5);
        let lines = symbols.ceil_div(&size, 8);
        assert_eq!(symbols.ceil_div(&size, 8), lines);
        for (x, y) in (1..=40).flat_map(|x| (1..=3).map(move |y| (x, y))) {
            let env = symbols.bind(&[x, y]).unwrap();
            assert_eq!(lines.eval(&env), (12 * x * y + 5 + 7) / 8);
        }
    }

    #[test]
    fn nonnegative_proves_what_intervals_cannot() {
        let mut symbols = Symbols::default();
        let (seq, max) = (symbols.declare("seq", 1, 64, 1), symbols.declare("more", 64, 100, 1));
        assert!(symbols.nonnegative(&(&max - &seq)));
        assert!(symbols.nonnegative(&(&(&seq * &seq) - &seq)));
        assert!(!symbols.nonnegative(&(&seq - &Dim::from(2))));
    }

    #[test]
    fn samples_lie_in_bounds_and_reach_both_ends() {
        let mut symbols = Symbols::default();
        let h = symbols.declare("h", 16, 2048, 16);
        let values: Vec<i64> = symbols.samples().iter().map(|env| h.eval(env)).collect();
        assert!(values.contains(&16) && values.contains(&2048) && values.iter().all(|v| v % 16 == 0));
    }

    #[test]
    fn broadcasting_follows_numpy() {
        assert_eq!(broadcast(&[5i64, 1, 3], &[4, 1]), Some(vec![5, 4, 3]));
        assert_eq!(broadcast::<i64>(&[5, 2], &[3]), None);
        assert_eq!(broadcast::<i64>(&[], &[0, 3]), Some(vec![0, 3]));
    }
}
