//! Decoders as people write them, against logits that PyTorch computed, with and without a cache, on every device.
#![allow(clippy::unwrap_used, clippy::panic)]

use meganeura::{Error, model};
use meganeura_runtime::testing::devices;
use safetensors::SafeTensors;

model! {
    /// Gated feed-forward.
    layer SwiGlu<dim, ffn> {
        gate_proj: Linear<dim, ffn, bias = false>,
        up_proj: Linear<dim, ffn, bias = false>,
        down_proj: Linear<ffn, dim, bias = false>,

        fn forward(x: f32[.., dim]) -> f32[.., dim] {
            down_proj(silu(gate_proj(x)) * up_proj(x))
        }
    }

    /// Attention over the rows that are given.
    layer Attention<dim, heads, kv_heads> {
        let head = dim / heads;
        q_proj: Linear<dim, heads * head, bias = false>,
        k_proj: Linear<dim, kv_heads * head, bias = false>,
        v_proj: Linear<dim, kv_heads * head, bias = false>,
        o_proj: Linear<heads * head, dim, bias = false>,

        fn forward(x: f32[batch, seq, dim]) -> f32[batch, seq, dim] {
            let q = rope(reshape(q_proj(x), [batch, seq, heads, head]), 0);
            let k = rope(reshape(k_proj(x), [batch, seq, kv_heads, head]), 0);
            let v = reshape(v_proj(x), [batch, seq, kv_heads, head]);
            o_proj(reshape(attention(q, k, v, causal = true), [batch, seq, dim]))
        }
    }

    layer Block<dim, heads, kv_heads, ffn> {
        input_layernorm: RmsNorm<dim>,
        self_attn: Attention<dim, heads, kv_heads>,
        post_attention_layernorm: RmsNorm<dim>,
        mlp: SwiGlu<dim, ffn>,

        fn forward(x: f32[batch, seq, dim]) -> f32[batch, seq, dim] {
            let x = x + self_attn(input_layernorm(x));
            x + mlp(post_attention_layernorm(x))
        }
    }

    /// All logits of a batch.
    #[ignore("in.*", "out.*")]
    model Tiny<dim = 64, batch in 1..=4, seq in 1..=32> {
        #[name = "w.model.embed_tokens"] embed: Embedding<256, dim>,
        #[name = "w.model.layers"] blocks: [Block<dim, 4, 2, 128>; 2],
        #[name = "w.model.norm"] norm: RmsNorm<dim>,
        #[name = "w.lm_head"] head: Linear<dim, 256, bias = false>,

        /// Scores after each token.
        pub fn logits(tokens: u32[batch, seq]) -> f32[batch, seq, 256] {
            let mut x = embed(tokens);
            for block in blocks { x = block(x); }
            head(norm(x))
        }
    }

    /// Attention that remembers.
    layer Remembering<dim, heads, kv_heads, max_seq> {
        let head = dim / heads;
        q_proj: Linear<dim, heads * head, bias = false>,
        k_proj: Linear<dim, kv_heads * head, bias = false>,
        v_proj: Linear<dim, kv_heads * head, bias = false>,
        o_proj: Linear<heads * head, dim, bias = false>,
        state keys: f32[max_seq, kv_heads, head];
        state values: f32[max_seq, kv_heads, head];

        fn forward(x: f32[seq, dim], pos: u32) -> f32[seq, dim] {
            let q = rope(reshape(q_proj(x), [seq, heads, head]), pos);
            let k = rope(reshape(k_proj(x), [seq, kv_heads, head]), pos);
            keys[pos..pos + seq] = k;
            values[pos..pos + seq] = reshape(v_proj(x), [seq, kv_heads, head]);
            let a = attention(q, keys[..pos + seq], values[..pos + seq], causal = true);
            o_proj(reshape(a, [seq, dim]))
        }
    }

    layer RememberingBlock<dim, heads, kv_heads, ffn, max_seq> {
        input_layernorm: RmsNorm<dim>,
        self_attn: Remembering<dim, heads, kv_heads, max_seq>,
        post_attention_layernorm: RmsNorm<dim>,
        mlp: SwiGlu<dim, ffn>,

        fn forward(x: f32[seq, dim], pos: u32) -> f32[seq, dim] {
            let x = x + self_attn(input_layernorm(x), pos);
            x + mlp(post_attention_layernorm(x))
        }
    }

    /// The last logits of one text.
    #[ignore("in.*", "out.*")]
    model Cached<dim = 64, max_seq = 24, seq in 1..=max_seq> {
        #[name = "w.model.embed_tokens"] embed: Embedding<256, dim>,
        #[name = "w.model.layers"] blocks: [RememberingBlock<dim, 4, 2, 128, max_seq>; 2],
        #[name = "w.model.norm"] norm: RmsNorm<dim>,
        #[name = "w.lm_head"] head: Linear<dim, 256, bias = false>,

        /// Scores of the token after those given; `pos` are remembered already.
        pub fn next(tokens: u32[seq], pos: u32 in 0..max_seq) -> f32[256] {
            let mut x = embed(tokens);
            for block in blocks { x = block(x, pos); }
            head(norm(x[-1]))
        }
    }
}

