//! The device layer on whatever Vulkan device this machine has: exact values through chains of dispatches.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use meganeura_runtime::device::gpu::{
    Binding, Buffer, Dispatch, Gpu, Limits, Memory, Pipeline, Recorder, Source, Transfer,
};
use meganeura_runtime::testing::devices;
use meganeura_runtime::{Device, DeviceKind, Error};
use std::sync::OnceLock;

/// Every element becomes `3 x + add` (wrapping), read from its neighbour: a missing barrier is seen.
const STEP: &str = "struct P { count: u32, add: u32, shift: u32 }
var<storage> b0: array<u32>;
var<storage, read_write> b1: array<u32>;
var<uniform> p: P;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < p.count { b1[id.x] = 3u * b0[(id.x + p.shift) % p.count] + p.add; }
}";

/// The Vulkan device of all tests, or none, with a line that says so.
fn device() -> Option<&'static Gpu> {
    static DEVICE: OnceLock<Option<Gpu>> = OnceLock::new();
    DEVICE.get_or_init(fresh).as_ref()
}

/// One of its own.
fn fresh() -> Option<Gpu> {
    devices().iter().find_map(Device::as_gpu).cloned()
}

fn upload(device: &Gpu, values: &[u32]) -> Buffer {
    let buffer = device.buffer("test", 4 * values.len() as u64).unwrap();
    device.upload(buffer.at(0), bytemuck::cast_slice(values)).unwrap();
    buffer
}

fn download(device: &Gpu, from: Binding, count: usize) -> Vec<u32> {
    let mut values = vec![0; count];
    device.download(from, bytemuck::cast_slice_mut(&mut values)).unwrap();
    values
}

/// Records `steps` dependent dispatches between two buffers.
fn chain(recorder: &mut Recorder, pipeline: &Pipeline, buffers: [&Buffer; 2], count: u32, steps: u32) {
    let bindings = [[buffers[0].at(0), buffers[1].at(0)], [buffers[1].at(0), buffers[0].at(0)]];
    let words: Vec<[u32; 3]> = (0..steps).map(|step| [count, step, 65 + step]).collect();
    let dispatches = words.iter().enumerate().map(|(step, words)| Dispatch {
        pipeline,
        buffers: &bindings[step % 2],
        words,
        grid: [count.div_ceil(64), 1, 1],
        barrier: step > 0,
    });
    recorder.compute(dispatches).unwrap();
}

fn chain_on_host(mut values: Vec<u32>, steps: u32) -> Vec<u32> {
    let count = values.len();
    for step in 0..steps {
        let read = |i: usize| values[(i + 65 + step as usize) % count].wrapping_mul(3).wrapping_add(step);
        values = (0..count).map(read).collect();
    }
    values
}

#[test]
fn the_device_prints_what_it_is() {
    let Some(device) = device() else { return };
    let text = device.to_string();
    let kind = match device.info().kind {
        DeviceKind::Gpu => "GPU",
        _ => "software Vulkan",
    };
    assert!(text.starts_with(&device.info().name) && text.contains(kind), "{text}");
    assert!(Device::list().contains(device.info()));
    assert!(Device::named(&device.info().name.to_uppercase()).is_ok());
}

#[test]
fn a_missing_device_is_an_error_that_lists_what_there_is() {
    let Some(device) = device() else { return };
    let error = Device::named("no such device").unwrap_err();
    assert!(matches!(error, Error::NoDevice { .. }));
    let text = error.to_string();
    assert!(text.contains("`no such device`") && text.contains(&device.info().name), "{text}");
    if device.info().kind == DeviceKind::Software {
        assert!(Device::gpu().is_err());
    }
}

