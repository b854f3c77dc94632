//! The two programs that the language's documentation begins with.

use expect_test::expect;

use super::{Resolved, clean, read};

pub(super) const MLP: &str = include_str!("../../syntax/tests/mlp.txt");
pub(super) const DECODER: &str = include_str!("../../syntax/tests/decoder.txt");

#[test]
fn the_classifier_is_two_graphs_over_four_tensors() {
    let resolved = clean(MLP);
    let tensors = resolved.model.tensors.iter().map(|t| format!("{} {:?} {:?}\n", t.name, t.shape, t.init));
    expect![[r#"
        fc1.weight [128, 784] Uniform(-0.03571428571428571, 0.03571428571428571)
        fc1.bias [128] Uniform(-0.03571428571428571, 0.03571428571428571)
        fc2.weight [10, 128] Uniform(-0.08838834764831843, 0.08838834764831843)
        fc2.bias [10] Uniform(-0.08838834764831843, 0.08838834764831843)
    "#]]
    .assert_eq(&tensors.collect::<String>());
    for entry in &resolved.entries {
        entry.graph.verify().unwrap();
    }
    let text: String = resolved.entries.iter().map(|entry| format!("{}\n{}", entry.name, entry.graph)).collect();
    expect![[r#"
        logits
        %0: f32[batch, 784] = read x()   # 
        %1: f32[128, 784] = read fc1.weight()   # fc1
        %2: f32[784, 128] = transpose(%1)   # fc1
        %3: f32[batch, 128] = contract ij,jk->ik(%0, %2)   # fc1
        %4: f32[128] = read fc1.bias()   # fc1
        %5: f32[batch, 128] = + Bin(Add, 0, 1)(%3, %4)   # fc1
        %6: f32[batch, 128] = relu Un(Relu, 0)(%5)   # 
        %7: f32[10, 128] = read fc2.weight()   # fc2
        %8: f32[128, 10] = transpose(%7)   # fc2
        %9: f32[batch, 10] = contract ij,jk->ik(%6, %8)   # fc2
        %10: f32[10] = read fc2.bias()   # fc2
        %11: f32[batch, 10] = + Bin(Add, 0, 1)(%9, %10)   # fc2
        output logits = %11
        loss
        %0: f32[batch, 784] = read x()   # 
        %1: u32[batch] = read label()   # 
        %2: f32[128, 784] = read fc1.weight()   # fc1
        %3: f32[784, 128] = transpose(%2)   # fc1
        %4: f32[batch, 128] = contract ij,jk->ik(%0, %3)   # fc1
        %5: f32[128] = read fc1.bias()   # fc1
        %6: f32[batch, 128] = + Bin(Add, 0, 1)(%4, %5)   # fc1
        %7: f32[batch, 128] = relu Un(Relu, 0)(%6)   # 
        %8: f32[10, 128] = read fc2.weight()   # fc2
        %9: f32[128, 10] = transpose(%8)   # fc2
        %10: f32[batch, 10] = contract ij,jk->ik(%7, %9)   # fc2
        %11: f32[10] = read fc2.bias()   # fc2
        %12: f32[batch, 10] = + Bin(Add, 0, 1)(%10, %11)   # fc2
        %50: f32[], %51: f32[batch, 1], %52: f32[batch, 1] = cross_entropy(%12, %1)   # 
        output loss = %50
    "#]]
    .assert_eq(&text);
}

#[test]
fn the_decoder_and_its_larger_instance_are_one_graph_each() {
    let (models, errors) = read(DECODER);
    assert_eq!(errors, "");
    assert_eq!(models.iter().map(|model| model.model.name.as_str()).collect::<Vec<_>>(), ["SmolLm2", "SmolLm2_360M"]);
    let elements = |resolved: &Resolved| {
        let saved = resolved.model.tensors.iter().filter(|tensor| tensor.saved);
        saved.map(|tensor| tensor.shape.iter().product::<i64>()).sum::<i64>()
    };
    // As published: 134.5 and 361.8 million.
    assert_eq!(models.iter().map(elements).collect::<Vec<_>>(), [134_515_008, 361_821_120]);
    for model in &models {
        let [next] = &model.entries[..] else { panic!("one entry") };
        next.graph.verify().unwrap();
        let states = model.model.tensors.iter().filter(|tensor| !tensor.saved).map(|tensor| tensor.name.as_str());
        let rope = format!("rope(100000, {})", 64);
        let expected = ["model.layers.{}.self_attn.keys", "model.layers.{}.self_attn.values", &rope];
        assert_eq!(states.collect::<Vec<_>>(), expected);
    }
}
