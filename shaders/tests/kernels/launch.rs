//! Launches of several kernels, and the optimizers' steps.

use std::sync::Arc;

use meganeura_shaders::dim::{Dim, Symbols};
use meganeura_shaders::generate::{Texts, variants};
use meganeura_shaders::kernel::{Contract, Kernel, Spec};
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{Const, DType, Instr, Prog};
use meganeura_shaders::schedule::Member;
use meganeura_shaders::update::{ADAM, ADAMW, SGD, SGD_MOMENTUM, SGD_NESTEROV, Update, bias_corrections};

use crate::case::{Case, Layout, member};
use crate::devices::{Devices, Run, update_on_cpu};
use crate::programs::{add, closed, program, silu, softmax};

const F: DType = DType::F32;

#[test]
fn kernels_of_one_workgroup_size_share_a_dispatch() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let (m, n) = (symbols.declare("m", 1, 99, 1), symbols.declare("n", 1, 3000, 1));
    let x = (vec![m.clone(), n.clone()], F);
    let members = vec![
        member(Kernel::Rows(silu()), std::slice::from_ref(&x), Layout::Aligned, 0),
        member(Kernel::ColumnSum(Prog::identity()), std::slice::from_ref(&x), Layout::Odd, 2),
        member(Kernel::Rows(Prog::of(&Instr::RowMax(0))), std::slice::from_ref(&x), Layout::Padded, 4),
        member(Kernel::Rows(add()), &[x.clone(), (vec![n], F)], Layout::Inside, 6),
    ];
    let case = Case::new(&symbols, members);
    let (_, variants, _) = case.variants();
    assert!(variants.iter().all(|variant| variant.dispatches.len() == 1));
    for size in [[1, 1], [5, 37], [33, 1000], [3, 300]] {
        case.check(&mut devices, &size);
    }
}

#[test]
fn products_of_one_input_share_a_dispatch_in_every_form() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let m = symbols.declare("m", 1, 99, 1);
    let k = Dim::from(36);
    let product = || Kernel::Contract(Arc::new(Contract::plain(Spec::parse("mk,nk->mn").unwrap())));
    let mut members = vec![];
    for (number, n) in [40, 12, 33].into_iter().enumerate() {
        let args = [(vec![m.clone(), k.clone()], F), (vec![Dim::from(n), k.clone()], F)];
        members.push(member(product(), &args, Layout::Aligned, 3 * number));
    }
    let first = members[0].reads[0].0.clone();
    members.iter_mut().for_each(|member| member.reads[0].0 = first.clone());
    let case = Case::new(&symbols, members).exact();
    let (_, variants, _) = case.variants();
    assert!(variants.iter().all(|variant| variant.dispatches.len() == 1 && variant.dispatches[0].bindings.len() == 7));
    for size in [1, 5, 33, 65] {
        case.check(&mut devices, &[size]);
    }
}

#[test]
fn kernels_of_different_workgroup_sizes_have_their_own_dispatches() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let m = symbols.declare("m", 2, 99, 1);
    let product = Kernel::Contract(Arc::new(Contract::plain(Spec::parse("mk,nk->mn").unwrap())));
    let square = (vec![m.clone(), m.clone()], F);
    let members = vec![
        member(product, &[square.clone(), square.clone()], Layout::Aligned, 0),
        member(Kernel::Rows(silu()), &[square], Layout::Aligned, 3),
    ];
    let case = Case::new(&symbols, members);
    let (_, variants, _) = case.variants();
    assert!(variants.last().unwrap().dispatches.len() == 2);
    case.check(&mut devices, &[37]);
}