#[test]
fn a_dependent_chain_is_exact() {
    let Some(device) = device() else { return };
    let pipeline = device.pipeline("step", STEP).unwrap();
    for (count, steps) in [(1, 2), (63, 5), (64, 8), (65, 200), (10_007, 301)] {
        let start: Vec<u32> = (0..count).map(|i| i * 7 + 1).collect();
        let (a, b) = (upload(device, &start), device.buffer("test", 4 * u64::from(count)).unwrap());
        let mut recorder = device.recorder().unwrap();
        chain(&mut recorder, &pipeline, [&a, &b], count, steps);
        recorder.submit().unwrap().wait().unwrap();
        let end = if steps % 2 == 0 { &a } else { &b };
        assert_eq!(download(device, end.at(0), count as usize), chain_on_host(start, steps), "{count} × {steps}");
    }
}

#[test]
fn independent_dispatches_at_offsets_write_only_their_own_part() {
    let Some(device) = device() else { return };
    let pipeline = device.pipeline("step", STEP).unwrap();
    let start: Vec<u32> = (0..64 * 40).collect();
    let (a, b) = (upload(device, &start), device.buffer("test", 4 * 64 * 40).unwrap());
    let bindings: Vec<[Binding; 2]> = (0..40).map(|i| [a.at(256 * (39 - i)), b.at(256 * i)]).collect();
    let words: Vec<[u32; 3]> = (0..40).map(|i| [64, 1000 * i, i]).collect();
    let mut recorder = device.recorder().unwrap();
    let dispatch = |i: usize| Dispatch {
        pipeline: &pipeline,
        buffers: &bindings[i],
        words: &words[i],
        grid: [1; 3],
        barrier: false,
    };
    recorder.compute((0..40).map(dispatch)).unwrap();
    recorder.submit().unwrap().wait().unwrap();
    let want: Vec<u32> =
        (0..40u32).flat_map(|i| (0..64).map(move |j| 3 * ((39 - i) * 64 + (j + i) % 64) + 1000 * i)).collect();
    assert_eq!(download(device, b.at(0), want.len()), want);
}

#[test]
fn submissions_in_flight_run_in_order_and_none_is_reused_early() {
    let Some(device) = device() else { return };
    let pipeline = device.pipeline("step", STEP).unwrap();
    let count = 4_099;
    let start: Vec<u32> = (0..count).collect();
    let (a, b) = (upload(device, &start), device.buffer("test", 4 * u64::from(count)).unwrap());
    let mut want = start;
    for _ in 0..50 {
        let mut recorder = device.recorder().unwrap();
        chain(&mut recorder, &pipeline, [&a, &b], count, 4);
        recorder.submit().unwrap();
        want = chain_on_host(want, 4);
    }
    assert_eq!(download(device, a.at(0), count as usize), want);
}

#[test]
fn a_recording_that_is_kept_sees_what_was_submitted_before_it() {
    let Some(device) = device() else { return };
    let pipeline = device.pipeline("step", STEP).unwrap();
    let start: Vec<u32> = (0..777).map(|i| i ^ 0x5555).collect();
    let (a, b) = (upload(device, &start), device.buffer("test", 4 * 777).unwrap());
    let mut kept = device.recorder().unwrap();
    chain(&mut kept, &pipeline, [&a, &b], 777, 6);
    let mut first = device.recorder().unwrap();
    chain(&mut first, &pipeline, [&a, &b], 777, 2);
    first.submit().unwrap();
    // Recordings may change threads.
    std::thread::spawn(move || kept.submit().unwrap().wait().unwrap()).join().unwrap();
    assert_eq!(download(device, a.at(0), 777), chain_on_host(chain_on_host(start, 2), 6));
}

#[test]
fn ten_thousand_dispatches_are_split_and_stay_ordered() {
    let Some(device) = device() else { return };
    let pipeline = device.pipeline("step", STEP).unwrap();
    let start = vec![1, 2, 3];
    let (a, b) = (upload(device, &start), device.buffer("test", 12).unwrap());
    let mut recorder = device.recorder().unwrap();
    chain(&mut recorder, &pipeline, [&a, &b], 3, 10_000);
    recorder.submit().unwrap();
    assert_eq!(download(device, a.at(0), 3), chain_on_host(start, 10_000));
}

