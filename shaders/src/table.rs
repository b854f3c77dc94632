//! The schedule as a table for people: in symbols, which golden files hold, or at given dimensions.
//!
//! One line a kernel, loop bodies once and indented; a bar marks a step that waits for what came before, a plus a
//! further kernel of the same launch. The last line counts launches and dependent steps of a call.

use std::fmt::{self, Write};

use crate::dim::{Dim, Env};
use crate::kernel::Kernel;
use crate::schedule::{Condition, Item, Member, Place, Plan, Schedule, Step, steps};

impl Condition {
    /// Whether it holds at these sizes on a device that lacks nothing.
    pub fn holds_at(&self, env: &Env) -> bool {
        match self {
            Condition::Always | Condition::WorkgroupMemory(_) => true,
            Condition::AtMost(dim, most) => dim.eval(env) <= *most,
            Condition::All(all) => all.iter().all(|condition| condition.holds_at(env)),
        }
    }
}

impl Member {
    /// Floating-point operations at these sizes.
    pub fn flops(&self, env: &Env) -> u64 {
        let shapes: Vec<Vec<i64>> = self.reads.iter().map(|(_, shape, _)| env.shape(shape)).collect();
        let args: Vec<&Vec<i64>> = shapes.iter().collect();
        match &self.kernel {
            Kernel::Rows(prog) => prog.flops(&args),
            Kernel::ColumnSum(prog) => prog.flops(&args) + prog.shape(&args).map_or(0, |shape| elements(&shape)),
            Kernel::Copy(_) | Kernel::Gather | Kernel::Concat(_) => 0,
            Kernel::ScatterAdd(_) | Kernel::Scan(_) => args.first().map_or(0, |shape| elements(shape)),
            Kernel::Contract(contract) => {
                let (terms, extras) = contract.parts(&args);
                let Some(inner) = contract.shapes(&args) else { return 0 };
                let products = contract.terms.iter().zip(terms).zip(inner.a.iter().zip(&inner.b));
                let products = products.map(|((term, (a, b)), (left, right))| {
                    let dims = term.spec.dims(left, right).unwrap_or_default();
                    let stat = term.stat.as_ref().map_or(0, |stat| stat.flops(a));
                    2 * elements(&dims) + term.a.flops(a) + term.b.flops(b) + stat
                });
                let accumulators = vec![&inner.acc; contract.terms.len()].into_iter();
                let inputs: Vec<&Vec<i64>> = accumulators.chain(&inner.stats).chain(extras.iter().copied()).collect();
                products.sum::<u64>() + contract.epi.flops(&inputs)
            }
        }
    }
}

impl Step {
    /// Bytes that a launch moves at these sizes: each value that it reads or writes once.
    pub fn bytes(&self, env: &Env) -> u64 {
        let mut seen: Vec<&Place> = vec![];
        let mut bytes = 0;
        for member in &self.members {
            let written = 4 * elements(&env.shape(&member.shape));
            bytes += written;
            for (place, shape) in member.places_read() {
                let whole = 4 * elements(&env.shape(shape));
                if !seen.contains(&place) {
                    seen.push(place);
                    bytes += if matches!(member.kernel, Kernel::Copy(_) | Kernel::Gather) {
                        whole.min(written)
                    } else {
                        whole
                    };
                }
            }
        }
        bytes
    }

    /// Floating-point operations of a launch at these sizes.
    pub fn flops(&self, env: &Env) -> u64 {
        self.members.iter().map(|member| member.flops(env)).sum()
    }
}

fn elements(shape: &[i64]) -> u64 {
    shape.iter().product::<i64>().max(0) as u64
}

impl Plan {
    /// Launches of a call.
    pub fn launches(&self, schedule: &Schedule) -> Dim {
        count_steps(&self.items, schedule, &|_| true)
    }

    /// Steps of a call that wait for others, and the first: barriers + 1.
    pub fn dependent(&self, schedule: &Schedule) -> Dim {
        let first_waits = steps(&self.items).first().is_none_or(|step| step.barrier);
        &count_steps(&self.items, schedule, &|step| step.barrier) + &Dim::from(i64::from(!first_waits))
    }
}

/// Steps of a call that are `counted`; bodies of loops as often as they run.
pub fn count_steps(items: &[Item], schedule: &Schedule, counted: &dyn Fn(&Step) -> bool) -> Dim {
    items.iter().fold(Dim::default(), |sum, item| match item {
        Item::Step(step) => &sum + &Dim::from(i64::from(counted(step))),
        Item::Loop { id, body } => &sum + &(&schedule.loops[*id].count * &count_steps(body, schedule, counted)),
    })
}

impl Schedule {
    /// The table at these dimensions, of the plan that is taken there.
    pub fn table(&self, env: &Env) -> Table<'_> {
        Table { schedule: self, env: Some(env.clone()) }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Table { schedule: self, env: None }.fmt(f)
    }
}

/// A schedule that is to be shown, in symbols or at given dimensions.
#[derive(Clone, Debug)]
pub struct Table<'s> {
    schedule: &'s Schedule,
    env: Option<Env>,
}

/// The cells of a line, and whether it is a kernel's.
struct Line {
    indent: usize,
    mark: String,
    cells: Vec<String>,
}

