//! Schedules of chosen kernels: launches of several, programs before and behind products.

use std::collections::BTreeMap;

use meganeura_shaders::generate::validate;
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::schedule::Schedule;

use super::build::decoder;
use super::check::{assert_means, compile, lowered, steps_of, with_texts};
use crate::egraph::fuse;
use crate::lower::plain;
use crate::testing::{POLICIES, random_graph, training};

fn see(schedule: &Schedule, seen: &mut BTreeMap<&'static str, usize>) {
    let steps = steps_of(schedule);
    let mut see = |what: &'static str, times: usize| *seen.entry(what).or_insert(0) += times;
    see("several kernels", steps.iter().filter(|step| step.members.len() > 1).count());
    let members = || steps.iter().flat_map(|step| &step.members);
    let over =
        |member: &&meganeura_shaders::schedule::Member| member.places_read().any(|(place, _)| *place == member.write);
    see("over an operand", members().filter(over).count());
    let is_product = |member: &&meganeura_shaders::schedule::Member| matches!(member.kernel, Kernel::Contract(_));
    see("products over an operand of the epilogue", members().filter(is_product).filter(over).count());
}

#[test]
fn schedules_of_fused_random_graphs_mean_what_the_graphs_mean() {
    let mut seen = BTreeMap::new();
    for seed in 0..20 {
        let (graph, loss) = random_graph(seed);
        let dims = [1 + (seed as i64 * 7) % 9, 1 + (seed as i64) % 5];
        for graph in [graph.clone(), training(&graph, loss, POLICIES[seed as usize % 3])] {
            let schedule = lowered(&fuse(&graph).unwrap());
            assert_means(&schedule, &graph, &dims, seed, 1e-9);
            see(&schedule, &mut seen);
        }
    }
    assert!(seen.values().all(|times| *times > 0), "{seen:?}");
}

#[test]
fn a_fused_decoder_takes_fewer_steps_and_no_copies() {
    let (graph, loss) = decoder(Some(3));
    for (graph, most) in [(graph.clone(), 40), (training(&graph, loss, POLICIES[1]), 120)] {
        let schedule = lowered(&fuse(&graph).unwrap());
        assert_means(&schedule, &graph, &[2, 3], 1, 1e-9);
        let steps = steps_of(&schedule);
        let members = steps.iter().flat_map(|step| &step.members);
        let copies = members.filter(|member| matches!(member.kernel, Kernel::Copy(_))).count();
        assert_eq!(copies, 0, "{schedule}");
        let (fused, plain) = (steps.len(), steps_of(&compile(&graph)).len());
        assert!(fused < most && 2 * fused < plain, "{fused} of {plain}\n{schedule}");
    }
}

#[test]
fn every_shader_of_a_decoder_and_its_gradients_is_valid() {
    let (graph, loss) = decoder(Some(3));
    let trained = training(&graph, loss, POLICIES[1]);
    for kernels in [plain(&graph), plain(&trained), fuse(&graph).unwrap(), fuse(&trained).unwrap()] {
        let (_, texts) = with_texts(&kernels);
        assert!(!texts.list().is_empty());
        for text in texts.list() {
            validate(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
    }
}