#[test]
fn every_count_of_words_reaches_the_kernel() {
    let Some(device) = device() else { return };
    for count in [0, 1, 2, 3, 5, 8, 16, 31, 32, 33, 59, 60] {
        let members: Vec<String> = (0..count).map(|i| format!("w{i}: u32")).collect();
        let (declared, stores) = match count {
            0 => (String::new(), String::new()),
            _ => (
                format!("struct P {{ {} }} var<uniform> p: P;", members.join(", ")),
                (0..count).map(|i| format!("b0[{i}] = p.w{i};")).collect(),
            ),
        };
        let text = format!(
            "{declared} var<storage, read_write> b0: array<u32>;
             @compute @workgroup_size(1) fn main() {{ b0[60] = 7u; {stores} }}"
        );
        let pipeline = device.pipeline("words", &text).unwrap();
        assert_eq!(pipeline.interface().words, count);
        let words: Vec<u32> = (0..count as u32).map(|i| i * i + 11).collect();
        let buffer = upload(device, &[0; 61]);
        let mut recorder = device.recorder().unwrap();
        let buffers = [buffer.at(0)];
        recorder
            .compute([Dispatch { pipeline: &pipeline, buffers: &buffers, words: &words, grid: [1; 3], barrier: false }])
            .unwrap();
        recorder.submit().unwrap();
        let mut want = words.clone();
        want.resize(60, 0);
        want.push(7);
        assert_eq!(download(device, buffer.at(0), 61), want, "{count} words");
    }
}

#[test]
fn fifteen_buffers_bind_by_number_and_undeclared_ones_are_ignored() {
    let Some(device) = device() else { return };
    let declared: String = (0..14).filter(|i| i % 3 != 1).map(|i| format!("var<storage> b{i}: array<u32>;")).collect();
    let sum: String = (0..14).filter(|i| i % 3 != 1).map(|i| format!(" + b{i}[0] * {}u", i + 1)).collect();
    let text = format!(
        "{declared} var<storage, read_write> b14: array<u32>;
         @compute @workgroup_size(1) fn main() {{ b14[0] = 0u{sum}; }}"
    );
    let pipeline = device.pipeline("many", &text).unwrap();
    assert_eq!(pipeline.interface().buffers, [0, 2, 3, 5, 6, 8, 9, 11, 12, 14]);
    let buffers: Vec<Buffer> = (0..15).map(|i| upload(device, &[100 + i])).collect();
    let bindings: Vec<Binding> = buffers.iter().map(Binding::from).collect();
    let mut recorder = device.recorder().unwrap();
    recorder
        .compute([Dispatch { pipeline: &pipeline, buffers: &bindings, words: &[], grid: [1; 3], barrier: false }])
        .unwrap();
    recorder.submit().unwrap();
    let want: u32 = (0..14).filter(|i| i % 3 != 1).map(|i| (100 + i) * (i + 1)).sum();
    assert_eq!(download(device, bindings[14], 1), [want]);
}

#[test]
fn copies_fills_and_kernels_of_one_recording_are_ordered() {
    let Some(device) = device() else { return };
    let pipeline = device.pipeline("step", STEP).unwrap();
    let start: Vec<u32> = (0..256).collect();
    let (a, b, c) = (upload(device, &start), upload(device, &[9; 256]), upload(device, &[8; 256]));
    let words = [256, 5, 1];
    let run = |recorder: &mut Recorder, from: &Buffer, to: &Buffer| {
        let buffers = [from.at(0), to.at(0)];
        let dispatch =
            Dispatch { pipeline: &pipeline, buffers: &buffers, words: &words, grid: [4, 1, 1], barrier: false };
        recorder.compute([dispatch]).unwrap();
    };
    let mut recorder = device.recorder().unwrap();
    run(&mut recorder, &a, &b);
    recorder.transfer([Transfer::Copy { from: b.at(4), to: c.at(0), bytes: 4 * 255 }]).unwrap();
    recorder.transfer([Transfer::Fill { to: c.at(4), bytes: 8, value: 1 }]).unwrap();
    run(&mut recorder, &c, &a);
    recorder.submit().unwrap();
    let b: Vec<u32> = (0..256).map(|i| 3 * ((i + 1) % 256) + 5).collect();
    let mut c: Vec<u32> = b[1..].to_vec();
    c.push(8);
    c[1..3].fill(0x0101_0101);
    let want: Vec<u32> = (0..256).map(|i| 3 * c[(i + 1) % 256] + 5).collect();
    assert_eq!(download(device, a.at(0), 256), want);
}