const HEAD: [&str; 4] = ["kernel", "what", "layer", "shape"];
const HEAD_AT: [&str; 2] = ["bytes", "flop"];

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Table { schedule, env } = self;
        for bounds in schedule.symbols.declared() {
            let step = if bounds.step == 1 { String::new() } else { format!(" step {}", bounds.step) };
            let value = env.as_ref().map_or(String::new(), |env| format!(", here {}", bounds.dim.eval(env)));
            writeln!(f, "{} in {}..={}{step}{value}", bounds.name, bounds.low, bounds.high)?;
        }
        for check in &schedule.checks {
            writeln!(f, "{} needs {}", check.what, check.show(&schedule.symbols))?;
        }
        let taken = |plan: &&Plan| env.as_ref().is_none_or(|env| plan.condition.holds_at(env));
        let shown = if env.is_some() { 1 } else { usize::MAX };
        for plan in schedule.plans.iter().filter(taken).take(shown) {
            if schedule.plans.len() > 1 {
                writeln!(f, "plan {}", self.show_condition(&plan.condition))?;
            }
            self.plan(plan, f)?;
        }
        Ok(())
    }
}

impl Table<'_> {
    fn plan(&self, plan: &Plan, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = HEAD.into_iter().chain(if self.env.is_some() { &HEAD_AT[..] } else { &[] }.iter().copied());
        let cells = heads.chain(["rules"]).map(String::from).collect();
        let mut lines = vec![Line { indent: 0, mark: "step  ".into(), cells }];
        self.lines(&plan.items, 0, &mut 0, &mut lines);
        let columns = lines[0].cells.len();
        let width = |line: &Line, column: usize| match line.cells.get(column).filter(|_| line.cells.len() == columns) {
            Some(cell) => cell.chars().count() + if column == 0 { line.indent } else { 0 },
            None => 0,
        };
        let widths: Vec<usize> =
            (0..columns).map(|column| lines.iter().map(|line| width(line, column)).max().unwrap_or(0)).collect();
        for Line { indent, mark, cells } in &lines {
            let mut text = format!("{mark}{:indent$}", "");
            for (column, cell) in cells.iter().enumerate() {
                let room = widths[column] - if column == 0 && cells.len() == columns { *indent } else { 0 };
                match HEAD.len() <= column && column + 1 < columns {
                    true => write!(text, "{cell:>room$}  ")?,
                    false => write!(text, "{cell:room$}  ")?,
                }
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        let [launches, dependent, unfused] =
            [plan.launches(self.schedule), plan.dependent(self.schedule), self.schedule.unfused.clone()]
                .map(|dim| self.show(&dim));
        writeln!(f, "{launches} steps, {dependent} dependent steps ({unfused} unfused)")
    }

    fn lines(&self, items: &[Item], indent: usize, number: &mut usize, lines: &mut Vec<Line>) {
        for item in items {
            match item {
                Item::Step(step) => {
                    self.step(step, indent, *number, lines);
                    *number += 1;
                }
                Item::Loop { id, body } => {
                    let info = &self.schedule.loops[*id];
                    let order = if info.reversed { " down" } else { "" };
                    let cells = vec![format!("repeat {}{order}", self.show(&info.count))];
                    lines.push(Line { indent, mark: "      ".into(), cells });
                    self.lines(body, indent + 2, number, lines);
                }
            }
        }
    }

    fn step(&self, step: &Step, indent: usize, number: usize, lines: &mut Vec<Line>) {
        for (k, (member, origin)) in step.members.iter().zip(&step.origins).enumerate() {
            let mark = match k {
                0 => format!("{number:>3} {} ", if step.barrier { '|' } else { ' ' }),
                _ => "    + ".into(),
            };
            let backward = if origin.backward { "∂ " } else { "" };
            let shape = match &self.env {
                Some(env) => format!("{:?}", env.shape(&member.shape)),
                None => self.schedule.symbols.show_shape(&member.shape),
            };
            let name = member.kernel.name().to_string();
            let mut cells = vec![name, format!("{backward}{}", origin.what), origin.path.clone(), shape];
            if let Some(env) = &self.env {
                cells.push(if k == 0 { short(step.bytes(env)) } else { String::new() });
                cells.push(short(member.flops(env)));
            }
            cells.push(origin.rules.join(" "));
            lines.push(Line { indent, mark, cells });
        }
    }

    fn show(&self, dim: &Dim) -> String {
        self.env.as_ref().map_or_else(|| self.schedule.symbols.show(dim), |env| dim.eval(env).to_string())
    }

    fn show_condition(&self, condition: &Condition) -> String {
        match condition {
            Condition::Always => "otherwise".into(),
            Condition::AtMost(dim, most) => format!("where {} <= {most}", self.schedule.symbols.show(dim)),
            Condition::WorkgroupMemory(bytes) => format!("with {bytes} bytes of workgroup memory"),
            Condition::All(all) => {
                all.iter().map(|condition| self.show_condition(condition)).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// Three digits and a letter: `999`, `12.3k`, `1.50G`.
pub fn short(value: u64) -> String {
    let mut scaled = value as f64;
    for unit in ["", "k", "M", "G", "T"] {
        let digits = if unit.is_empty() || scaled >= 100.0 { 0 } else { 1 + usize::from(scaled < 10.0) };
        if scaled < 999.5 || unit == "T" {
            return format!("{scaled:.digits$}{unit}");
        }
        scaled /= 1000.0;
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_three_digits_and_a_letter() {
        let shown = [0, 999, 1000, 12_345, 999_499, 999_500, 1_500_000_000].map(short);
        assert_eq!(shown, ["0", "999", "1.00k", "12.3k", "999k", "1.00M", "1.50G"]);
    }
}
