//! Gathers, scatters, running totals and concatenations.

use meganeura_shaders::dim::{Dim, Symbols};
use meganeura_shaders::kernel::{Kernel, Scan};
use meganeura_shaders::prog::DType;

use crate::case::{Case, LAYOUTS, Layout, member};
use crate::devices::Devices;

const F: DType = DType::F32;

/// outer, n, m, inner.
fn symbols() -> (Symbols, [Dim; 4]) {
    let mut symbols = Symbols::default();
    let dims = ["o", "n", "m", "i"].map(|name| symbols.declare(name, 1, 9999, 1));
    (symbols, dims)
}

/// Ids go up to 6, so some of them lie beyond small axes.
const SIZES: [[i64; 4]; 7] =
    [[1, 1, 1, 1], [3, 5, 7, 2], [1, 31, 33, 5], [2, 257, 300, 3], [5, 3, 1, 257], [1, 7, 1031, 1], [4, 2, 513, 4]];

#[test]
fn gathers_and_scatters_match_in_every_layout_and_shape_of_ids() {
    let mut devices = Devices::open();
    let (symbols, [o, n, m, i]) = symbols();
    let one = Dim::from(1);
    for layout in LAYOUTS {
        for ids in [
            vec![o.clone(), m.clone(), i.clone()],
            vec![one.clone(), m.clone(), one.clone()],
            vec![o.clone(), m.clone(), one.clone()],
            vec![one.clone(), m.clone(), i.clone()],
        ] {
            let ids = (ids, DType::U32);
            let x = (vec![o.clone(), n.clone(), i.clone()], F);
            let values = (vec![o.clone(), m.clone(), i.clone()], F);
            let gather = member(Kernel::Gather, &[x, ids.clone()], layout, 0);
            let scatter = member(Kernel::ScatterAdd(n.clone()), &[values, ids], layout, 0);
            for one in [gather, scatter] {
                let case = Case::new(&symbols, vec![one]).exact();
                for sizes in SIZES {
                    case.check(&mut devices, &sizes);
                }
            }
        }
    }
}

#[test]
fn rows_of_fours_are_gathered_as_fours() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let (n, m, i) = (symbols.declare("n", 1, 99, 1), symbols.declare("m", 1, 999, 1), symbols.declare("i", 4, 400, 4));
    let one = Dim::from(1);
    for dtype in [F, DType::Bool] {
        let x = (vec![one.clone(), n.clone(), i.clone()], dtype);
        let ids = (vec![one.clone(), m.clone(), one.clone()], DType::U32);
        let case = Case::new(&symbols, vec![member(Kernel::Gather, &[x.clone(), ids], Layout::Inside, 0)]).exact();
        let (_, _, texts) = case.variants();
        assert_eq!(texts.list()[0].matches(": array<vec4<").count(), 2, "{}", texts.list()[0]);
        case.check(&mut devices, &[5, 77, 36]);
        case.check(&mut devices, &[1, 1, 4]);
        let parts = [x.clone(), (vec![one.clone(), m.clone(), i.clone()], dtype), x];
        let case = Case::new(&symbols, vec![member(Kernel::Concat(3), &parts, Layout::Inside, 0)]).exact();
        let (_, _, texts) = case.variants();
        assert_eq!(texts.list()[0].matches(": array<vec4<").count(), 4, "{}", texts.list()[0]);
        case.check(&mut devices, &[5, 77, 36]);
    }
}

#[test]
fn scatters_of_integers_wrap_and_those_of_floats_have_one_order() {
    let mut devices = Devices::open();
    let (symbols, [o, n, m, i]) = symbols();
    for dtype in [DType::U32, DType::I32] {
        let values = (vec![o.clone(), m.clone(), i.clone()], dtype);
        let ids = (vec![o.clone(), m.clone(), Dim::from(1)], DType::U32);
        let case = Case::new(&symbols, vec![member(Kernel::ScatterAdd(n.clone()), &[values, ids], Layout::Odd, 0)]);
        case.exact().check(&mut devices, &[2, 5, 300, 3]);
    }
    // In the order of the values the sum is 1; in others the 1 is lost beside 2^24. All ids are 0.
    let order = |argument: usize, k: usize| match (argument, k) {
        (0, 1) => 16_777_216.0,
        (0, 2) => -16_777_216.0,
        (0, 3) => 1.0,
        _ => 0.0,
    };
    let values = (vec![Dim::from(1), Dim::from(300), Dim::from(1)], F);
    let ids = (vec![Dim::from(1), Dim::from(300), Dim::from(1)], DType::U32);
    let one = member(Kernel::ScatterAdd(Dim::from(1)), &[values, ids.clone()], Layout::Aligned, 0);
    Case::new(&Symbols::default(), vec![one]).data(order).check(&mut devices, &[]);
    let order = |argument: usize, k: usize| match (argument, k.div_ceil(4)) {
        (0, 1) => 16_777_216.0,
        (0, 2) => -16_777_216.0,
        (0, 3) => k as f64,
        _ => 0.0,
    };
    let values = (vec![Dim::from(1), Dim::from(300), Dim::from(4)], F);
    let one = member(Kernel::ScatterAdd(Dim::from(1)), &[values, ids], Layout::Aligned, 0);
    Case::new(&Symbols::default(), vec![one]).data(order).check(&mut devices, &[]);
}

#[test]
fn running_totals_match_at_any_length() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let (m, n) = (symbols.declare("m", 1, 99, 1), symbols.declare("n", 1, 9999, 1));
    for layout in LAYOUTS {
        for bits in 0..8u8 {
            let scan = Scan { product: bits & 1 == 1, exclusive: bits & 2 == 2, reverse: bits & 4 == 4 };
            for dtype in [F, DType::U32, DType::I32] {
                let args = [(vec![m.clone(), Dim::from(2), n.clone()], dtype)];
                let case = Case::new(&symbols, vec![member(Kernel::Scan(scan), &args, layout, 0)]);
                // Products of floats stay near 1.
                let case = match (scan.product, dtype) {
                    (true, F) => case.data(|_, k| 0.9 + (k % 7) as f64 / 32.0),
                    _ => case.exact(),
                };
                for sizes in [[1, 1], [3, 31], [2, 256], [2, 257], [1, 1000]] {
                    case.check(&mut devices, &sizes);
                }
            }
        }
    }
}

#[test]
fn parts_lie_one_behind_the_other() {
    let mut devices = Devices::open();
    let (symbols, [o, n, m, i]) = symbols();
    for layout in LAYOUTS {
        for count in [1u8, 2, 5, 12] {
            let size = |k: u8| [n.clone(), Dim::from(1), m.clone()][usize::from(k) % 3].clone();
            let args: Vec<_> = (0..count).map(|k| (vec![o.clone(), size(k), i.clone()], F)).collect();
            let case = Case::new(&symbols, vec![member(Kernel::Concat(count), &args, layout, 0)]).exact();
            for sizes in [[1, 1, 1, 1], [3, 5, 7, 2], [1, 31, 33, 1], [2, 3, 1, 257]] {
                case.check(&mut devices, &sizes);
            }
        }
    }
}
