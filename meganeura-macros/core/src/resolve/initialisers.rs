//! Initialisers of tensors.

use meganeura_shaders::schedule::Init;
use proc_macro2::Span;

use super::Resolver;
use super::value::Value;
use crate::diag::resolve as diag;
use crate::syntax::Argument;

/// Those that are called, with the names of their arguments.
pub(super) const CALLED: [(&str, &[&str]); 3] =
    [("constant", &["value"]), ("uniform", &["low", "high"]), ("normal", &["std"])];

/// Those that stand alone.
const PLAIN: [(&str, Init); 6] = [
    ("zeros", Init::Constant(0.0)),
    ("ones", Init::Constant(1.0)),
    ("kaiming_uniform", Init::KaimingUniform { a: 0.0 }),
    ("kaiming_normal", Init::KaimingNormal),
    ("xavier_uniform", Init::XavierUniform),
    ("xavier_normal", Init::XavierNormal),
];

/// All of them.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    PLAIN.iter().map(|(name, _)| *name).chain(CALLED.iter().map(|(name, _)| *name))
}

/// One that stands alone.
pub(super) fn plain(name: &str) -> Option<Init> {
    PLAIN.iter().find(|(known, _)| *known == name).map(|(_, init)| *init)
}

/// Whether it spreads its values by the number of inputs, which needs two axes.
pub(super) fn needs_fan(init: Init) -> bool {
    !matches!(init, Init::Constant(_) | Init::Uniform(..) | Init::Normal(_) | Init::Turns { .. })
}

impl<'a> Resolver<'a, '_> {
    /// `normal(0.02)` where it is no function of the language.
    pub(super) fn called_initialiser(
        &mut self,
        name: &str,
        span: Span,
        arguments: &'a [Argument],
    ) -> Option<Value<'a>> {
        let (_, parameters) = CALLED.iter().find(|(known, _)| *known == name)?;
        let bound = super::arguments::bind(name, span, parameters, parameters.len(), arguments);
        let slots = match bound {
            Ok(slots) => slots,
            Err(errors) => {
                errors.into_iter().for_each(|error| self.report(error.span, error.message));
                return Some(Value::Poison);
            }
        };
        let mut numbers = vec![];
        for expr in slots.into_iter().flatten() {
            match self.expression(expr) {
                Value::Poison => return Some(Value::Poison),
                value => match value.number() {
                    Some(number) if number.abs() <= f64::from(f32::MAX) => numbers.push(number),
                    Some(_) => return Some(self.fail(expr.span, diag::too_large())),
                    None => {
                        let found = self.show(&value);
                        return Some(self.fail(expr.span, diag::number_expected(name, &found)));
                    }
                },
            }
        }
        Some(match (name, &numbers[..]) {
            ("constant", [value]) => Value::Init(Init::Constant(*value)),
            ("uniform", [low, high]) if low <= high => Value::Init(Init::Uniform(*low, *high)),
            ("uniform", [low, high]) => self.fail(span, diag::empty_interval(*low, *high)),
            ("normal", [std]) if *std >= 0.0 => Value::Init(Init::Normal(*std)),
            ("normal", [std]) => self.fail(span, diag::negative_deviation(*std)),
            _ => Value::Poison,
        })
    }
}