#[test]
fn large_and_odd_copies_come_back_unchanged() {
    let Some(device) = device() else { return };
    for bytes in [1usize, 3, 5, 4096, (16 << 20) + 5] {
        let values: Vec<u8> = (0..bytes).map(|i| (i * 31 + i / 251) as u8).collect();
        let buffer = device.buffer("test", bytes as u64 + 256).unwrap();
        device.upload(buffer.at(256), &values).unwrap();
        let mut back = vec![0; bytes];
        device.download(buffer.at(256), &mut back).unwrap();
        assert!(back == values, "{bytes} bytes");
    }
}

#[test]
fn dropped_buffers_live_until_the_device_is_done() {
    let Some(device) = fresh() else { return };
    let pipeline = device.pipeline("step", STEP).unwrap();
    let count = 100_003;
    let start: Vec<u32> = (0..count).collect();
    let end = device.buffer("test", 4 * u64::from(count)).unwrap();
    {
        let (a, b) = (upload(&device, &start), device.buffer("test", 4 * u64::from(count)).unwrap());
        let mut recorder = device.recorder().unwrap();
        chain(&mut recorder, &pipeline, [&a, &b], count, 20);
        recorder.transfer([Transfer::Copy { from: a.at(0), to: end.at(0), bytes: 4 * u64::from(count) }]).unwrap();
        recorder.submit().unwrap();
    }
    drop(pipeline);
    // These would get the freed memory.
    let noise: Vec<Buffer> = (0..4).map(|_| upload(&device, &vec![7; count as usize])).collect();
    assert_eq!(download(&device, end.at(0), count as usize), chain_on_host(start, 20));
    drop(noise);
}

#[test]
fn memory_is_accounted_for_and_comes_back() {
    let Some(device) = fresh() else { return };
    let before = device.allocated_bytes();
    let buffer = device.buffer("test", 1 << 20).unwrap();
    assert_eq!(device.allocated_bytes() - before, 1 << 20);
    drop(buffer);
    assert_eq!(device.allocated_bytes(), before);
}

#[test]
fn staging_memory_is_used_again() {
    let Some(device) = fresh() else { return };
    let buffer = device.buffer("test", 1 << 16).unwrap();
    device.upload(buffer.at(0), &[1; 1 << 16]).unwrap();
    download(&device, buffer.at(0), 1 << 14);
    let before = device.allocated_bytes();
    for _ in 0..20 {
        device.upload(buffer.at(0), &[1; 1 << 16]).unwrap();
        download(&device, buffer.at(0), 1 << 14);
    }
    assert_eq!(device.allocated_bytes(), before);
}

#[test]
fn host_memory_is_checked_against_its_size() {
    let Some(device) = device() else { return };
    let mut host = device.host_buffer(Memory::Upload, 4096).unwrap();
    let size = host.buffer().bytes();
    host.write(size - 3, &[1, 2, 3]).unwrap();
    assert!(host.write(size - 2, &[1, 2, 3]).is_err());
    assert!(host.write(u64::MAX, &[1]).is_err());
}

#[test]
fn equal_texts_share_a_pipeline_and_each_error_names_its_kernel() {
    let Some(device) = device() else { return };
    let other = STEP.replace("3u", "4u");
    let sources = [("a", STEP), ("bad", "fn"), ("b", &other[..]), ("c", STEP), ("bad too", "fn")]
        .map(|(name, text)| Source { name, text });
    let made = device.pipelines(&sources);
    assert_eq!(made[0].as_ref().unwrap().name(), made[3].as_ref().unwrap().name());
    assert_eq!(made[2].as_ref().unwrap().interface(), made[0].as_ref().unwrap().interface());
    assert!(made[1].as_ref().unwrap_err().to_string().contains("`bad`"));
    assert!(made[4].is_err());
}

