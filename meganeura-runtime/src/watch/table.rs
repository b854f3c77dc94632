//! A profile as tables: each entry's steps in order, then its time by layer and by kernel.

use std::fmt::{self, Write};
use std::time::Duration;

use super::profile::{Entry, Profile, StepTime};

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.device)?;
        for entry in &self.entries {
            writeln!(f)?;
            entry.fmt(f)?;
        }
        if self.entries.is_empty() {
            writeln!(f, "no calls")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps: Vec<&StepTime> = self.steps().collect();
        f.debug_struct("Profile").field("device", &self.device).field("steps", &steps).finish_non_exhaustive()
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entry { model, name, calls, steps } = self;
        let s = if *calls == 1 { "" } else { "s" };
        write!(f, "{model}.{name}: {calls} call{s}, ")?;
        let total: Duration = steps.iter().map(|step| step.time).sum();
        if steps.is_empty() {
            return writeln!(f, "the device tells no times");
        }
        let launches: u64 = steps.iter().map(|step| step.launches).sum();
        writeln!(f, "{} in {} launches a call", time(each(total, *calls)), average(launches, *calls))?;
        let share = |part: Duration| format!("{:.1} %", 100.0 * part.as_secs_f64() / total.as_secs_f64().max(1e-12));
        let row = |step: &StepTime| {
            let rate = |amount: u64| match amount {
                0 => String::new(),
                amount => format!("{:.1}", amount as f64 / 1e9 / step.time.as_secs_f64().max(1e-12)),
            };
            vec![
                step.number.to_string(),
                step.kernel.clone(),
                step.what.clone(),
                step.layer.clone(),
                average(step.launches, *calls),
                time(each(step.time, *calls)),
                share(step.time),
                rate(step.bytes),
                rate(step.flops),
            ]
        };
        let heads = ["step", "kernel", "what", "layer", "launches", "time", "share", "GB/s", "GFLOP/s"];
        table(f, &heads, &[false, true, true, true], steps.iter().map(row).collect())?;
        let sums = |head: &str, key: fn(&StepTime) -> &str, f: &mut fmt::Formatter<'_>| {
            let mut sums: Vec<(&str, Duration)> = vec![];
            for step in steps {
                match sums.iter_mut().find(|(known, _)| *known == key(step)) {
                    Some((_, sum)) => *sum += step.time,
                    None => sums.push((key(step), step.time)),
                }
            }
            sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
            let rows = sums.iter().map(|(name, sum)| {
                let name = if name.is_empty() { "(none)" } else { *name };
                vec![name.into(), time(each(*sum, *calls)), share(*sum)]
            });
            table(f, &[head, "time", "share"], &[true], rows.collect())
        };
        sums("layer", |step| &step.layer, f)?;
        sums("kernel", |step| &step.kernel, f)
    }
}

fn each(sum: Duration, calls: u64) -> Duration {
    Duration::from_nanos(u64::try_from(sum.as_nanos()).unwrap_or(u64::MAX) / calls.max(1))
}

fn average(count: u64, calls: u64) -> String {
    match count % calls.max(1) {
        0 => (count / calls.max(1)).to_string(),
        _ => format!("{:.1}", count as f64 / calls as f64),
    }
}

/// Three digits and a unit.
fn time(time: Duration) -> String {
    let mut value = time.as_nanos() as f64;
    let mut unit = "ns";
    for larger in ["µs", "ms", "s"] {
        if value >= 999.5 {
            (value, unit) = (value / 1000.0, larger);
        }
    }
    let digits = if unit == "ns" || value >= 99.95 { 0 } else { 1 + usize::from(value < 9.995) };
    format!("{value:.digits$} {unit}")
}

/// Columns are aligned left where `left` says so, else right.
fn table(f: &mut fmt::Formatter<'_>, heads: &[&str], left: &[bool], rows: Vec<Vec<String>>) -> fmt::Result {
    let heads = heads.iter().map(|head| head.to_string()).collect();
    let lines: Vec<Vec<String>> = [heads].into_iter().chain(rows).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    for line in &lines {
        let mut text = String::new();
        for (column, (cell, room)) in line.iter().zip(&widths).enumerate() {
            match left.get(column) {
                Some(true) => write!(text, "  {cell:room$}")?,
                _ => write!(text, "  {cell:>room$}")?,
            }
        }
        writeln!(f, "{}", text.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_unit() {
        let shown = [0, 999, 1_000, 9_994, 9_996, 99_900, 99_960, 999_499, 999_500, 1_234_567, 61_000_000_000];
        let expected = [
            "0 ns", "999 ns", "1.00 µs", "9.99 µs", "10.0 µs", "99.9 µs", "100 µs", "999 µs", "1.00 ms", "1.23 ms",
            "61.0 s",
        ];
        assert_eq!(shown.map(|ns| time(Duration::from_nanos(ns))), expected);
    }
}