/// A step from this state on the device with this number.
fn step(devices: &mut Devices, number: usize, update: Update, floats: &[f32], state: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let count = state[0].len() as u32;
    let buffers: Vec<Vec<u32>> = state.iter().map(|values| values.iter().map(|v| v.to_bits()).collect()).collect();
    let words = [count.div_ceil(256), count].into_iter().chain(floats.iter().map(|f| f.to_bits()));
    let words: Vec<u32> = words.collect();
    assert_eq!((floats.len(), state.len()), (update.floats.len(), update.buffers));
    let found = match (devices.cpu.get(number), &mut devices.vulkan) {
        (Some(threads), _) => update_on_cpu(threads, &buffers, &update, &words),
        (None, Some(vulkan)) => {
            let bindings = (0..state.len()).map(|buffer| (buffer, 0)).collect();
            vulkan.run(&buffers, &[Run { text: update.text, bindings, words, groups: u64::from(count.div_ceil(256)) }])
        }
        (None, None) => unreachable!("devices are counted"),
    };
    found.iter().map(|words| words.iter().map(|word| f32::from_bits(*word)).collect()).collect()
}

#[test]
fn optimizers_take_the_steps_of_their_definitions() {
    let mut devices = Devices::open();
    let count = 1000;
    let x: Vec<f32> = (0..count).map(|k| (k as f32 * 0.37).sin()).collect();
    let (lr, decay, momentum) = (0.1f32, 0.01f32, 0.9f32);
    let (beta1, beta2, eps) = (0.9f32, 0.999f32, 1e-8f32);
    let every = (0..devices.count())
        .flat_map(|number| [SGD, SGD_MOMENTUM, SGD_NESTEROV, ADAM, ADAMW].map(|update| (number, update)));
    for (number, update) in every {
        let mut state = vec![x.clone()];
        state.resize(update.buffers, vec![0.0; count]);
        let mut exact: Vec<Vec<f64>> = state.iter().map(|v| v.iter().map(|x| f64::from(*x)).collect()).collect();
        for t in 1..=5u32 {
            state[1] = (0..count).map(|k| ((k as f32 + 3.0 * t as f32) * 0.71).cos()).collect();
            let corrections = bias_corrections(beta1, beta2, t);
            let floats = match update.buffers {
                2 => vec![lr, decay],
                3 => vec![lr, decay, momentum],
                _ => vec![lr, decay, beta1, beta2, eps, corrections[0], corrections[1]],
            };
            let gradient = state[1].clone();
            state = step(&mut devices, number, update, &floats, &state);
            assert_eq!(state[1], gradient, "gradients stay");
            for k in 0..count {
                let wide = f64::from;
                let (x, g) = (exact[0][k], wide(gradient[k]));
                let penal = g + wide(decay) * x;
                let new = if update == SGD {
                    x - wide(lr) * penal
                } else if update.buffers == 3 {
                    let v = wide(momentum) * exact[2][k] + penal;
                    exact[2][k] = v;
                    x - wide(lr) * if update == SGD_NESTEROV { penal + wide(momentum) * v } else { v }
                } else {
                    let g = if update == ADAM { penal } else { g };
                    let m = wide(beta1) * exact[2][k] + (1.0 - wide(beta1)) * g;
                    let v = wide(beta2) * exact[3][k] + (1.0 - wide(beta2)) * g * g;
                    (exact[2][k], exact[3][k]) = (m, v);
                    let (m, v) = (m / (1.0 - wide(beta1).powi(t as i32)), v / (1.0 - wide(beta2).powi(t as i32)));
                    let x = if update == ADAMW { x * (1.0 - wide(lr) * wide(decay)) } else { x };
                    x - wide(lr) * m / (v.sqrt() + wide(eps))
                };
                exact[0][k] = new;
                let found = wide(state[0][k]);
                assert!((found - new).abs() < 1e-5 * (1.0 + new.abs()), "{update:?} step {t}: {new}, found {found}");
            }
        }
    }
}

#[test]
fn adam_puts_eps_outside_the_root_and_adamw_decays_without_a_gradient() {
    let mut devices = Devices::open();
    let corrections = bias_corrections(0.9, 0.999, 1);
    let floats = |lr: f32, decay: f32| vec![lr, decay, 0.9, 0.999, 1e-8, corrections[0], corrections[1]];
    let state = |x: f32, g: f32| vec![vec![x], vec![g], vec![0.0], vec![0.0]];
    for number in 0..devices.count() {
        let moved = step(&mut devices, number, ADAM, &floats(0.1, 0.0), &state(0.0, 1e-7))[0][0];
        assert!((moved + 0.0909091).abs() < 1e-5, "moved by {moved}");
        let decayed = step(&mut devices, number, ADAMW, &floats(0.1, 0.1), &state(1.0, 0.0))[0][0];
        assert!((decayed - 0.99).abs() < 1e-6, "decayed to {decayed}");
    }
}