#[test]
fn texts_outside_the_conventions_are_refused_by_name() {
    let Some(device) = device() else { return };
    let main = "@compute @workgroup_size(1) fn main()";
    for (text, problem) in [
        (format!("var<storage> c: array<u32>; {main} {{}}"), "found `c`"),
        (format!("var<uniform> q: u32; {main} {{}}"), "found `q`"),
        (format!("struct P {{ a: f32 }} var<uniform> p: P; {main} {{}}"), "`u32` words"),
        (format!("{main} {{}} @compute @workgroup_size(1) fn more() {{}}"), "found 2"),
        (format!("{main} {{ let a: f32 = 1u; }}"), "f32"),
        ("@compute @workgroup_size(1, 1, 4097) fn main() {}".to_string(), "found 4097"),
        (format!("var<workgroup> t: array<f32, 400000>; {main} {{ t[0] = 1.0; }}"), "memory`: at most"),
    ] {
        let error = device.pipeline("odd one", &text).unwrap_err().to_string();
        assert!(error.contains("`odd one`") && error.contains(problem), "{error}");
    }
}

#[test]
fn dispatches_that_do_not_fit_their_kernel_are_refused_and_nothing_runs() {
    let Some(device) = device() else { return };
    let pipeline = device.pipeline("step", STEP).unwrap();
    let (a, b) = (upload(device, &[5; 64]), upload(device, &[6; 64]));
    let (whole, short, odd, beyond) = ([a.at(0), b.at(0)], [a.at(0)], [a.at(0), b.at(128)], [a.at(0), b.at(256)]);
    let words = [64, 1, 0];
    let good = Dispatch { pipeline: &pipeline, buffers: &whole, words: &words, grid: [1; 3], barrier: false };
    for (bad, problem) in [
        (Dispatch { buffers: &short, ..good }, "expected 2 buffers, found 1"),
        (Dispatch { words: &words[1..], ..good }, "expected 3 words of `p`, found 2"),
        (Dispatch { buffers: &odd, ..good }, "found 128"),
        (Dispatch { buffers: &beyond, ..good }, "found 256"),
        (Dispatch { grid: [1, 65_536, 1], ..good }, "at most 65535, found 65536"),
    ] {
        let mut recorder = device.recorder().unwrap();
        let error = recorder.compute([good, bad]).unwrap_err().to_string();
        assert!(error.contains("`step`") && error.contains(problem), "{error}");
        assert!(recorder.submit().is_err());
    }
    assert_eq!(download(device, b.at(0), 64), [6; 64]);
}

#[test]
fn an_empty_grid_runs_nothing_but_its_barrier_stays() {
    let Some(device) = device() else { return };
    let pipeline = device.pipeline("step", STEP).unwrap();
    let start: Vec<u32> = (0..9_000).collect();
    let (a, b) = (upload(device, &start), device.buffer("test", 36_000).unwrap());
    let forth = [a.at(0), b.at(0)];
    let back = [b.at(0), a.at(0)];
    let words = [9_000, 1, 77];
    let first = Dispatch { pipeline: &pipeline, buffers: &forth, words: &words, grid: [141, 1, 1], barrier: false };
    let empty = Dispatch { grid: [141, 0, 1], barrier: true, ..first };
    let last = Dispatch { buffers: &back, ..first };
    let mut recorder = device.recorder().unwrap();
    recorder.compute([first, empty, last]).unwrap();
    recorder.submit().unwrap();
    let step = |values: Vec<u32>| (0..9_000).map(|i| 3 * values[(i + 77) % 9_000] + 1).collect::<Vec<u32>>();
    assert_eq!(download(device, a.at(0), 9_000), step(step(start)));
}

#[test]
fn memory_of_another_device_is_refused() {
    let Some(device) = device() else { return };
    let other = fresh().unwrap();
    let pipeline = device.pipeline("step", STEP).unwrap();
    let (a, b) = (upload(device, &[1]), upload(&other, &[2]));
    let buffers = [a.at(0), b.at(0)];
    let dispatch = Dispatch { pipeline: &pipeline, buffers: &buffers, words: &[1, 0, 0], grid: [1; 3], barrier: false };
    let mut recorder = device.recorder().unwrap();
    assert!(matches!(recorder.compute([dispatch]).unwrap_err(), Error::OtherDevice { .. }));
}

