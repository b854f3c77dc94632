//! The two guards: depth is a number, and bounds are numbers. Between a small and a large one the whole schedule is
//! equal but for numbers: steps, bindings, barriers, lives.

use meganeura_shaders::generate::Texts;
use meganeura_shaders::schedule::{BufferKind, Schedule, steps};

use super::build::decoder_with;
use super::check::with_texts;
use crate::egraph::fuse;
use crate::lower::plain;
use crate::testing::{POLICIES, training};

/// The text without its numbers.
fn shape_of(text: &str) -> String {
    let mut shape = String::new();
    for c in text.chars() {
        match c {
            '0'..='9' if shape.ends_with('#') => {}
            '0'..='9' => shape.push('#'),
            c => shape.push(c),
        }
    }
    shape
}

fn assert_equal_but_for_numbers(a: &Schedule, b: &Schedule) {
    assert_eq!(a.plans.len(), b.plans.len());
    for (a, b) in a.plans.iter().zip(&b.plans) {
        let (mine, others) = (steps(&a.items), steps(&b.items));
        assert_eq!(mine.len(), others.len());
        for (k, (mine, other)) in mine.iter().zip(others).enumerate() {
            assert_eq!(mine.barrier, other.barrier, "the barrier of step {k}");
            assert_eq!(mine.origins, other.origins, "step {k}");
            assert_eq!(shape_of(&format!("{:?}", mine.members)), shape_of(&format!("{:?}", other.members)), "step {k}");
            assert_eq!(shape_of(&format!("{:?}", mine.variants)), shape_of(&format!("{:?}", other.variants)), "{k}");
        }
        assert_eq!(a.lives, b.lives);
    }
    assert_eq!(shape_of(&a.to_string()), shape_of(&b.to_string()));
    let kinds = |schedule: &Schedule| schedule.buffers.iter().map(|b| b.kind.clone()).collect::<Vec<BufferKind>>();
    assert_eq!(kinds(a), kinds(b));
    assert_eq!(shape_of(&format!("{:?}", a.loops)), shape_of(&format!("{:?}", b.loops)));
}

/// Of inference and training, unfused and fused; with the shaders of each.
fn schedules(depth: i64, most: [i64; 2]) -> Vec<(Schedule, Texts)> {
    let (graph, loss) = decoder_with(Some(depth), most);
    let trained = POLICIES.map(|policy| training(&graph, loss, policy));
    let unfused = [&graph].into_iter().chain(&trained).map(plain);
    let fused = [&graph, &trained[1]].into_iter().map(|graph| fuse(graph).unwrap());
    unfused.chain(fused).map(|kernels| with_texts(&kernels)).collect()
}

/// The texts hold no size at all.
fn assert_equal_texts(a: &Texts, b: &Texts) {
    assert_eq!(a.list().len(), b.list().len());
    a.list().iter().zip(b.list()).for_each(|(a, b)| assert_eq!(a, b));
}

#[test]
fn depth_is_a_number() {
    let (two, many) = (schedules(2, [64, 2048]), schedules(64, [64, 2048]));
    for ((two, two_texts), (many, many_texts)) in two.iter().zip(&many) {
        assert_equal_but_for_numbers(two, many);
        assert_equal_texts(two_texts, many_texts);
    }
    assert!(steps(&two[1].0.plans[0].items).len() > steps(&two[0].0.plans[0].items).len());
}

#[test]
fn bounds_are_numbers() {
    let (few, many) = (schedules(3, [256, 64]), schedules(3, [4096, 2048]));
    for ((few, few_texts), (many, many_texts)) in few.iter().zip(&many) {
        assert_equal_but_for_numbers(few, many);
        assert_equal_texts(few_texts, many_texts);
    }
}

#[test]
fn the_guard_sees_more_than_numbers() {
    let (schedule, texts) = &schedules(2, [64, 2048])[0];
    assert!(!texts.list().is_empty());
    let mut other = schedule.clone();
    super::check::steps_in(&mut other)[3].barrier ^= true;
    let caught = std::panic::catch_unwind(|| assert_equal_but_for_numbers(schedule, &other));
    assert!(caught.is_err());
    assert_eq!(shape_of("[12, s0, 7]"), "[#, s#, #]");
}
