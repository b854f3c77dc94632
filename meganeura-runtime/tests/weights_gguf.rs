//! Loading of GGUF: names, orders of rows, stored types, tied tensors, and files that are not what they say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use meganeura_runtime::testing::gguf::{GgufFile, array};
use meganeura_runtime::weights::{Expected, Rules, Weights};
use meganeura_runtime::{Error, Result, WeightProblem};

const F32: u32 = 0;
const F16: u32 = 1;
const Q8_0: u32 = 8;
const BF16: u32 = 30;

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn ramp(count: usize) -> Vec<f32> {
    (0..count).map(|i| i as f32 + 0.5).collect()
}

fn expected(tensors: &[(&str, &[usize])]) -> Vec<Expected> {
    tensors.iter().map(|(name, shape)| Expected { name: name.to_string(), shape: shape.to_vec() }).collect()
}

fn open<'a>(bytes: &'a [u8], wanted: &[(&str, &[usize])]) -> Result<Weights<'a>> {
    Weights::open(bytes, &expected(wanted), &Rules::default())
}

fn problems(file: &GgufFile, wanted: &[(&str, &[usize])]) -> Vec<WeightProblem> {
    match open(&file.bytes(), wanted) {
        Err(Error::Weights { problems, .. }) => problems,
        other => panic!("{other:?}"),
    }
}

/// A file of a Llama with 2 heads of 6 rows and 1 head of keys, rows of 3 elements.
fn llama() -> GgufFile {
    GgufFile::default()
        .text("general.architecture", "llama")
        .number("llama.attention.head_count", 2)
        .number("llama.attention.head_count_kv", 1)
}

/// Rows of three elements that hold the row's number.
fn rows(numbers: &[usize]) -> Vec<f32> {
    numbers.iter().flat_map(|row| [*row as f32 + 0.25; 3]).collect()
}

#[test]
fn names_of_a_llama_are_the_published_ones() {
    let own = [
        ("token_embd.weight", "model.embed_tokens.weight"),
        ("output_norm.weight", "model.norm.weight"),
        ("output.weight", "lm_head.weight"),
        ("blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight"),
        ("blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight"),
        ("blk.7.attn_v.weight", "model.layers.7.self_attn.v_proj.weight"),
        ("blk.7.attn_v.bias", "model.layers.7.self_attn.v_proj.bias"),
        ("blk.12.attn_output.weight", "model.layers.12.self_attn.o_proj.weight"),
        ("blk.12.ffn_gate.weight", "model.layers.12.mlp.gate_proj.weight"),
        ("blk.12.ffn_up.weight", "model.layers.12.mlp.up_proj.weight"),
        ("blk.12.ffn_down.weight", "model.layers.12.mlp.down_proj.weight"),
        // What the tables do not know keeps its name.
        ("rope_freqs.weight", "rope_freqs.weight"),
        ("blk.1.ffn_gate_exps.weight", "blk.1.ffn_gate_exps.weight"),
        ("blk.x.attn_v.weight", "blk.x.attn_v.weight"),
        ("blk.1.attn_v.scale", "blk.1.attn_v.scale"),
    ];
    let tensor =
        |file: GgufFile, (i, (name, _)): (usize, &(&str, &str))| file.tensor(name, &[1], F32, &f32s(&[i as f32]));
    let bytes = own.iter().enumerate().fold(llama(), tensor).bytes();
    let wanted: Vec<(&str, &[usize])> = own.iter().map(|(_, name)| (*name, &[1][..])).collect();
    let weights = open(&bytes, &wanted).unwrap();
    (0..own.len()).for_each(|i| assert_eq!(weights.to_vec(i).unwrap(), [i as f32]));
    // Without an architecture, and with an unknown one, all names stay.
    for file in [GgufFile::default(), GgufFile::default().text("general.architecture", "other")] {
        let bytes = file.tensor("blk.0.attn_q.weight", &[1], F32, &f32s(&[3.0])).bytes();
        assert_eq!(open(&bytes, &[("blk.0.attn_q.weight", &[1])]).unwrap().to_vec(0).unwrap(), [3.0]);
    }
}