#[test]
fn what_is_too_large_is_named_before_it_is_allocated() {
    let Some(device) = device() else { return };
    let allowed = device.limits().binding_bytes;
    let error = device.buffer("a table", allowed + 1).unwrap_err().to_string();
    assert!(
        error.contains("a table") && error.contains(&format!("at most {allowed}, found {}", allowed + 16)),
        "{error}"
    );
    let error = device.check_memory("a model", 1 << 50).unwrap_err().to_string();
    assert!(error.contains("a model needs 1125899906842624 bytes"), "{error}");
}

#[test]
fn limits_and_subgroups_are_those_of_the_driver() {
    let Some(device) = device() else { return };
    let (limits, baseline) = (device.limits(), Limits::BASELINE);
    assert!(limits.binding_bytes >= baseline.binding_bytes && limits.binding_bytes.is_multiple_of(256));
    assert!(limits.invocations >= baseline.invocations && limits.workgroup_bytes >= baseline.workgroup_bytes);
    assert_eq!(limits.workgroups, 65_535);
    let size = device.subgroup_size().unwrap();
    if device.info().kind == DeviceKind::Software {
        assert!(size.is_some_and(|size| size.is_power_of_two() && size <= 128), "{size:?}");
    }
    assert_eq!(device.subgroup_size().unwrap(), size);
}

#[test]
fn after_a_failed_allocation_every_call_says_that_the_device_is_lost() {
    let Some(device) = fresh() else { return };
    let pipeline = device.pipeline("step", STEP).unwrap();
    let buffer = upload(&device, &[1, 2, 3, 4]);
    let submission = device.recorder().unwrap().submit().unwrap();
    submission.wait().unwrap();
    let recorder = device.recorder().unwrap();
    // Host memory is not checked against a budget, so this reaches the driver.
    let error = device.host_buffer(Memory::Upload, 1 << 46).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::DeviceLost { .. }), "{error}");
    assert!(error.to_string().contains("allocating 70368744177664 bytes"), "{error}");
    assert!(device.is_lost());
    let lost = |error: Error| assert!(matches!(error, Error::DeviceLost { .. }), "{error}");
    lost(device.buffer("test", 4).unwrap_err());
    lost(device.upload(buffer.at(0), &[0; 4]).unwrap_err());
    lost(device.download(buffer.at(0), &mut [0; 4]).unwrap_err());
    lost(device.pipeline("other", &STEP.replace("3u", "5u")).unwrap_err());
    lost(device.recorder().map(|_| ()).unwrap_err());
    lost(recorder.submit().map(|_| ()).unwrap_err());
    lost(submission.wait().unwrap_err());
    // Another one works, and dropping the lost one does no harm.
    drop((pipeline, buffer, device));
    let again = fresh().unwrap();
    assert_eq!(download(&again, upload(&again, &[1, 2]).at(0), 2), [1, 2]);
}

#[test]
fn threads_share_a_device() {
    let Some(device) = device() else { return };
    let pipeline = device.pipeline("step", STEP).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let pipeline = &pipeline;
            scope.spawn(move || {
                let start: Vec<u32> = (0..1_001).map(|i| i * (thread + 1)).collect();
                let (a, b) = (upload(device, &start), device.buffer("test", 4_004).unwrap());
                let mut want = start;
                for _ in 0..10 {
                    let mut recorder = device.recorder().unwrap();
                    chain(&mut recorder, pipeline, [&a, &b], 1_001, 6);
                    recorder.submit().unwrap();
                    want = chain_on_host(want, 6);
                }
                assert_eq!(download(device, a.at(0), 1_001), want);
            });
        }
    });
}

#[test]
fn handles_may_change_threads() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<Device>();
    is_sync::<Device>();
    is_send::<Recorder>();
    is_send::<Buffer>();
    is_send::<Error>();
}
