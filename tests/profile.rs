//! Times of steps: which steps they are of, and what the trace says.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use meganeura::{Device, Error, Profile, Schedule, Sgd, model};
use meganeura_runtime::testing::devices_with;
use meganeura_shaders::schedule::{Item, Step};
use serde_json::Value;

model! {
    layer Block<dim> {
        up: Linear<dim, dim>,
        down: Linear<dim, dim>,
        fn forward(x: f32[.., dim]) -> f32[.., dim] { x + down(tanh(up(x))) }
    }

    /// A loop between two products.
    model Net<depth = 3, batch in 1..=64> {
        embed: Linear<6, 8>,
        blocks: [Block<8>; depth],
        head: Linear<8, 2>,

        /// Two numbers a row.
        pub fn run(x: f32[batch, 6]) -> f32[batch, 2] {
            let mut h = embed(x);
            for block in blocks { h = block(h); }
            head(h)
        }

        /// The mean of squares.
        #[train]
        pub fn loss(x: f32[batch, 6], y: f32[batch, 2]) -> f32 { mse(run(x), y) }
    }

    /// More launches than a command buffer has times for.
    model Deep = Net<depth = 700>;
}

fn values(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|k| ((k * 7919 + seed * 104_729) % 2003) as f32 / 1001.5 - 1.0).collect()
}

/// The devices of this machine, measuring times.
fn devices() -> Vec<Device> {
    devices_with(Device::options().profile(true))
}

/// The number of each step, with how often a call launches it.
fn launches(schedule: &Schedule) -> Vec<(Step, u64)> {
    fn walk(items: &[Item], times: u64, count: &dyn Fn(usize) -> u64, steps: &mut Vec<(Step, u64)>) {
        for item in items {
            match item {
                Item::Step(step) => steps.push((step.clone(), times)),
                Item::Loop { id, body } => walk(body, times * count(*id), count, steps),
            }
        }
    }
    let data = schedule.data();
    let env = data.symbols.bind(&[5]).unwrap();
    let mut steps = vec![];
    walk(&data.plans[0].items, 1, &|id| data.loops[id].count.eval(&env).unsigned_abs(), &mut steps);
    steps
}

/// Checks that a profile is of some calls of an entry, and of nothing else.
fn check(profile: &Profile, entry: &str, calls: u64, schedule: &Schedule, updates: u64) {
    assert_eq!(profile.calls("Net", entry), calls);
    let expected = launches(schedule);
    let steps: Vec<_> = profile.steps().collect();
    assert_eq!(steps.len(), expected.len() + usize::from(updates > 0), "{profile}");
    for (number, (found, (step, launches))) in steps.iter().zip(&expected).enumerate() {
        assert_eq!((found.model.as_str(), found.entry.as_str(), found.number), ("Net", entry, number));
        assert_eq!(found.launches, launches * calls, "{found:?}");
        assert!(found.kernel.contains(step.members[0].kernel.name()), "{found:?}");
        assert_eq!(found.layer, step.origins[0].path);
        assert!(found.what.ends_with(&step.origins[0].what), "{found:?}");
        assert!(found.time > Duration::ZERO && found.time < Duration::from_secs(100), "{found:?}");
        assert!(found.bytes > 0 && found.bytes.is_multiple_of(calls));
    }
    if updates > 0 {
        let update = steps.last().unwrap();
        assert_eq!((update.kernel.as_str(), update.number, update.launches), ("update", expected.len(), updates));
        assert!(update.time > Duration::ZERO);
    }
}

/// The events of a category, in order.
fn events(trace: &Value, category: &str) -> Vec<Value> {
    let all = trace["traceEvents"].as_array().unwrap();
    all.iter().filter(|event| event["cat"] == category).cloned().collect()
}

#[test]
fn every_step_of_the_schedule_has_its_time() {
    let plain = Net::with_seed(&Device::host(), 3).unwrap().run(&values(30, 1)).unwrap().to_vec().unwrap();
    for device in devices() {
        let mut net = Net::with_seed(&device, 3).unwrap();
        let mut found = vec![];
        for _ in 0..4 {
            found = net.run(&values(30, 1)).unwrap().to_vec().unwrap();
        }
        let profile = device.take_profile().unwrap();
        check(&profile, "run", 4, &Net::schedule_run().unwrap(), 0);
        assert_eq!(profile.time(), profile.steps().map(|step| step.time).sum());
        let error = found.iter().zip(&plain).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(error < 1e-5, "{device}: {error}");
        // What was taken is gone, and what follows is counted anew.
        assert_eq!(device.take_profile().unwrap().steps().count(), 0);
        net.run(&values(30, 1)).unwrap();
        check(&device.take_profile().unwrap(), "run", 1, &Net::schedule_run().unwrap(), 0);
    }
}

