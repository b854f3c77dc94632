//! How elements are stored: alone, or in blocks that share scales.

use safetensors::tensor::Dtype;
use std::fmt;

/// Types of stored elements. A row of a tensor is a whole number of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "the names that the format gives them")]
pub(super) enum Kind {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2_K,
    Q3_K,
    Q4_K,
    Q5_K,
    Q6_K,
    Q8_K,
    /// A type of a safetensors file that does not convert.
    Plain(Dtype),
    /// A type of a GGUF file that does not convert, by its number.
    Ggml(u32),
}

impl Kind {
    /// The type of a number in a GGUF file.
    pub(super) fn of_gguf(number: u32) -> Kind {
        match number {
            0 => Kind::F32,
            1 => Kind::F16,
            2 => Kind::Q4_0,
            3 => Kind::Q4_1,
            6 => Kind::Q5_0,
            7 => Kind::Q5_1,
            8 => Kind::Q8_0,
            10 => Kind::Q2_K,
            11 => Kind::Q3_K,
            12 => Kind::Q4_K,
            13 => Kind::Q5_K,
            14 => Kind::Q6_K,
            15 => Kind::Q8_K,
            30 => Kind::Bf16,
            other => Kind::Ggml(other),
        }
    }

    /// The type of elements of a safetensors file.
    pub(super) fn of_safetensors(kind: Dtype) -> Kind {
        match kind {
            Dtype::F32 => Kind::F32,
            Dtype::F16 => Kind::F16,
            Dtype::BF16 => Kind::Bf16,
            other => Kind::Plain(other),
        }
    }

    /// Elements and bytes of a block; none if the type does not convert.
    pub(super) fn block(self) -> Option<(usize, usize)> {
        Some(match self {
            Kind::F32 => (1, 4),
            Kind::F16 | Kind::Bf16 => (1, 2),
            Kind::Q4_0 => (32, 18),
            Kind::Q4_1 => (32, 20),
            Kind::Q5_0 => (32, 22),
            Kind::Q5_1 => (32, 24),
            Kind::Q8_0 => (32, 34),
            Kind::Q2_K => (256, 84),
            Kind::Q3_K => (256, 110),
            Kind::Q4_K => (256, 144),
            Kind::Q5_K => (256, 176),
            Kind::Q6_K => (256, 210),
            Kind::Q8_K => (256, 292),
            Kind::Plain(_) | Kind::Ggml(_) => return None,
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Bf16 => f.write_str("BF16"),
            Kind::Plain(kind) => kind.fmt(f),
            Kind::Ggml(number) => match OTHERS.iter().find(|(other, _)| other == number) {
                Some((_, name)) => f.write_str(name),
                None => write!(f, "type {number}"),
            },
            other => write!(f, "{other:?}"),
        }
    }
}

/// Names of types that do not convert.
const OTHERS: &[(u32, &str)] = &[
    (9, "Q8_1"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (29, "IQ1_M"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (39, "MXFP4"),
];