const TINY: &[u8] = include_bytes!("fixtures/tiny_llama.safetensors");

fn reference() -> (Vec<u32>, Vec<f32>) {
    let file = SafeTensors::deserialize(TINY).unwrap();
    let ids = file.tensor("in.ids").unwrap().data().chunks_exact(8).map(|id| u32::from(id[0])).collect();
    let logits = file.tensor("out.logits").unwrap();
    let logits = logits.data().chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect();
    (ids, logits)
}

/// Within 1e-5 of the largest.
fn close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= 1e-5 * largest, "{what}: logit {k} is {found}, expected {expected}");
    }
}

#[test]
fn a_batch_of_two_has_the_logits_of_pytorch() {
    let (ids, logits) = reference();
    assert!(ids.len() == 32 && ids.iter().any(|id| *id > 100));
    for device in devices() {
        let mut model = Tiny::load(&device, TINY).unwrap();
        let found = model.logits((&ids, [2, 16])).unwrap().to_vec().unwrap();
        close(&found, &logits, &device.to_string());
    }
}

#[test]
fn a_prompt_in_any_parts_gives_the_same_last_logits() {
    let (ids, logits) = reference();
    let (ids, expected) = (&ids[16..], &logits[31 * 256..]);
    for device in devices() {
        let mut model = Cached::load(&device, TINY).unwrap();
        for parts in [&[16][..], &[7, 9], &[1; 16], &[1, 15], &[13, 2, 1]] {
            model.reset();
            let (mut pos, mut last) = (0, vec![]);
            for part in parts {
                last = model.next(&ids[pos..pos + part], pos as u32).unwrap().to_vec().unwrap();
                pos += part;
            }
            close(&last, expected, &format!("{parts:?} on {device}"));
        }
    }
}

#[test]
fn what_does_not_fit_into_the_cache_is_an_error_before_anything_is_written() {
    let (ids, logits) = reference();
    for device in devices() {
        let mut model = Cached::load(&device, TINY).unwrap();
        model.next(&ids[16..31], 0).unwrap();
        let Err(Error::Mismatch { name, .. }) = model.next(&ids[..10], 15) else { panic!("25 of 24 places") };
        assert!(name.contains("keys") || name.contains("pos"), "{name}");
        assert!(model.next(&ids[..1], 24).is_err());
        let Err(Error::Mismatch { name, expected, found }) = model.next(&[256], 15) else { panic!("no such token") };
        assert_eq!((name.as_str(), found.contains("256")), ("tokens", true), "{expected} {found}");
        assert!(model.next(&[] as &[u32], 15).is_err());
        let last = model.next(&ids[31..], 15).unwrap().to_vec().unwrap();
        close(&last, &logits[31 * 256..], &device.to_string());
    }
}
