//! What random numbers follow from: seed, step, place and iteration, one word; elements add their coordinates.

use meganeura_shaders::pointwise::Bin;
use meganeura_shaders::prog::{Const, DType};

use super::{Graph, Op, Store, StoreKind, Type, ValueId};
use crate::ops::Slice;

impl Graph {
    /// The word of a place in the current iteration of the loops around it, of shape `[]`.
    pub fn random_state(&mut self, place: u32) -> ValueId {
        let words = self.random_words();
        let word = |graph: &mut Graph, at: i64| {
            let part = graph.emit(Op::Slice(Slice { axis: 0, from: at.into(), to: (at + 1).into() }), &[words]);
            graph.reshape(part, vec![])
        };
        let [low, high, step] = [0, 1, 2].map(|at| word(self, at));
        let place = self.integer(Const::Uint(place));
        let iterations = self.open.iter().filter_map(|open| open.repeat.as_ref()).map(|repeat| repeat.index);
        let rest: Vec<ValueId> = [high, step, place].into_iter().chain(iterations).collect();
        rest.into_iter().fold(low, |state, word| self.bin(Bin::Hash, state, word))
    }

    /// Seed and step, which are read once and in the root block, whatever loops are open.
    fn random_words(&mut self) -> ValueId {
        let is_random = |op: &Op| matches!(op, Op::Read(store) if self.store(*store).kind == StoreKind::Random);
        if let Some(node) = self.nodes.iter().find(|node| is_random(&node.op)) {
            return node.outputs[0];
        }
        let open = std::mem::take(&mut self.open);
        let ty = Type { shape: vec![3.into()], dtype: DType::U32 };
        let name = "seed and step".into();
        let words = self.add_store(Store { kind: StoreKind::Random, name, ty, loops: 0, below: None });
        self.open = open;
        words
    }

    /// The word of an element and the words of its coordinates (u32), as one.
    pub fn hashed(&mut self, state: ValueId, coordinates: &[ValueId]) -> ValueId {
        coordinates.iter().fold(state, |state, coordinate| self.bin(Bin::Hash, state, *coordinate))
    }

    /// The upper 24 bits of words.
    pub fn upper_bits(&mut self, words: ValueId) -> ValueId {
        let shift = self.integer(Const::Uint(256));
        self.bin(Bin::Div, words, shift)
    }
}
