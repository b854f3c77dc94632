//! Pointwise programs: broadcasting, types, indices, fours, large grids.

use meganeura_shaders::dim::{Dim, Symbols};
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{Const, DType, Instr, Prog};
use meganeura_shaders::schedule::{Operand, Slot};

use crate::case::{Case, LAYOUTS, Layout, member, place, positive};
use crate::devices::Devices;
use crate::programs::{add, closed, program, silu};

fn dims(sizes: &[i64]) -> Vec<Dim> {
    sizes.iter().map(|size| Dim::from(*size)).collect()
}

const F: DType = DType::F32;

#[test]
fn every_pointwise_operation_matches_the_registry() {
    let mut devices = Devices::open();
    let symbols = Symbols::default();
    for un in Un::ALL {
        let (prog, dtype) = (Prog::of(&Instr::Un(*un, 0)), if *un == Un::Not { DType::Bool } else { F });
        for sizes in [vec![3, 37], vec![8, 4]] {
            let one = member(Kernel::Rows(prog.clone()), &[(dims(&sizes), dtype)], Layout::Aligned, 0);
            Case::new(&symbols, vec![one]).data(positive).check(&mut devices, &[]);
        }
    }
    for bin in Bin::ALL {
        let types: &[DType] = match bin {
            bin if bin.is_logical() => &[DType::Bool],
            bin if bin.is_comparison() => &[F, DType::U32, DType::I32, DType::Bool],
            Bin::Pow | Bin::Normal => &[F],
            Bin::Hash => &[DType::U32],
            _ => &[F, DType::U32, DType::I32],
        };
        for dtype in types {
            let prog = Prog::of(&Instr::Bin(*bin, 0, 1));
            let args = [(dims(&[5, 7]), *dtype), (dims(&[7]), *dtype)];
            let one = member(Kernel::Rows(prog), &args, Layout::Aligned, 0);
            // Divisors must not be 0; radius and turns of a normal number are below 1.
            let data = if *bin == Bin::Normal { |_, k| ((k * 7919) % 997 + 1) as f64 / 1024.0 } else { positive };
            Case::new(&symbols, vec![one]).data(data).check(&mut devices, &[]);
        }
    }
}

#[test]
fn hashes_are_the_same_bits_and_normal_numbers_agree_closely() {
    let mut devices = Devices::open();
    let symbols = Symbols::default();
    let args = [(dims(&[4099]), DType::U32), (dims(&[4099]), DType::U32)];
    let one = member(Kernel::Rows(Prog::of(&Instr::Bin(Bin::Hash, 0, 1))), &args, Layout::Aligned, 0);
    let data = |argument: usize, k: usize| if argument == 0 { (k * 65_537) as f64 } else { k as f64 / 2.0 };
    Case::new(&symbols, vec![one]).exact().data(data).check(&mut devices, &[]);
    // From a word to a normal number, as models do it: radii down to 2^-24, turns next to every quarter.
    let normal = program(2, |l, x| {
        let unit = l.constant(1.0 / 16_777_216.0);
        let both = [0, 1].map(|k| {
            let whole = l.push(Instr::Cast(F, x[k]));
            l.mul(whole, unit)
        });
        l.bin(Bin::Normal, both[0], both[1])
    });
    let one = member(Kernel::Rows(normal), &args, Layout::Aligned, 0);
    let data = |argument: usize, k: usize| match (argument, k % 5) {
        (0, 0) => (k / 10 + 1) as f64 / 2.0,
        (0, 1) => (16_777_216 - k / 10) as f64 / 2.0,
        (0, _) => (k * 4093 % 16_777_216 + 1) as f64 / 2.0,
        (_, part) => ((part * 4_194_304 + 16_777_216 - 7 + k / 20) % 16_777_216) as f64 / 2.0,
    };
    Case::new(&symbols, vec![one]).data(data).near(1e-6).check(&mut devices, &[]);
}

#[test]
fn powers_of_negative_numbers_and_of_0_are_what_they_are() {
    let mut devices = Devices::open();
    let symbols = Symbols::default();
    let one = member(
        Kernel::Rows(Prog::of(&Instr::Bin(Bin::Pow, 0, 1))),
        &[(dims(&[8]), F), (dims(&[8]), F)],
        Layout::Aligned,
        0,
    );
    let data = |argument: usize, k: usize| {
        let pairs =
            [(-2.0, 3.0), (-2.0, 2.0), (-2.0, -1.0), (0.0, 0.0), (0.0, 2.5), (-3.0, 0.0), (0.0, 1.0), (9.0, 0.5)];
        let (x, y) = pairs[(k - 1) % 8];
        if argument == 0 { x } else { y }
    };
    Case::new(&symbols, vec![one]).data(data).check(&mut devices, &[]);
}

