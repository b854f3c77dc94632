//! Names and orders that published files have: GGUF's names of architectures, and tensors that are tied.
//!
//! In: names of a GGUF file and what its header says. Out: the names under which the same model is published as
//! safetensors, and the order of rows where the file has another one. Everything that is particular to an
//! architecture is in the tables of this file.

use crate::gguf::{Header, Value};

/// How a family of decoders is stored.
struct Architecture {
    /// `general.architecture`.
    name: &'static str,
    /// Whether rows of the query's and key's projections are ordered for rotary embeddings of neighbouring pairs.
    pairs: bool,
}

const ARCHITECTURES: &[Architecture] = &[
    Architecture { name: "llama", pairs: true },
    Architecture { name: "qwen2", pairs: false },
    Architecture { name: "qwen3", pairs: false },
];

/// Names outside of blocks, without `.weight` or `.bias`.
const OUTER: &[(&str, &str)] =
    &[("token_embd", "model.embed_tokens"), ("output_norm", "model.norm"), ("output", "lm_head")];

/// Names of block i: `blk.i.` and `model.layers.i.` stand before them.
const INNER: &[(&str, &str)] = &[
    ("attn_norm", "input_layernorm"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("attn_q_norm", "self_attn.q_norm"),
    ("attn_k_norm", "self_attn.k_norm"),
    ("ffn_norm", "post_attention_layernorm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

/// Tensors that many models share: the scores' matrix and the embedding. Either may stand for the other, also behind
/// a common prefix.
const TIED: &[(&str, &str)] = &[
    ("lm_head.weight", "model.embed_tokens.weight"),
    ("lm_head.weight", "transformer.wte.weight"),
    ("proj_out.weight", "model.decoder.embed_tokens.weight"),
    ("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
];

/// The order of the rows of a tensor in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// That of the model.
    Same,
    /// Rows of each head in pairs: those of the two halves in turns.
    Pairs {
        /// Rows of a head, an even number.
        head: usize,
    },
}

impl Order {
    /// Which row of the file is row `row` of the model.
    pub(super) fn stored(self, row: usize) -> usize {
        match self {
            Order::Same => row,
            Order::Pairs { head } => {
                let (first, within) = (row / head * head, row % head);
                first + within % (head / 2) * 2 + within / (head / 2)
            }
        }
    }
}

/// The published name of a tensor of a GGUF file, and the order of its rows; its own name where none is known.
pub(super) fn published(header: &Header<'_>, name: &str, rows: usize) -> Result<(String, Order), String> {
    let known = header.get("general.architecture").and_then(Value::text);
    let known = ARCHITECTURES.iter().find(|architecture| Some(architecture.name) == known);
    let same = || Ok((name.to_string(), Order::Same));
    let (Some(architecture), Some((stem, end))) = (known, name.rsplit_once('.')) else { return same() };
    if !matches!(end, "weight" | "bias") {
        return same();
    }
    if let Some((_, outer)) = OUTER.iter().find(|(own, _)| *own == stem) {
        return Ok((format!("{outer}.{end}"), Order::Same));
    }
    let block = stem.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
    let Some((number, kind)) = block.filter(|(number, _)| is_number(number)) else { return same() };
    let Some((_, inner)) = INNER.iter().find(|(own, _)| *own == kind) else { return same() };
    let order = match kind {
        "attn_q" | "attn_k" if architecture.pairs => {
            let heads = heads(header, architecture.name, kind == "attn_k", number)?;
            let head = rows.checked_div(heads).unwrap_or(0);
            if head == 0 || head % 2 != 0 || head * heads != rows {
                return Err(format!(
                    "`{name}`: expected an even number of rows for each of {heads} heads, found {rows}"
                ));
            }
            Order::Pairs { head }
        }
        _ => Order::Same,
    };
    Ok((format!("model.layers.{number}.{inner}.{end}"), order))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Heads of a block: one number for all, or an array of them. Keys have as many as queries if nothing else is said.
fn heads(header: &Header<'_>, architecture: &str, of_keys: bool, block: &str) -> Result<usize, String> {
    let all = format!("{architecture}.attention.head_count");
    let keys = format!("{all}_kv");
    let (key, value) = match header.get(&keys).filter(|_| of_keys) {
        Some(value) => (keys, Some(value)),
        None => (all.clone(), header.get(&all)),
    };
    let value = match value.and_then(Value::array) {
        Some(array) => block.parse().ok().and_then(|block| array.iter().nth(block)),
        None => value,
    };
    let number = value.and_then(Value::unsigned).and_then(|heads| usize::try_from(heads).ok());
    number.ok_or_else(|| {
        let found = value.map_or("none".to_string(), |value| value.to_string());
        format!("`{key}`: expected the number of heads of block {block}, found {found}")
    })
}

/// The names of the tensors that may be one with this one.
pub(super) fn twins(name: &str) -> impl Iterator<Item = String> {
    let swap = |from: &str, to: &str| {
        let prefix = name.strip_suffix(from)?;
        (prefix.is_empty() || prefix.ends_with('.')).then(|| format!("{prefix}{to}"))
    };
    TIED.iter().flat_map(move |(scores, embedding)| [swap(scores, embedding), swap(embedding, scores)]).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_pairs_are_those_of_the_halves_in_turns() {
        // A head of six rows lies as 0 3 1 4 2 5.
        let order = Order::Pairs { head: 6 };
        let stored: Vec<usize> = (0..12).map(|row| order.stored(row)).collect();
        assert_eq!(stored, [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]);
        assert_eq!(Order::Pairs { head: 2 }.stored(5), 5);
        assert_eq!(Order::Same.stored(5), 5);
    }

    #[test]
    fn twins_are_found_behind_a_common_prefix() {
        let of = |name| twins(name).collect::<Vec<_>>();
        assert_eq!(of("lm_head.weight"), ["model.embed_tokens.weight", "transformer.wte.weight"]);
        assert_eq!(of("a.b.model.embed_tokens.weight"), ["a.b.lm_head.weight"]);
        assert_eq!(of("my_lm_head.weight"), [""; 0]);
        assert_eq!(of("model.norm.weight"), [""; 0]);
    }
}
