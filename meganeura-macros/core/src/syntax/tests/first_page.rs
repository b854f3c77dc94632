//! The two programs that the language's documentation begins with.

use super::clean;

pub(super) const MLP: &str = include_str!("mlp.txt");
pub(super) const DECODER: &str = include_str!("decoder.txt");

#[test]
fn the_classifier_parses() {
    let source = clean(MLP);
    assert_eq!(source.items.len(), 1);
}

#[test]
fn the_decoder_parses() {
    let source = clean(DECODER);
    let names: Vec<_> = source.items.iter().map(|item| item.name.name.as_str()).collect();
    assert_eq!(names, ["SwiGlu", "Attention", "Block", "SmolLm2", "SmolLm2_360M"]);
}