#[test]
fn what_is_no_number_is_found() {
    let mut devices = Devices::open();
    let one = member(Kernel::Rows(Prog::of(&Instr::Un(Un::Nan, 0))), &[(dims(&[37]), F)], Layout::Odd, 0);
    let data = |_: usize, k: usize| match k % 5 {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => -f64::NAN,
        3 => f64::NEG_INFINITY,
        _ => 3e38,
    };
    Case::new(&Symbols::default(), vec![one]).data(data).check(&mut devices, &[]);
}

#[test]
fn large_arguments_of_activations_stay_finite() {
    let mut devices = Devices::open();
    let symbols = Symbols::default();
    let data = |_: usize, k: usize| [-1e4, -100.0, -45.0, -13.5, 13.5, 44.0, 100.0, 1e4][k % 8];
    for un in [Un::Tanh, Un::Sigmoid, Un::Erf, Un::Softplus] {
        let one = member(Kernel::Rows(Prog::of(&Instr::Un(un, 0))), &[(dims(&[16]), F)], Layout::Aligned, 0);
        Case::new(&symbols, vec![one]).data(data).near(1e-6).check(&mut devices, &[]);
    }
}

#[test]
fn broadcasting_works_in_every_layout_at_any_size() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let (a, b, c) = (symbols.declare("a", 1, 99, 1), symbols.declare("b", 1, 99, 1), symbols.declare("c", 1, 9999, 1));
    let one = Dim::from(1);
    let full = vec![a.clone(), b.clone(), c.clone()];
    let others = [
        full.clone(),
        vec![c.clone()],
        vec![],
        vec![b.clone(), one.clone()],
        vec![a.clone(), one.clone(), c.clone()],
        vec![one.clone(), b.clone(), one.clone()],
        vec![a.clone(), one.clone(), one.clone()],
    ];
    for layout in LAYOUTS {
        for other in &others {
            let kernel = Kernel::Rows(Prog::of(&Instr::Bin(Bin::Sub, 0, 1)));
            let one = member(kernel, &[(full.clone(), F), (other.clone(), F)], layout, 0);
            let case = Case::new(&symbols, vec![one]).exact();
            case.check(&mut devices, &[3, 5, 7]);
            case.check(&mut devices, &[1, 1, 1]);
        }
    }
    let outer = Kernel::Rows(Prog::of(&Instr::Bin(Bin::Mul, 0, 1)));
    let one = member(outer, &[(vec![a.clone(), one.clone()], F), (vec![one, c], F)], Layout::Odd, 0);
    Case::new(&symbols, vec![one]).exact().check(&mut devices, &[13, 1, 1031]);
}

#[test]
fn fours_are_taken_where_the_last_axis_allows_and_give_the_same() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let (a, c) = (symbols.declare("a", 1, 99, 1), symbols.declare("c", 4, 4096, 4));
    for layout in LAYOUTS {
        for other in [vec![a.clone(), c.clone()], vec![c.clone()], vec![a.clone(), Dim::from(1)], vec![]] {
            for prog in [
                add(),
                program(2, |l, x| {
                    let column = l.push(Instr::Index(0, x[0]));
                    let row = l.push(Instr::Index(1, x[0]));
                    let later = l.bin(Bin::Lt, row, column);
                    l.push(Instr::Select(later, x[0], x[1]))
                }),
            ] {
                let one = member(Kernel::Rows(prog), &[(vec![a.clone(), c.clone()], F), (other.clone(), F)], layout, 0);
                let case = Case::new(&symbols, vec![one]).exact();
                let (_, _, texts) = case.variants();
                // A padded vector has no two elements side by side.
                let lies = matches!(layout, Layout::Aligned | Layout::Inside | Layout::Padded);
                let fits = lies && (layout != Layout::Padded || other.len() != 1);
                assert_eq!(texts.list()[0].contains("array<vec4<f32>>"), fits, "{}", texts.list()[0]);
                case.check(&mut devices, &[7, 36]);
                case.check(&mut devices, &[3, 1028]);
            }
        }
    }
}

#[test]
fn truth_and_integers_are_stored_as_words() {
    let mut devices = Devices::open();
    let symbols = Symbols::default();
    for size in [31, 32] {
        let compare = Prog::of(&Instr::Bin(Bin::Lt, 0, 1));
        let one = member(Kernel::Rows(compare), &[(dims(&[size]), F), (dims(&[]), F)], Layout::Aligned, 0);
        Case::new(&symbols, vec![one]).exact().check(&mut devices, &[]);
        let pick = Prog::of(&Instr::Select(0, 1, 2));
        let args = [(dims(&[5, size]), DType::Bool), (dims(&[size]), DType::I32), (dims(&[5, 1]), DType::I32)];
        let one = member(Kernel::Rows(pick), &args, Layout::Aligned, 0);
        Case::new(&symbols, vec![one]).exact().check(&mut devices, &[]);
        for from in [F, DType::U32, DType::I32, DType::Bool] {
            for to in [F, DType::U32, DType::I32, DType::Bool] {
                let cast = Prog::of(&Instr::Cast(to, 0));
                let one = member(Kernel::Rows(cast), &[(dims(&[size]), from)], Layout::Aligned, 0);
                Case::new(&symbols, vec![one]).exact().check(&mut devices, &[]);
            }
        }
    }
}