#[test]
fn rows_of_queries_and_keys_are_those_of_halves_again() {
    // Rows of a head, 0 … 5 by halves, lie in pairs: 0 3 1 4 2 5.
    let (head, other) = ([0, 3, 1, 4, 2, 5], [6, 9, 7, 10, 8, 11]);
    let both: Vec<usize> = head.into_iter().chain(other).collect();
    let bias: Vec<f32> = both.iter().map(|row| *row as f32).collect();
    let file = llama()
        .tensor("blk.0.attn_q.weight", &[12, 3], F32, &f32s(&rows(&both)))
        .tensor("blk.0.attn_k.weight", &[6, 3], F32, &f32s(&rows(&head)))
        .tensor("blk.0.attn_v.weight", &[6, 3], F32, &f32s(&rows(&head)))
        .tensor("blk.0.attn_q.bias", &[12], F32, &f32s(&bias));
    let at = "model.layers.0.self_attn";
    let names = ["q_proj.weight", "k_proj.weight", "v_proj.weight", "q_proj.bias"].map(|name| format!("{at}.{name}"));
    let wanted: [(&str, &[usize]); 4] =
        [(&names[0], &[12, 3]), (&names[1], &[6, 3]), (&names[2], &[6, 3]), (&names[3], &[12])];
    let bytes = file.bytes();
    let weights = open(&bytes, &wanted).unwrap();
    let (q, k) = (rows(&(0..12).collect::<Vec<_>>()), rows(&(0..6).collect::<Vec<_>>()));
    assert_eq!(weights.to_vec(0).unwrap(), q);
    assert_eq!(weights.to_vec(1).unwrap(), k);
    assert_eq!(weights.to_vec(2).unwrap(), rows(&head));
    assert_eq!(weights.to_vec(3).unwrap(), (0..12).map(|row| row as f32).collect::<Vec<_>>());
    for (first, length) in [(0, 1), (2, 2), (7, 20), (35, 1), (36, 0)] {
        let mut part = vec![f32::NAN; length];
        assert!(weights.read(0, first, &mut part));
        assert_eq!(part, q[first..first + length]);
    }
    assert!(!weights.read(0, 35, &mut [0.0; 2]) && !weights.read(0, usize::MAX, &mut [0.0; 2]));
    // Qwen has the halves in its files already.
    let file = GgufFile::default().text("general.architecture", "qwen2").number("qwen2.attention.head_count", 2);
    let bytes = file.tensor("blk.0.attn_q.weight", &[12, 3], F32, &f32s(&rows(&both))).bytes();
    assert_eq!(open(&bytes, &[(&names[0], &[12, 3])]).unwrap().to_vec(0).unwrap(), rows(&both));
}

#[test]
fn heads_may_differ_by_block_and_must_divide_the_rows() {
    let name = "model.layers.1.self_attn.q_proj.weight";
    let tensor =
        |file: GgufFile, rows: u64| file.tensor("blk.1.attn_q.weight", &[rows], F32, &vec![0; 4 * rows as usize]);
    let by_block = array(4, 2, &[3u32.to_le_bytes(), 1u32.to_le_bytes()].concat());
    let base = GgufFile::default().text("general.architecture", "llama");
    let file = base.clone().entry("llama.attention.head_count", 9, &by_block);
    // One head of four rows: 0 2 1 3.
    let bytes = file.tensor("blk.1.attn_q.weight", &[4], F32, &f32s(&[0.0, 2.0, 1.0, 3.0])).bytes();
    assert_eq!(open(&bytes, &[(name, &[4])]).unwrap().to_vec(0).unwrap(), [0.0, 1.0, 2.0, 3.0]);
    let message = |file: &GgufFile| match &problems(file, &[(name, &[12])])[..] {
        [WeightProblem::Header(message)] => message.clone(),
        other => panic!("{other:?}"),
    };
    let heads = |heads| base.clone().number("llama.attention.head_count", heads);
    let even = |n| format!("`blk.1.attn_q.weight`: expected an even number of rows for each of {n} heads, found 12");
    for n in [0, 4, 5, 13, u32::MAX] {
        assert_eq!(message(&tensor(heads(n), 12)), even(n));
    }
    let found = "`llama.attention.head_count`: expected the number of heads of block 1, found";
    assert_eq!(message(&tensor(base.clone(), 12)), format!("{found} none"));
    assert_eq!(message(&tensor(base.text("llama.attention.head_count", "x"), 12)), format!("{found} `x`"));
}

