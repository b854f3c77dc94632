//! A schedule in words: for each kernel the statements that it serves, the rules that made it, its cost against that of
//! the operations one by one, and what was considered and not taken.
//!
//! In come a schedule and the choices of the search behind it; out comes text that is a function of the two. Costs are
//! the compiler's: microseconds of a fixed reference device at representative sizes, the same that the search compared.

use std::fmt::Write;

use meganeura_shaders::dim::{Dim, Env};
use meganeura_shaders::schedule::{Item, Plan, Schedule, Step};

use crate::egraph::cost::representative;
use crate::egraph::{Choices, Piece, Rival};
use crate::ir::{Served, SpanId};

/// Kernels that are named of what another one would need beside it.
const BESIDE: usize = 3;

/// Where a statement stands, for whoever knows files and lines.
pub type Places<'a> = dyn Fn(SpanId) -> Option<String> + 'a;

/// The text; with `places` each statement's place is told, which no program may depend on.
pub fn explain(schedule: &Schedule, choices: &Choices, places: &Places<'_>) -> String {
    let at = representative(&schedule.symbols);
    let mut text = String::new();
    let sizes: Vec<String> = schedule
        .symbols
        .declared()
        .iter()
        .map(|bounds| format!("{} = {}", bounds.name, bounds.dim.eval(&at)))
        .collect();
    let sizes = if sizes.is_empty() { String::new() } else { format!(" at {}", sizes.join(", ")) };
    add(&mut text, format_args!("{}; costs are estimates for the reference device{sizes}", schedule.name));
    for plan in &schedule.plans {
        let mut writer = Writer { schedule, choices, places, at: &at, text: &mut text, number: 0, cost: 0 };
        writer.plan(plan);
    }
    text
}

fn add(text: &mut String, line: std::fmt::Arguments<'_>) {
    let written = writeln!(text, "{line}");
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}

struct Writer<'w> {
    schedule: &'w Schedule,
    choices: &'w Choices,
    places: &'w Places<'w>,
    at: &'w Env,
    text: &'w mut String,
    /// Of the next step.
    number: usize,
    /// Of a call so far.
    cost: u64,
}

impl Writer<'_> {
    fn plan(&mut self, plan: &Plan) {
        self.items(&plan.items, &Dim::from(1));
        let [chosen, unfused] = [self.cost, self.choices.unfused_cost].map(microseconds);
        add(self.text, format_args!("\nin all {chosen} a call; {unfused} if every operation were a kernel of its own"));
    }

    fn items(&mut self, items: &[Item], times: &Dim) {
        for item in items {
            match item {
                Item::Step(step) => self.step(step, times),
                Item::Loop { id, body } => self.items(body, &(times * &self.schedule.loops[*id].count)),
            }
        }
    }

    fn step(&mut self, step: &Step, times: &Dim) {
        let number = self.number;
        self.number += 1;
        let often =
            if times.is_one() { String::new() } else { format!(", {} times", self.schedule.symbols.show(times)) };
        let kernels: Vec<&str> = step.members.iter().map(|member| member.kernel.name()).collect();
        let Some(origin) = step.origins.first() else { return };
        let layer = if origin.path.is_empty() { String::new() } else { format!(" in {}", origin.path) };
        let backward = if origin.backward { "∂ " } else { "" };
        let head = format!("{}: {backward}{}{layer}{often}", kernels.join(" + "), origin.what);
        add(self.text, format_args!("\nstep {number}: {head}"));
        let Some(choice) = origin.choice.and_then(|choice| self.choices.list.get(choice)) else {
            add(self.text, format_args!("  moves a value to where it is needed; the search had no choice"));
            return;
        };
        self.cost += choice.cost * times.eval(self.at).unsigned_abs();
        self.listed("serves", choice.served.iter().map(|served| self.served(served)).collect());
        let rules = if origin.rules.is_empty() { "none: as the graph has it".into() } else { origin.rules.join(" ") };
        self.listed("rules", vec![rules]);
        let cost = microseconds(choice.cost);
        self.listed(
            "cost",
            vec![match choice.unfused {
                0 | 1 => format!("{cost}, one operation"),
                count => {
                    format!("{cost}; {} as {count} kernels of one operation each", microseconds(choice.unfused_cost))
                }
            }],
        );
        let more = (choice.more > 0).then(|| format!("{} more", choice.more));
        self.listed("rejected", choice.rivals.iter().map(rival).chain(more).collect());
    }

    /// Lines of which the first has a name.
    fn listed(&mut self, name: &str, lines: Vec<String>) {
        for (k, line) in lines.iter().enumerate() {
            add(self.text, format_args!("  {:<10}{line}", if k == 0 { name } else { "" }));
        }
    }

    fn served(&self, served: &Served) -> String {
        let Served { path, function, text, span, .. } = served;
        let dot = if path.is_empty() { "" } else { "." };
        let place = span.and_then(|span| (self.places)(span)).map_or(String::new(), |place| format!("   ({place})"));
        format!("{path}{dot}{function}: {text}{place}")
    }
}