#[test]
fn a_training_step_ends_in_its_update() {
    for device in devices() {
        let mut trainer = Net::new(&device).unwrap().trainer(Sgd::new(0.1)).unwrap();
        let losses: Vec<f32> =
            (0..3).map(|_| trainer.step(&values(30, 1), &values(10, 2)).unwrap().get().unwrap()).collect();
        assert!(losses[2] < losses[0], "{losses:?}");
        let profile = device.take_profile().unwrap();
        check(&profile, "loss, training", 3, &NetTrainer::schedule_loss().unwrap(), 3);
        let text = profile.to_string();
        for part in ["Net.loss, training: 3 calls, ", "blocks.up", "optimizer", "layer", "GB/s"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}

#[test]
fn the_trace_has_one_event_for_each_launch_in_order() {
    for device in devices() {
        let mut net = Net::new(&device).unwrap();
        (0..2).for_each(|_| drop(net.run(&values(30, 1)).unwrap()));
        let trace: Value = serde_json::from_str(&device.take_profile().unwrap().trace()).unwrap();
        let (calls, steps) = (events(&trace, "call"), events(&trace, "step"));
        assert_eq!(calls.len(), 2);
        assert!(calls.iter().all(|call| call["name"] == "Net.run" && call["args"]["batch"] == 5));
        // Four of a text of four, three times the two of the loop.
        let order: Vec<u64> = steps.iter().map(|step| step["args"]["step"].as_u64().unwrap()).collect();
        assert_eq!(order, [0, 1, 2, 1, 2, 1, 2, 3, 0, 1, 2, 1, 2, 1, 2, 3], "{device}");
        let iteration = |k: usize| steps[k]["args"]["iteration"].to_string();
        assert_eq!([0, 1, 2, 3, 6, 7].map(iteration), ["[]", "[0]", "[0]", "[1]", "[2]", "[]"]);
        assert_eq!(steps[7]["name"], "head contract");
        let number = |event: &Value, key: &str| event[key].as_f64().unwrap();
        for (before, after) in steps.iter().zip(&steps[1..]) {
            assert!(number(before, "dur") > 0.0 && before["ph"] == "X");
            assert!(number(before, "ts") + number(before, "dur") <= number(after, "ts") + 1e-6);
        }
        // A call is as long as its steps.
        let sum: f64 = steps[..8].iter().map(|step| number(step, "dur")).sum();
        assert!((sum - number(&calls[0], "dur")).abs() < 1e-6);
    }
}

#[test]
fn a_call_of_more_launches_than_one_command_buffer_times_is_timed_to_its_end() {
    for device in devices() {
        let mut deep = Deep::new(&device).unwrap();
        drop(deep.run(&values(6, 1)).unwrap());
        let profile = device.take_profile().unwrap();
        let launches: Vec<u64> = profile.steps().map(|step| step.launches).collect();
        assert_eq!(launches, [1, 700, 700, 1], "{device}");
        let trace: Value = serde_json::from_str(&profile.trace()).unwrap();
        assert_eq!(events(&trace, "step").len(), 1402);
    }
}

#[test]
fn calls_of_several_threads_stand_on_several_tracks_of_the_cpu() {
    let device = Device::options().profile(true).host_with_threads(2);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| Net::new(&device).unwrap().run(&values(30, 1)).unwrap().to_vec().unwrap());
        }
    });
    let profile = device.take_profile().unwrap();
    check(&profile, "run", 3, &Net::schedule_run().unwrap(), 0);
    let trace: Value = serde_json::from_str(&profile.trace()).unwrap();
    let mut tracks: Vec<u64> = events(&trace, "call").iter().map(|call| call["tid"].as_u64().unwrap()).collect();
    tracks.sort_unstable();
    assert_eq!(tracks, [1, 3, 5]);
}

#[test]
fn a_device_that_was_opened_without_it_has_no_profile() {
    let Err(Error::Mismatch { expected, .. }) = Device::host().take_profile() else { panic!("nothing was measured") };
    assert!(expected.contains("profile(true)"), "{expected}");
}

#[test]
fn a_trace_is_written_to_a_file() {
    let device = Device::options().profile(true).host();
    drop(Net::new(&device).unwrap().run(&values(6, 1)).unwrap());
    let profile = device.take_profile().unwrap();
    let path = std::env::temp_dir().join(format!("meganeura-trace-{}.json", std::process::id()));
    profile.write_trace(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), profile.trace());
    std::fs::remove_file(&path).unwrap();
    let Err(Error::File { doing, .. }) = profile.write_trace(path.join("nowhere")) else { panic!("no such folder") };
    assert_eq!(doing, "writing");
}