#[test]
fn stored_types_convert_and_others_are_named() {
    // A block of 32: 0.5 times −16 … 15.
    let block: Vec<u8> = [0x00, 0x38].into_iter().chain((-16..16).map(|q: i8| q as u8)).collect();
    let file = GgufFile::default()
        .tensor("f16", &[1, 2], F16, &[0x00, 0x3c, 0x00, 0xc0])
        .tensor("bf16", &[2], BF16, &[0x80, 0x3f, 0x40, 0xc0])
        .tensor("q8", &[3, 32], Q8_0, &block.repeat(3))
        .tensor("f32", &[2, 2], F32, &f32s(&ramp(4)));
    let halves: Vec<f32> = (-16..16).map(|q| q as f32 * 0.5).collect();
    let wanted: &[(&str, &[usize])] = &[("q8", &[3, 32]), ("f16", &[1, 2]), ("bf16", &[2]), ("f32", &[2, 2])];
    let bytes = file.bytes();
    let weights = open(&bytes, wanted).unwrap();
    assert_eq!(weights.to_vec(0).unwrap(), halves.repeat(3));
    assert_eq!(weights.to_vec(1).unwrap(), [1.0, -2.0]);
    assert_eq!(weights.to_vec(2).unwrap(), [1.0, -3.0]);
    assert_eq!(weights.to_vec(3).unwrap(), ramp(4));
    let other =
        file.clone().tensor("iq", &[256], 23, &[0; 136]).tensor("i", &[1], 26, &[0; 4]).tensor("n", &[1], 99, &[]);
    let found = problems(&other, &[wanted, &[("iq", &[256]), ("i", &[1]), ("n", &[1])]].concat());
    let kind = |name: &str, found: &str| WeightProblem::Type { name: name.into(), found: found.into() };
    assert_eq!(found, [kind("iq", "IQ4_XS"), kind("i", "I32"), kind("n", "type 99")]);
    assert_eq!(
        problems(&other, wanted).iter().map(|problem| problem.to_string()).collect::<Vec<_>>(),
        ["unexpected `i` [1]", "unexpected `iq` [256]", "unexpected `n` [1]"]
    );
    let rows = problems(&file.tensor("bad", &[2, 48], Q8_0, &[0; 102]), wanted);
    let message = "`bad`: expected rows of whole blocks of 32 elements of Q8_0, found 48";
    assert_eq!(rows, [WeightProblem::Header(message.into())]);
}

#[test]
fn a_file_on_disk_loads_whatever_its_name() {
    let path = std::env::temp_dir().join(format!("meganeura-{}-weights.bin", std::process::id()));
    std::fs::write(&path, llama().tensor("token_embd.weight", &[2, 3], F32, &f32s(&ramp(6))).bytes()).unwrap();
    let wanted = expected(&[("embed.weight", &[2, 3])]);
    let rules = Rules::default().rename("model.embed_tokens.", "embed.");
    let values = Weights::open(&path, &wanted, &rules).unwrap().to_vec(0);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(values.unwrap(), ramp(6));
}

