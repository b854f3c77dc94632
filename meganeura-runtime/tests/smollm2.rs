//! SmolLM2's file: its tokens are those of the reference, its tensors those of the published model.
//!
//! The file is not part of the repository; without it these tests say in one line how it is fetched.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use meganeura_runtime::generate::Tokenizer;
use meganeura_runtime::weights::{Expected, Rules, Weights};
use std::path::{Path, PathBuf};

fn file() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
    if !path.is_file() {
        eprintln!("skipped: no SmolLM2; fetch it with `cargo xtask fetch smollm2`");
        return None;
    }
    Some(path)
}

/// A prompt with the template of the file applied.
const CHAT: &str = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n\
    <|im_start|>user\nWhat is gravity? Answer in one sentence.<|im_end|>\n<|im_start|>assistant\n";

/// Its tokens by the reference.
const CHAT_IDS: [u32; 39] = [
    1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018, 411, 407, 19712, 8182, 2, 198,
    1, 4093, 198, 1780, 314, 9354, 47, 19842, 281, 582, 6330, 30, 2, 198, 1, 520, 9531, 198,
];

/// A prompt that the reference continued greedily.
const TEXT: &str = "The capital of France is Paris.\n\nThe answer is: 2018-01-22 12:12:53.<|im_end|>";
const TEXT_IDS: [u32; 35] = [
    504, 3575, 282, 4649, 314, 7042, 30, 198, 198, 504, 2988, 314, 42, 216, 34, 32, 33, 40, 29, 32, 33, 29, 34, 34,
    216, 33, 34, 42, 33, 34, 42, 37, 35, 30, 2,
];

#[test]
fn tokens_are_those_of_the_reference() {
    let Some(path) = file() else { return };
    let tokenizer = Tokenizer::load(&path).unwrap();
    assert_eq!((tokenizer.count(), tokenizer.begin(), tokenizer.end()), (49_152, None, Some(2)));
    assert_eq!(tokenizer.encode(CHAT), CHAT_IDS);
    assert_eq!(tokenizer.decode(&CHAT_IDS).unwrap(), CHAT);
    assert_eq!(tokenizer.encode("The capital of France is"), TEXT_IDS[..5]);
    assert_eq!(tokenizer.encode(TEXT), TEXT_IDS);
    assert_eq!(tokenizer.decode(&TEXT_IDS).unwrap(), TEXT);
    assert!(tokenizer.chat_template().unwrap().contains("<|im_start|>assistant"));
    // The reference's tokenizer (tokenizers for Python) on white space, contractions, digits, marks and other scripts.
    for (text, ids) in SAMPLES {
        assert_eq!(tokenizer.encode(text), *ids, "{text:?}");
    }
}

const SAMPLES: &[(&str, &[u32])] = &[
    (
        "I'm sure they'll say  it's\tfine,\n\n  isn't it?",
        &[57, 5248, 2090, 502, 3060, 1643, 216, 357, 506, 197, 38066, 28, 8866, 3247, 982, 357, 47],
    ),
    (" leading and trailing   ", &[2899, 284, 35079, 333]),
    (
        "x = 3.14159e-10;\r\n\tif (a_b != c2) { return; }",
        &[
            104, 446, 216, 35, 30, 33, 36, 33, 37, 41, 85, 29, 33, 32, 43, 2738, 197, 342, 365, 81, 79, 82, 6541, 265,
            34, 25, 1662, 1003, 43, 4029,
        ],
    ),
    (
        "naïve façade — “quotes” … 50½² Ⅳ",
        &[3546, 46494, 40852, 1841, 619, 385, 2346, 573, 5548, 216, 37, 32, 16738, 19133, 216, 173, 223, 113],
    ),
    (
        "Привет мир, γειά σου, שלום, مرحبًا",
        &[
            155, 249, 46879, 16464, 32547, 41337, 7872, 9175, 28, 37831, 14240, 12001, 26112, 32437, 39963, 28, 12960,
            119, 31838, 23970, 162, 247, 28, 36395, 20602, 44626, 31462, 164, 229, 10805,
        ],
    ),
    (
        "हिन्दी की किताब ไทย ภาษา",
        &[
            4300, 134, 27011, 30658, 16525, 44757, 37189, 42034, 37189, 42034, 27011, 26293, 18075, 4300, 122, 216,
            31933, 222, 10283, 241, 10283, 112, 216, 10283, 250, 43662, 10283, 119, 43662,
        ],
    ),
    (
        "中文字符，日本語のテキスト。한국어",
        &[
            28589, 29184, 36518, 40562, 116, 12831, 23274, 115, 40993, 179, 120, 248, 26453, 11100, 224, 10391, 251,
            10391, 134, 11100, 226, 19076, 33085, 246, 181, 130, 251, 183, 240, 129,
        ],
    ),
    (
        "\u{1f980}\u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f467} e\u{301} \u{a0}\u{2003}x\u{200b}y",
        &[
            10813, 116, 218, 10813, 235, 119, 321, 231, 10813, 235, 119, 321, 231, 10813, 235, 117, 297, 151, 219,
            3351, 250, 321, 221, 104, 321, 229, 105,
        ],
    ),
    ("<|im_start|><|im_end|> <|im_start|>user<file_sep>", &[1, 2, 216, 1, 4093, 5]),
    ("aaaaaaaaaaaaaaaaaaaaaaa        bbb", &[46880, 46880, 46880, 46880, 46880, 11510, 81, 415, 278, 15659]),
    ("\u{4}\u{6}a\u{1d}", &[81]),
    ("IT'S DON'T 'tis 's", &[2901, 23, 67, 422, 2154, 23, 68, 637, 34818, 637, 99]),
];