#[test]
fn constants_and_extents_fill() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let n = symbols.declare("n", 1, 9, 1);
    for value in [0.0, -1.5, 1e-5, 1e30, f64::INFINITY, -1e-42, 0.1] {
        let prog = closed(|l| l.constant(value));
        let one = member(Kernel::Rows(prog), &[], Layout::Aligned, 0);
        let case = Case::new(&symbols, vec![one]).near(1e-6);
        if value.is_finite() {
            case.check(&mut devices, &[3]);
        }
        case.variants();
    }
    for value in [Const::Int(i32::MIN), Const::Int(-3), Const::Uint(u32::MAX), Const::Bool(true)] {
        let one = member(Kernel::Rows(closed(|l| l.push(Instr::Const(value)))), &[], Layout::Aligned, 0);
        Case::new(&symbols, vec![one]).exact().check(&mut devices, &[3]);
    }
    let mean = program(1, |l, x| {
        let size = l.push(Instr::Extent(n.clone()));
        let recip = l.un(Un::Recip, size);
        l.mul(x[0], recip)
    });
    let one = member(Kernel::Rows(mean), &[(vec![n.clone()], F)], Layout::Aligned, 0);
    Case::new(&symbols, vec![one]).near(1e-6).check(&mut devices, &[7]);
}

#[test]
fn a_result_in_place_of_an_argument_is_one_binding() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let (a, c) = (symbols.declare("a", 1, 99, 1), symbols.declare("c", 1, 999, 1));
    for shape in [vec![a.clone(), c.clone()], vec![a.clone(), Dim::from(12)]] {
        let mut one = member(Kernel::Rows(add()), &[(shape.clone(), F), (shape.clone(), F)], Layout::Inside, 0);
        one.write = place(0, &shape, Layout::Inside);
        let case = Case::new(&symbols, vec![one]).exact();
        let (_, variants, _) = case.variants();
        assert_eq!(variants[0].dispatches[0].bindings.len(), 2);
        case.check(&mut devices, &[5, 17]);
    }
}

#[test]
fn loop_indices_are_words_and_slots_move_places() {
    let mut devices = Devices::open();
    let symbols = Symbols::default();
    let prog = program(2, |l, x| {
        let index = l.push(Instr::Cast(F, x[1]));
        l.mul(x[0], index)
    });
    let shape = dims(&[3, 5]);
    let mut one = member(Kernel::Rows(prog), &[(shape.clone(), F), (vec![], DType::U32)], Layout::Odd, 0);
    one.reads[1].0 = Operand::Index(1);
    for stride in [256, 64, 20] {
        if let Operand::Memory(place) = &mut one.reads[0].0 {
            place.slots = vec![Slot { base: Dim::from(1), index: Some(0), parity: false, stride: Dim::from(stride) }];
        }
        one.write.slots = vec![Slot { base: Dim::from(1), index: Some(1), parity: true, stride: Dim::from(stride) }];
        let mut case = Case::new(&symbols, vec![one.clone()]).exact();
        case.loops = vec![5, 3];
        case.check(&mut devices, &[]);
    }
}

#[test]
fn more_groups_than_one_axis_holds() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let rows = symbols.declare("rows", 1, 1 << 30, 1);
    let sum = Prog::of(&Instr::RowSum(0));
    let one = member(Kernel::Rows(sum), &[(vec![rows, Dim::from(2)], F)], Layout::Aligned, 0);
    Case::new(&symbols, vec![one]).exact().check(&mut devices, &[70_001 * 8 + 3]);
}

#[test]
fn a_text_does_not_depend_on_bounds_or_sizes() {
    let text = |high: i64, columns: i64| {
        let mut symbols = Symbols::default();
        let batch = symbols.declare("batch", 1, high, 1);
        let args = [(vec![batch, Dim::from(columns)], F), (dims(&[columns]), F)];
        let one = member(Kernel::Rows(add()), &args, Layout::Aligned, 0);
        Case::new(&symbols, vec![one]).variants().2.list().to_vec()
    };
    assert_eq!(text(256, 128), text(4096, 128));
    assert_eq!(text(256, 128), text(256, 576));
    assert_eq!(text(256, 7), text(8, 1001));
    assert_ne!(text(256, 7), text(256, 8));
}

#[test]
fn a_program_of_no_elements_runs_no_group() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let n = symbols.declare("n", 0, 9, 1);
    let one = member(Kernel::Rows(silu()), &[(vec![n, Dim::from(3)], F)], Layout::Aligned, 0);
    Case::new(&symbols, vec![one]).check(&mut devices, &[0]);
}