#[test]
fn operations_on_constants_alone_are_valid() {
    let symbols = Symbols::default();
    for un in Un::ALL.iter().filter(|un| **un != Un::Not) {
        for value in [0.0, -1.0, 1e30] {
            let prog = closed(|l| {
                let constant = l.constant(value);
                l.un(*un, constant)
            });
            Case::new(&symbols, vec![member(Kernel::Rows(prog), &[], Layout::Aligned, 0)]).variants();
        }
    }
    for bin in Bin::ALL.iter().filter(|bin| !bin.is_logical()) {
        for [a, b] in [
            [Const::float(1e30), Const::float(0.0)],
            [Const::float(1e38), Const::float(-1e38)],
            [Const::Uint(0), Const::Uint(0)],
            [Const::Uint(0), Const::Uint(u32::MAX)],
            [Const::Int(i32::MIN), Const::Int(0)],
            [Const::Int(i32::MIN), Const::Int(-1)],
        ] {
            let fits = match bin {
                Bin::Pow | Bin::Normal => matches!(a, Const::Float(_)),
                Bin::Hash => matches!(a, Const::Uint(_)),
                _ => true,
            };
            if !fits {
                continue;
            }
            let prog = closed(|l| {
                let (a, b) = (l.push(Instr::Const(a)), l.push(Instr::Const(b)));
                l.bin(*bin, a, b)
            });
            Case::new(&symbols, vec![member(Kernel::Rows(prog), &[], Layout::Aligned, 0)]).variants();
        }
    }
}

#[test]
fn what_no_template_covers_is_an_error_that_says_what() {
    let mut symbols = Symbols::default();
    let n = symbols.declare("n", 1, 99, 1);
    let shape = (vec![n.clone(), n.clone()], F);
    let fails = |member: Member| {
        let mut symbols = symbols.clone();
        variants(&[member], &mut symbols, &mut Texts::default()).unwrap_err().to_string()
    };
    let mut contract = Contract::plain(Spec::parse("mk,kn->mn").unwrap());
    contract.terms[0].b = softmax();
    let right = member(Kernel::Contract(Arc::new(contract)), &[shape.clone(), shape.clone()], Layout::Aligned, 0);
    assert!(fails(right).contains("right side"));
    let mut contract = Contract::plain(Spec::parse("km,kn->mn").unwrap());
    contract.terms[0].a = softmax();
    let left = member(Kernel::Contract(Arc::new(contract)), &[shape.clone(), shape.clone()], Layout::Aligned, 0);
    assert!(fails(left).contains("left side"));
    let many = program(16, |l, x| x[1..].iter().fold(x[0], |sum, x| l.bin(Bin::Add, sum, *x)));
    let many = member(Kernel::Rows(many), &vec![shape.clone(); 16], Layout::Aligned, 0);
    assert!(fails(many).contains("buffers"));
}

#[test]
fn kernels_that_bind_too_much_together_have_their_own_dispatches() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let n = symbols.declare("n", 1, 99, 1);
    let sum = program(8, |l, x| x[1..].iter().fold(x[0], |sum, x| l.bin(Bin::Add, sum, *x)));
    let args = vec![(vec![n], F); 8];
    let members = (0..2).map(|k| member(Kernel::Rows(sum.clone()), &args, Layout::Odd, 9 * k)).collect();
    let case = Case::new(&symbols, members).exact();
    let (_, variants, texts) = case.variants();
    assert_eq!((variants[0].dispatches.len(), texts.list().len()), (2, 1), "one text serves both");
    case.check(&mut devices, &[77]);
}
