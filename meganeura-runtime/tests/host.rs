//! The CPU's replayer: what a call after the first allocates.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Counting allocations takes an allocator of one's own.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use meganeura_core::autodiff::Policy;
use meganeura_core::testing::{bare_schedule, random_smooth_graph, training};
use meganeura_runtime::device::Buffer;
use meganeura_runtime::replay::{Call, Place, Program, Stretch, bytes, replayer};
use meganeura_runtime::{Device, Error};
use meganeura_shaders::dim::Symbols;
use meganeura_shaders::schedule::{BufferKind, Schedule};
use meganeura_shaders::table::count_steps;

struct Counting;

static BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is the system allocator's; the count changes nothing of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: as the caller vouches.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller vouches.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bytes that a call of one graph allocates, of those after the first, and how many steps it has.
fn allocated(device: &Device, seed: u64, rows: i64) -> (u64, u64) {
    const CALLS: u64 = 10;
    let (graph, loss) = random_smooth_graph(seed);
    let mut graph = training(&graph, loss, Policy::Contractions);
    graph.symbols = Symbols::default();
    graph.symbols.declare("rows", 1, 70, 1);
    graph.symbols.declare("count", 2, 2, 1);
    let schedule: Schedule = bare_schedule(&graph, "counted", true).unwrap();
    let env = schedule.symbols.bind(&[rows, 2]).unwrap();
    let steps = count_steps(&schedule.plans[0].items, &schedule, &|_| true).eval(&env).unsigned_abs();
    let encoded = postcard::to_allocvec(&schedule).unwrap();
    let mut program = Program::open(&encoded, |schedule| replayer(device, schedule, &[])).unwrap();
    let recipe = program.recipe(env.clone()).unwrap();
    let arena = device.buffer("arena", recipe.arena.bytes.unsigned_abs()).unwrap();
    let own: Vec<Buffer> =
        (0..schedule.buffers.len()).map(|id| device.buffer("own", bytes(&schedule, id, &env)).unwrap()).collect();
    let locate = |id: usize, offset: u64| -> Result<Place<'_>, Error> {
        let (buffer, start) = match schedule.buffers[id].kind {
            BufferKind::Arena { .. } => (&arena, recipe.arena.offsets[&id].unsigned_abs()),
            _ => (&own[id], 0),
        };
        Ok(Place::Device(Stretch { buffer: buffer.clone(), offset: start + offset }))
    };
    let call = Call::new(&locate, &[], None);
    recipe.replay(&call).unwrap();
    let before = BYTES.load(Ordering::Relaxed);
    (0..CALLS).for_each(|_| recipe.replay(&call).unwrap());
    ((BYTES.load(Ordering::Relaxed) - before) / CALLS, steps)
}

/// Larger products pack what lies across their way, in the GEMM crate's own memory.
#[test]
fn calls_after_the_first_allocate_nothing_but_what_larger_products_pack() {
    let device = Device::host_with_threads(1);
    for seed in 0..60 {
        assert_eq!(allocated(&device, seed, 7).0, 0, "seed {seed}");
        let (bytes, steps) = allocated(&device, seed, 33);
        assert!(bytes <= 4096 * steps, "seed {seed}: {bytes} bytes in {steps} steps");
    }
}