fn expected() -> Vec<Expected> {
    let expected = |name: String, shape: &[usize]| Expected { name, shape: shape.to_vec() };
    let mut all = vec![expected("model.embed_tokens.weight".into(), &[49_152, 576])];
    for block in 0..30 {
        for (name, shape) in [
            ("input_layernorm", &[576][..]),
            ("self_attn.q_proj", &[576, 576]),
            ("self_attn.k_proj", &[192, 576]),
            ("self_attn.v_proj", &[192, 576]),
            ("self_attn.o_proj", &[576, 576]),
            ("post_attention_layernorm", &[576]),
            ("mlp.gate_proj", &[1536, 576]),
            ("mlp.up_proj", &[1536, 576]),
            ("mlp.down_proj", &[576, 1536]),
        ] {
            all.push(expected(format!("model.layers.{block}.{name}.weight"), shape));
        }
    }
    all.push(expected("model.norm.weight".into(), &[576]));
    all
}

#[test]
fn tensors_are_those_of_the_published_model() {
    let Some(path) = file() else { return };
    let expected = expected();
    assert_eq!(expected.len(), 272);
    let weights = Weights::open(&path, &expected, &Rules::default()).unwrap();
    // Sums by the reference implementation (gguf for Python) with rows in the published order: element i of a tensor
    // times i mod 1009 + 1, divided by the number of elements.
    for (name, sum) in SUMS {
        let index = expected.iter().position(|expected| expected.name == *name).unwrap();
        let values = weights.to_vec(index).unwrap();
        let found = values.iter().enumerate().map(|(i, value)| f64::from(*value) * (i % 1009 + 1) as f64).sum::<f64>();
        let found = found / values.len() as f64;
        assert!((found - sum).abs() < 1e-9, "{name}: {found}");
    }
    // The scores' matrix of a model that is not tied is the embedding.
    let head = [Expected { name: "lm_head.weight".into(), shape: vec![49_152, 576] }];
    let rules = Rules::default().allow_unexpected("model.*");
    let weights = Weights::open(&path, &head, &rules).unwrap();
    assert!(weights.has(0));
}

const SUMS: &[(&str, f64)] = &[
    ("model.embed_tokens.weight", -0.27621815991637455),
    ("model.layers.0.input_layernorm.weight", 0.3324178589714898),
    ("model.layers.0.mlp.down_proj.weight", 0.10137704634797517),
    ("model.layers.0.mlp.gate_proj.weight", 0.1366209242389434),
    ("model.layers.0.mlp.up_proj.weight", -0.1352305361069739),
    ("model.layers.0.post_attention_layernorm.weight", 30.660894605848526),
    ("model.layers.0.self_attn.k_proj.weight", 0.21973435097822436),
    ("model.layers.0.self_attn.o_proj.weight", 0.025844488925312038),
    ("model.layers.0.self_attn.q_proj.weight", 0.09645422925183803),
    ("model.layers.0.self_attn.v_proj.weight", 0.0579787154716474),
    ("model.layers.17.mlp.down_proj.weight", 0.07404837336529184),
    ("model.layers.29.self_attn.k_proj.weight", 0.38809256407397763),
    ("model.layers.29.self_attn.q_proj.weight", 0.3207963321840874),
    ("model.norm.weight", 520.4452311197916),
];
