//! Arguments to parameters: positional first, then by name.

use proc_macro2::Span;

use crate::diag::resolve as diag;
use crate::errors::Error;
use crate::syntax::{Argument, Expr};

/// The argument of each parameter, of which the first `required` must be given; or every mistake in the list.
pub(super) fn bind<'a>(
    callee: &str,
    span: Span,
    parameters: &[&str],
    required: usize,
    arguments: &'a [Argument],
) -> Result<Vec<Option<&'a Expr>>, Vec<Error>> {
    let needed = |k: usize| k < required;
    bind_where(callee, span, parameters, needed, arguments)
}

/// The same where any parameter may have a default.
pub(super) fn bind_where<'a>(
    callee: &str,
    span: Span,
    parameters: &[&str],
    needed: impl Fn(usize) -> bool,
    arguments: &'a [Argument],
) -> Result<Vec<Option<&'a Expr>>, Vec<Error>> {
    let mut slots: Vec<Option<&'a Expr>> = vec![None; parameters.len()];
    let mut errors = vec![];
    let least = (0..slots.len()).filter(|k| needed(*k)).count();
    let positional = arguments.iter().filter(|argument| argument.name.is_none()).count();
    for (k, argument) in arguments.iter().enumerate() {
        match &argument.name {
            None if k < slots.len() => slots[k] = Some(&argument.value),
            None if k == slots.len() => {
                let message = diag::too_many_arguments(callee, least, parameters.len(), positional);
                errors.push(Error::new(argument.value.span, message));
            }
            None => {}
            Some(name) => match parameters.iter().position(|parameter| *parameter == name.name) {
                Some(at) if slots[at].is_none() => slots[at] = Some(&argument.value),
                Some(_) => errors.push(Error::new(name.span, diag::repeated_argument(callee, &name.name))),
                None => errors.push(Error::new(name.span, diag::unknown_argument(callee, &name.name, parameters))),
            },
        }
    }
    let missing = (0..slots.len()).find(|k| slots[*k].is_none() && needed(*k));
    match missing {
        Some(k) if errors.is_empty() => {
            let message = diag::missing_argument(callee, parameters[k], least, parameters.len(), arguments.len());
            Err(vec![Error::new(span, message)])
        }
        _ if errors.is_empty() => Ok(slots),
        _ => Err(errors),
    }
}