/// What lost, and why.
fn rival(rival: &Rival) -> String {
    let Rival { kernel, dearer, beside } = rival;
    let own = match kernel.kernel.is_empty() {
        true => "a launch for each result".to_string(),
        false => piece(kernel),
    };
    let beside = match beside.as_slice() {
        [] => String::new(),
        pieces => {
            let named = pieces.iter().take(BESIDE).map(piece);
            let more = pieces.len().saturating_sub(BESIDE);
            let more = (more > 0).then(|| format!("{more} more"));
            format!(", which needs {}", named.chain(more).collect::<Vec<_>>().join(", "))
        }
    };
    let outcome = match dearer.cmp(&0) {
        std::cmp::Ordering::Greater => format!("{} more in all", microseconds(dearer.unsigned_abs())),
        std::cmp::Ordering::Equal => "the same in all".to_string(),
        std::cmp::Ordering::Less => {
            format!("{} less, which the search did not find", microseconds(dearer.unsigned_abs()))
        }
    };
    format!("{own}{beside}: {outcome}")
}

fn piece(piece: &Piece) -> String {
    let Piece { kernel, what, rules, cost } = piece;
    let rules = if rules.is_empty() { String::new() } else { format!(" [{}]", rules.join(" ")) };
    // The values of some rules have no name.
    let what = if what.is_empty() { String::new() } else { format!(" `{what}`") };
    format!("{kernel}{what}{rules} at {}", microseconds(*cost))
}

/// Of picoseconds.
fn microseconds(picoseconds: u64) -> String {
    format!("{}.{:03} µs", picoseconds / 1_000_000, picoseconds / 1_000 % 1_000)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::testing::Expander;

    const NET: &str = "layer Block<dim> {
        norm: RmsNorm<dim>,
        up: Linear<dim, dim, bias = false>,
        fn forward(x: f32[.., dim]) -> f32[.., dim] {
            let h = norm(x);
            x + silu(up(h))
        }
    }
    pub model Net<batch in 1..=256> {
        blocks: [Block<12>; 3],
        head: Linear<12, 3>,
        pub fn logits(x: f32[batch, 12]) -> f32[batch, 3] {
            let mut h = x;
            for block in blocks { h = block(h); }
            head(h)
        }
    }";

    fn dumped(text: &str) -> String {
        Expander::of(text, "egraph").dumps.concat()
    }

    fn emitted(text: &str) -> String {
        let tokens = Expander::of(text, "").tokens.to_string();
        let start = tokens.find("\"logits; costs").unwrap();
        let end = tokens[start..].find("own\\n\"").unwrap();
        tokens[start..start + end].replace("\\n", "\n")
    }

    #[test]
    fn a_kernel_names_its_statements_its_rules_and_what_lost() {
        let text = emitted(NET);
        let step = text.split("\nstep ").nth(2).unwrap();
        assert!(step.starts_with("1: contract: rms_norm · * · @ · silu · + in blocks, 3 times\n"), "{text}");
        let serves = "  serves    blocks.forward: let h = norm(x);\n            blocks.forward: x + silu(up(h))\n";
        assert!(step.contains(serves), "{text}");
        assert!(step.contains("  rules     fuse/epilogue fuse/prologue-a algebra/row-scale\n"), "{text}");
        assert!(step.contains(" kernels of one operation each\n"), "{text}");
        // The norm as a kernel of its own was considered, and it costs another launch.
        let rejected = step.lines().find(|line| line.contains("which needs rows `rms_norm")).unwrap();
        assert!(rejected.ends_with(" µs more in all"), "{rejected}");
    }

    #[test]
    fn costs_of_a_call_are_those_of_its_steps_as_often_as_they_run() {
        let text = emitted(NET);
        let number = |line: &str| line.split(" µs").next().unwrap().trim().parse::<f64>().unwrap();
        let costs = text.lines().filter_map(|line| line.strip_prefix("  cost    ")).map(number);
        let costs: Vec<f64> = costs.collect();
        let total = number(text.lines().find_map(|line| line.strip_prefix("in all ")).unwrap());
        assert_eq!(costs.len(), 2);
        assert!((3.0 * costs[0] + costs[1] - total).abs() < 0.01, "{text}");
        let unfused = number(text.lines().find_map(|line| line.split_once(" a call; ")).unwrap().1);
        assert!(unfused > 2.0 * total, "{text}");
    }

    #[test]
    fn the_text_depends_on_tokens_alone_and_the_dump_tells_places() {
        let moved = format!("\n\n   {}", NET.replace("let h = norm(x);", "let h =\n\n norm ( x ) ;"));
        assert_eq!(emitted(&moved), emitted(NET));
        let (before, after) = (dumped(NET), dumped(&moved));
        assert!(before.contains("blocks.forward: let h = norm(x);   (") && before.contains(":5:13)"), "{before}");
        assert!(after.contains(":7:13)") && !after.contains(":5:13)"), "{after}");
        assert!(before.contains("block 1 region 0: "), "{before}");
    }
}
