//! The trace-event format: a complete event for each call on one track, and one for each launch of a step on the next.
//!
//! A device tells how long steps took, not when they began. Steps of a call are laid one behind the other, from when
//! the call was handed to the device, or from the end of the call before on the same lane.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::record::Recorded;

/// The process that all events name.
const PROCESS: u32 = 1;

pub(super) fn trace(device: &str, calls: &[Recorded]) -> String {
    let named = |what: &str, name: &str, track: usize| json!({ "name": what, "ph": "M", "pid": PROCESS, "tid": track, "args": { "name": name } });
    let mut events = vec![named("process_name", device, 0)];
    let mut ends: BTreeMap<usize, Duration> = BTreeMap::new();
    for call in calls {
        let [of_calls, of_steps] = tracks(call);
        let end = ends.entry(call.lane).or_insert_with(|| {
            events.push(named("thread_name", "calls", of_calls));
            events.push(named("thread_name", "steps", of_steps));
            Duration::ZERO
        });
        *end = add_call(call, call.begin.max(*end), &mut events);
    }
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    format!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n]}}\n", lines.join(",\n"))
}

/// Where a call's events stand. Not on one track: readers that round times would find that a step ends after its call.
fn tracks(call: &Recorded) -> [usize; 2] {
    [2 * call.lane + 1, 2 * call.lane + 2]
}

/// Gives the end of the call.
fn add_call(call: &Recorded, begin: Duration, events: &mut Vec<Value>) -> Duration {
    let (steps, times) = (&call.steps, call.times.told());
    let [of_calls, of_steps] = tracks(call);
    let event = |category: &str, name: String, track: usize, [begin, time]: [Duration; 2], args: Value| {
        let [begin, time] = [begin, time].map(|time| time.as_nanos() as f64);
        json!({
            "name": name, "cat": category, "ph": "X", "pid": PROCESS, "tid": track, "args": args,
            // In microseconds. Readers cut them to whole nanoseconds: the quarter keeps an event from beginning
            // before the one before it has ended.
            "ts": (begin + 0.25) / 1000.0, "dur": time / 1000.0,
        })
    };
    let sizes: Map<String, Value> = steps.sizes.iter().map(|(name, size)| (name.clone(), json!(size))).collect();
    let total: Duration = times.iter().flatten().sum();
    events.push(event("call", format!("{}.{}", steps.model, steps.entry), of_calls, [begin, total], sizes.into()));
    let mut at = begin;
    for (k, time) in times.iter().enumerate() {
        let Some(time) = *time else { continue };
        let (name, args) = match steps.launched.get(k) {
            Some(launched) => {
                let text = steps.text(launched);
                let args = json!({
                    "step": launched.number, "kernel": text.kernel, "what": text.what, "layer": text.layer,
                    "iteration": steps.iteration(launched), "bytes": text.bytes, "flops": text.flops,
                });
                (format!("{} {}", text.layer, text.kernel).trim_start().to_string(), args)
            }
            None => ("update".to_string(), json!({ "what": "optimizer" })),
        };
        events.push(event("step", name, of_steps, [at, time], args));
        at += time;
    }
    at
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::device::Times;
    use crate::replay::Steps;

    #[test]
    fn names_are_escaped_and_times_follow_one_another_exactly() {
        let steps = Arc::new(Steps::named("Net", "run", &["contract", "rows"]));
        let call = |begin: u64, lane: usize, times: [u64; 3]| {
            let told = Times::new(3);
            let all = times.into_iter().enumerate().filter(|(_, time)| *time > 0);
            all.for_each(|(step, time)| told.add(step, Duration::from_nanos(time)));
            Recorded { steps: steps.clone(), begin: Duration::from_nanos(begin), lane, times: Arc::new(told) }
        };
        let calls = [call(1_000, 0, [345, 7, 0]), call(1_100, 0, [3, 0, 5]), call(1_100, 1, [3, 0, 0])];
        let trace: Value = serde_json::from_str(&trace("a \"GPU\" \\ \n\u{1}", &calls)).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        assert_eq!(events[0]["args"]["name"], "a \"GPU\" \\ \n\u{1}");
        let shown = |category: &str| -> Vec<(String, u64, u64, u64)> {
            let cut = |event: &Value, key: &str| (event[key].as_f64().unwrap() * 1000.0) as u64;
            let of = events.iter().filter(|event| event["cat"] == category);
            let one = |e: &Value| {
                (e["name"].as_str().unwrap().into(), cut(e, "ts"), cut(e, "dur"), e["tid"].as_u64().unwrap())
            };
            of.map(one).collect()
        };
        // The second call waits for the end of the first; another thread's does not.
        let expected = [("Net.run", 1000, 352, 1), ("Net.run", 1352, 8, 1), ("Net.run", 1100, 3, 3)];
        assert_eq!(shown("call"), expected.map(|(name, ts, dur, track)| (name.to_string(), ts, dur, track)));
        let expected = [
            ("blocks contract", 1000, 345, 2),
            ("blocks rows", 1345, 7, 2),
            ("blocks contract", 1352, 3, 2),
            ("update", 1355, 5, 2),
            ("blocks contract", 1100, 3, 4),
        ];
        assert_eq!(shown("step"), expected.map(|(name, ts, dur, track)| (name.to_string(), ts, dur, track)));
        let step = events.iter().find(|event| event["cat"] == "step").unwrap();
        assert_eq!(step["args"]["what"], "@ \"quoted\" \\");
    }
}