#[test]
fn a_tied_tensor_may_be_there_once_or_twice() {
    let (embed, head): (&str, &str) = ("model.embed_tokens.weight", "lm_head.weight");
    let shape: &[usize] = &[3, 2];
    let data = f32s(&ramp(6));
    let once = llama().tensor("token_embd.weight", &[3, 2], F32, &data);
    let twice = once.clone().tensor("output.weight", &[3, 2], F32, &data);
    let differ = once.clone().tensor("output.weight", &[3, 2], F32, &f32s(&[1.0; 6]));
    for (file, wanted) in [
        (&once, &[(embed, shape)][..]),
        (&once, &[(head, shape)]),
        (&once, &[(embed, shape), (head, shape)]),
        (&twice, &[(embed, shape), (head, shape)]),
        (&twice, &[(embed, shape)]),
        (&twice, &[(head, shape)]),
    ] {
        let bytes = file.bytes();
        let weights = open(&bytes, wanted).unwrap();
        (0..wanted.len()).for_each(|i| assert_eq!(weights.to_vec(i).unwrap(), ramp(6)));
    }
    let bytes = differ.bytes();
    let weights = open(&bytes, &[(embed, shape), (head, shape)]).unwrap();
    assert_eq!((weights.to_vec(0).unwrap(), weights.to_vec(1).unwrap()), (ramp(6), vec![1.0; 6]));
    // A tied model does not stand for one whose scores have a matrix of their own.
    assert!(
        matches!(&problems(&differ, &[(embed, shape)])[..], [WeightProblem::Unexpected { name, .. }] if name == head)
    );
    // Neither does a twin of another shape, nor one that nobody wants.
    let found = problems(&once, &[(embed, shape), (head, &[2, 3])]);
    assert!(matches!(&found[..], [WeightProblem::Missing { name, .. }] if name == head), "{found:?}");
    let found = problems(&twice, &[]);
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn tensors_outside_of_the_file_are_refused() {
    let name: &[(&str, &[usize])] = &[("a", &[1])];
    let at = |shape: &[u64], offset| GgufFile::default().tensor_at("a", shape, F32, offset);
    for (shape, offset) in [
        (&[1][..], 1 << 63),
        (&[1], u64::MAX - 31),
        (&[1 << 62], 0),
        (&[u64::MAX], 0),
        (&[1 << 32, 1 << 32], 0),
        (&[u64::MAX, u64::MAX, u64::MAX, u64::MAX], 0),
        (&[1 << 40], 32),
        (&[2], 0),
        (&[1], 32),
    ] {
        let found = problems(&at(shape, offset).tensor("b", &[1], F32, &f32s(&[1.0])), name);
        assert!(
            found.iter().any(|one| matches!(one, WeightProblem::Header(_) | WeightProblem::Length { .. })),
            "{found:?}"
        );
    }
    let file = GgufFile::default().tensor("x", &[16], F32, &[0; 64]).tensor_at("y", &[1], F32, 32);
    let message = "expected tensors apart from each other, found `y` within `x`";
    assert_eq!(problems(&file, &[]), [WeightProblem::Header(message.into())]);
    let file = GgufFile::default().entry("split.count", 2, &[3, 0]);
    assert!(matches!(&problems(&file, &[])[..], [WeightProblem::Header(reason)] if reason.contains("one of 3 parts")));
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    let file = llama().tensor("output_norm.weight", &[3], F32, &f32s(&ramp(3)));
    let bytes = file.tensor("token_embd.weight", &[2, 32], Q8_0, &[1; 68]).bytes();
    let wanted: &[(&str, &[usize])] = &[("model.norm.weight", &[3]), ("model.embed_tokens.weight", &[2, 32])];
    assert!(open(&bytes, wanted).is_ok());
    let data = bytes.len() - 32 - 68;
    for cut in 0..bytes.len() {
        let Err(Error::Weights { problems, .. }) = open(&bytes[..cut], wanted) else { panic!("{cut}") };
        if cut < data {
            assert!(
                matches!(&problems[0], WeightProblem::Header(_) | WeightProblem::Length { .. }),
                "{cut}: {problems:?}"
            );
        } else {
            let first_cut = if cut < data + 12 { "output_norm.weight" } else { "token_embd.weight" };
            let (expected, found) = (bytes.len() as u64, cut as u64);
            assert_eq!(
                problems,
                [WeightProblem::Length { expected, found, first_cut: Some(first_cut.into()) }],
                "{cut}"
            );
        }
    }
    // Padding behind the last tensor is no problem.
    assert!(open(&[&bytes[..], &[0; 28]].concat(), wanted).is_ok());
}

#[test]
fn no_byte_changed_makes_it_panic() {
    let file = llama().tensor("blk.0.attn_q.weight", &[4, 32], Q8_0, &[3; 136]).tensor("a", &[2], F32, &[0; 8]);
    let bytes = file.bytes();
    let wanted: &[(&str, &[usize])] = &[("model.layers.0.self_attn.q_proj.weight", &[4, 32]), ("a", &[2])];
    let (mut errors, mut loaded) = (0, 0);
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, bytes[at].wrapping_add(1)] {
            let mut changed = bytes.clone();
            changed[at] = value;
            match open(&changed, wanted) {
                Ok(weights) => {
                    assert!(weights.to_vec(0).is_some() && weights.to_vec(1).is_some());
                    loaded += 1;
                }
                Err(_) => errors += 1,
            }
        }
    }
    assert!(errors > 500 && loaded > 500, "{errors} {loaded}");
}
