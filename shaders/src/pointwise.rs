//! The registry of pointwise operations: one row states everything about one operation.
//!
//! A row holds the name in the language, the value in f64, what the CPU computes on each type of operands, the WGSL
//! spelling, the cost in floating-point operations and the derivative as a program over operands and result. Nothing
//! else in the project lists these operations. Integers are as in WGSL: they wrap, and dividing by 0 gives the
//! dividend, with the rest 0.

use serde::{Deserialize, Serialize};

use crate::math::{self, Arithmetic};
use crate::prog::{Const, DType, Instr, Linker, Reg};

/// How the result changes with an operand.
#[derive(Clone, Copy)]
pub enum Slope {
    /// The derivative, from the operands and the result.
    By(fn(&mut Linker, &[Reg], Reg) -> Reg),
    /// The operation is constant between its jumps.
    Zero,
}

/// WGSL that an operation needs beside its expression: the name of a helper function and its text.
pub type Helper = (&'static str, &'static str);

/// A row over floats.
pub trait OnF32<const N: usize> {
    /// The value.
    fn value<A: Arithmetic>(operands: [f32; N]) -> f32;
}

/// A row over integers.
pub trait OnInt<const N: usize, T> {
    /// The value.
    fn value(operands: [T; N]) -> T;
}

/// A row that compares.
pub trait OnOrdered<const N: usize> {
    /// The value.
    fn value<T: PartialOrd + Copy>(operands: [T; N]) -> bool;
}

/// A row over truth values.
pub trait OnTruth<const N: usize> {
    /// The value.
    fn value(operands: [bool; N]) -> bool;
}

/// Something that is made for every row, such as a loop over arrays.
pub trait Visit<const N: usize> {
    /// What it gives.
    type Out;
    /// For a row over floats.
    fn f32<R: OnF32<N>>(self) -> Self::Out;
    /// For a row over signed integers.
    fn i32<R: OnInt<N, i32>>(self) -> Self::Out;
    /// For a row over unsigned integers.
    fn u32<R: OnInt<N, u32>>(self) -> Self::Out;
    /// For a row that compares operands of any one type.
    fn ordered<R: OnOrdered<N>>(self) -> Self::Out;
    /// For a row over truth values.
    fn truth<R: OnTruth<N>>(self) -> Self::Out;
}

/// The row over one set of operands, given and returned as words.
struct Words<const N: usize>(DType, [u32; N]);

impl<const N: usize> Visit<N> for Words<N> {
    type Out = u32;

    fn f32<R: OnF32<N>>(self) -> u32 {
        R::value::<math::Plain>(self.1.map(f32::from_bits)).to_bits()
    }

    fn i32<R: OnInt<N, i32>>(self) -> u32 {
        R::value(self.1.map(|word| word as i32)) as u32
    }

    fn u32<R: OnInt<N, u32>>(self) -> u32 {
        R::value(self.1)
    }

    fn ordered<R: OnOrdered<N>>(self) -> u32 {
        u32::from(match self.0 {
            DType::F32 => R::value(self.1.map(f32::from_bits)),
            DType::I32 => R::value(self.1.map(|word| word as i32)),
            DType::U32 | DType::Bool => R::value(self.1),
        })
    }

    fn truth<R: OnTruth<N>>(self) -> u32 {
        u32::from(R::value(self.1.map(|word| word != 0)))
    }
}

macro_rules! registry {
    ($(#[$about:meta])* $Kind:ident, $rows:ident, $arity:literal, $Function:ty:
     $($Name:ident $name:literal cost $cost:literal eval $eval:expr,
       $(f32 |$($float:ident),+| $on_float:expr,)?
       $(i32 |$($int:ident),+| $on_int:expr,)?
       $(u32 |$($uint:ident),+| $on_uint:expr,)?
       $(order |$($ordered:ident),+| $on_ordered:expr,)?
       $(truth |$($truth:ident),+| $on_truth:expr,)?
       wgsl $wgsl:literal $(helper $helper:ident)?, slopes [$($slope:expr),+];)+) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[allow(missing_docs)]
        pub enum $Kind { $($Name),+ }

        /// The rows as types, for code that is made for each.
        #[allow(missing_docs)]
        pub mod $rows { $(pub struct $Name;)+ }

        $($(impl OnF32<$arity> for $rows::$Name {
            #[inline(always)]
            fn value<A: Arithmetic>([$($float),+]: [f32; $arity]) -> f32 { $on_float }
        })?)+

        $($(impl OnInt<$arity, i32> for $rows::$Name {
            #[inline(always)]
            fn value([$($int),+]: [i32; $arity]) -> i32 { $on_int }
        })?)+

        $($(impl OnInt<$arity, u32> for $rows::$Name {
            #[inline(always)]
            fn value([$($uint),+]: [u32; $arity]) -> u32 { $on_uint }
        })?)+

        $($(impl OnOrdered<$arity> for $rows::$Name {
            #[inline(always)]
            fn value<T: PartialOrd + Copy>([$($ordered),+]: [T; $arity]) -> bool { $on_ordered }
        })?)+

        $($(impl OnTruth<$arity> for $rows::$Name {
            #[inline(always)]
            fn value([$($truth),+]: [bool; $arity]) -> bool { $on_truth }
        })?)+

        impl $Kind {
            /// All rows.
            pub const ALL: &'static [$Kind] = &[$($Kind::$Name),+];

            /// The name of the function in the language, or the operator.
            pub fn name(self) -> &'static str {
                match self { $($Kind::$Name => $name),+ }
            }

            /// What computes the value; truth is 1 and 0.
            pub fn function(self) -> $Function {
                match self { $($Kind::$Name => $eval),+ }
            }

            /// Hands the row's function over operands of a type to `visit`; none if it has none.
            #[inline]
            pub fn visit<V: Visit<$arity>>(self, dtype: DType, visit: V) -> Option<V::Out> {
                match (self, dtype) {
                    $($(($Kind::$Name, DType::F32) => registry!(@where $on_float; Some(visit.f32::<$rows::$Name>())),)?)+
                    $($(($Kind::$Name, DType::I32) => registry!(@where $on_int; Some(visit.i32::<$rows::$Name>())),)?)+
                    $($(($Kind::$Name, DType::U32) => registry!(@where $on_uint; Some(visit.u32::<$rows::$Name>())),)?)+
                    $($(($Kind::$Name, _) => registry!(@where $on_ordered; Some(visit.ordered::<$rows::$Name>())),)?)+
                    $($(($Kind::$Name, DType::Bool) => registry!(@where $on_truth; Some(visit.truth::<$rows::$Name>())),)?)+
                    _ => None,
                }
            }

            /// Floating-point operations for one element; 8 stands for what a special function unit does.
            pub fn cost(self) -> u64 {
                match self { $($Kind::$Name => $cost),+ }
            }

            /// The expression, with `$0`, `$1` for the operands.
            pub fn wgsl(self) -> &'static str {
                match self { $($Kind::$Name => $wgsl),+ }
            }

            /// The function that the expression calls, if WGSL lacks it.
            pub fn helper(self) -> Option<Helper> {
                match self { $($Kind::$Name => registry!(@helper $($helper)?)),+ }
            }

            /// The derivatives by each operand.
            pub fn slopes(self) -> [Slope; $arity] {
                match self { $($Kind::$Name => [$($slope),+]),+ }
            }
        }
    };
    (@helper) => { None };
    (@helper $helper:ident) => { Some($helper) };
    (@where $given:expr; $then:expr) => { $then };
}

const ONE: Slope = Slope::By(|l, _, _| l.constant(1.0));
const MINUS_ONE: Slope = Slope::By(|l, _, _| l.constant(-1.0));

registry! {
    /// Operations of one operand.
    Un, un, 1, fn(f64) -> f64:
    Neg "-" cost 1 eval |x| -x,
        f32 |x| -x, i32 |x| x.wrapping_neg(),
        wgsl "-($0)", slopes [MINUS_ONE];
    Not "!" cost 1 eval |x| f64::from(x == 0.0),
        truth |x| !x,
        wgsl "!($0)", slopes [Slope::Zero];
    Abs "abs" cost 1 eval f64::abs,
        f32 |x| x.abs(), i32 |x| x.wrapping_abs(),
        wgsl "abs($0)", slopes [Slope::By(|l, x, _| l.un(Un::Sign, x[0]))];
    Exp "exp" cost 8 eval f64::exp,
        f32 |x| math::exp::<A>(x),
        wgsl "exp($0)", slopes [Slope::By(|_, _, y| y)];
    Log "log" cost 8 eval f64::ln,
        f32 |x| math::log::<A>(x),
        wgsl "log($0)", slopes [Slope::By(|l, x, _| l.un(Un::Recip, x[0]))];
    Log1p "log1p" cost 10 eval f64::ln_1p,
        f32 |x| math::log1p::<A>(x),
        wgsl "log1p_($0)" helper LOG1P, slopes [Slope::By(|l, x, _| {
        let one = l.constant(1.0);
        let sum = l.bin(Bin::Add, one, x[0]);
        l.un(Un::Recip, sum)
    })];
    Sqrt "sqrt" cost 8 eval f64::sqrt,
        f32 |x| x.sqrt(),
        wgsl "sqrt($0)", slopes [Slope::By(|l, _, y| {
        let half = l.constant(0.5);
        l.bin(Bin::Div, half, y)
    })];
    Rsqrt "rsqrt" cost 8 eval |x| 1.0 / x.sqrt(),
        f32 |x| 1.0 / x.sqrt(),
        wgsl "inverseSqrt($0)", slopes [Slope::By(|l, _, y| {
        let half = l.constant(-0.5);
        let square = l.mul(y, y);
        let cube = l.mul(square, y);
        l.mul(half, cube)
    })];
    Recip "recip" cost 4 eval |x| 1.0 / x,
        f32 |x| 1.0 / x,
        wgsl "1.0 / ($0)", slopes [Slope::By(|l, _, y| {
        let square = l.mul(y, y);
        l.un(Un::Neg, square)
    })];
    Sin "sin" cost 8 eval f64::sin,
        f32 |x| math::sin::<A>(x),
        wgsl "sin($0)", slopes [Slope::By(|l, x, _| l.un(Un::Cos, x[0]))];
    Cos "cos" cost 8 eval f64::cos,
        f32 |x| math::cos::<A>(x),
        wgsl "cos($0)", slopes [Slope::By(|l, x, _| {
        let sine = l.un(Un::Sin, x[0]);
        l.un(Un::Neg, sine)
    })];
    Tan "tan" cost 16 eval f64::tan,
        f32 |x| math::tan::<A>(x),
        wgsl "tan($0)", slopes [Slope::By(|l, _, y| {
        let one = l.constant(1.0);
        let square = l.mul(y, y);
        l.bin(Bin::Add, one, square)
    })];
    Erf "erf" cost 16 eval erf,
        f32 |x| math::erf::<A>(x),
        wgsl "erf_($0)" helper ERF, slopes [Slope::By(|l, x, _| {
        let scale = l.constant(std::f64::consts::FRAC_2_SQRT_PI);
        let square = l.mul(x[0], x[0]);
        let minus = l.un(Un::Neg, square);
        let bell = l.un(Un::Exp, minus);
        l.mul(scale, bell)
    })];
    Floor "floor" cost 1 eval f64::floor,
        f32 |x| x.floor(),
        wgsl "floor($0)", slopes [Slope::Zero];
    Ceil "ceil" cost 1 eval f64::ceil,
        f32 |x| x.ceil(),
        wgsl "ceil($0)", slopes [Slope::Zero];
    Round "round" cost 1 eval f64::round_ties_even,
        f32 |x| x.round_ties_even(),
        wgsl "round($0)", slopes [Slope::Zero];
    Sign "sign" cost 1 eval |x| if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { 0.0 },
        f32 |x| f32::from(i8::from(x > 0.0) - i8::from(x < 0.0)), i32 |x| x.signum(),
        wgsl "sign($0)", slopes [Slope::Zero];
    Relu "relu" cost 1 eval |x| x.max(0.0),
        f32 |x| x.max(0.0),
        wgsl "max($0, 0.0)", slopes [Slope::By(|l, _, y| {
        let zero = l.constant(0.0);
        let on = l.bin(Bin::Lt, zero, y);
        let one = l.constant(1.0);
        l.push(Instr::Select(on, one, zero))
    })];
    Sigmoid "sigmoid" cost 9 eval |x| 1.0 / (1.0 + (-x).exp()),
        f32 |x| math::sigmoid::<A>(x),
        wgsl "1.0 / (1.0 + exp(-clamp($0, -80.0, 80.0)))",
        slopes [Slope::By(|l, _, y| {
            let one = l.constant(1.0);
            let rest = l.bin(Bin::Sub, one, y);
            l.mul(y, rest)
        })];
    Tanh "tanh" cost 8 eval f64::tanh,
        f32 |x| math::tanh::<A>(x),
        wgsl "tanh(clamp($0, -15.0, 15.0))", slopes [Slope::By(|l, _, y| {
        let one = l.constant(1.0);
        let square = l.mul(y, y);
        l.bin(Bin::Sub, one, square)
    })];
    Nan "?nan" cost 1 eval |x| f64::from(u8::from(x.is_nan())),
        order |x| x.partial_cmp(&x).is_none(),
        wgsl "(bitcast<u32>($0) & 0x7fffffffu) > 0x7f800000u",
        slopes [Slope::Zero];
    Softplus "softplus" cost 18 eval |x| x.max(0.0) + (-x.abs()).exp().ln_1p(),
        f32 |x| math::softplus::<A>(x),
        wgsl "softplus_($0)" helper SOFTPLUS, slopes [Slope::By(|l, x, _| l.un(Un::Sigmoid, x[0]))];
}

registry! {
    /// Operations of two operands.
    Bin, bin, 2, fn(f64, f64) -> f64:
    Add "+" cost 1 eval |x, y| x + y,
        f32 |x, y| x + y, i32 |x, y| x.wrapping_add(y), u32 |x, y| x.wrapping_add(y),
        wgsl "$0 + $1", slopes [ONE, ONE];
    Sub "-" cost 1 eval |x, y| x - y,
        f32 |x, y| x - y, i32 |x, y| x.wrapping_sub(y), u32 |x, y| x.wrapping_sub(y),
        wgsl "$0 - $1", slopes [ONE, MINUS_ONE];
    Mul "*" cost 1 eval |x, y| x * y,
        f32 |x, y| x * y, i32 |x, y| x.wrapping_mul(y), u32 |x, y| x.wrapping_mul(y),
        wgsl "$0 * $1", slopes [Slope::By(|_, x, _| x[1]), Slope::By(|_, x, _| x[0])];
    Div "/" cost 4 eval |x, y| x / y,
        f32 |x, y| x / y, i32 |x, y| x.checked_div(y).unwrap_or(x), u32 |x, y| x.checked_div(y).unwrap_or(x),
        wgsl "$0 / $1", slopes [Slope::By(|l, x, _| l.un(Un::Recip, x[1])), Slope::By(|l, x, y| {
        let ratio = l.bin(Bin::Div, y, x[1]);
        l.un(Un::Neg, ratio)
    })];
    Max "max" cost 1 eval f64::max,
        f32 |x, y| x.max(y), i32 |x, y| x.max(y), u32 |x, y| x.max(y),
        wgsl "max($0, $1)", slopes [
        Slope::By(|l, x, _| chosen(l, Bin::Le, x[1], x[0])), Slope::By(|l, x, _| chosen(l, Bin::Lt, x[0], x[1]))];
    Min "min" cost 1 eval f64::min,
        f32 |x, y| x.min(y), i32 |x, y| x.min(y), u32 |x, y| x.min(y),
        wgsl "min($0, $1)", slopes [
        Slope::By(|l, x, _| chosen(l, Bin::Le, x[0], x[1])), Slope::By(|l, x, _| chosen(l, Bin::Lt, x[1], x[0]))];
    Rem "%" cost 4 eval |x, y| x % y,
        f32 |x, y| x % y, i32 |x, y| x.checked_rem(y).unwrap_or(0), u32 |x, y| x.checked_rem(y).unwrap_or(0),
        wgsl "$0 % $1", slopes [ONE, Slope::By(|l, x, _| {
        let ratio = l.bin(Bin::Div, x[0], x[1]);
        let (floor, ceil, zero) = (l.un(Un::Floor, ratio), l.un(Un::Ceil, ratio), l.constant(0.0));
        let positive = l.bin(Bin::Le, zero, ratio);
        let whole = l.push(Instr::Select(positive, floor, ceil));
        l.un(Un::Neg, whole)
    })];
    Pow "pow" cost 16 eval f64::powf,
        f32 |x, y| math::pow(x, y),
        wgsl "pow_($0, $1)" helper POW, slopes [Slope::By(|l, x, _| {
        let one = l.constant(1.0);
        let less = l.bin(Bin::Sub, x[1], one);
        let power = l.bin(Bin::Pow, x[0], less);
        let slope = l.mul(x[1], power);
        let zero = l.constant(0.0);
        let flat = l.bin(Bin::Eq, x[1], zero);
        l.push(Instr::Select(flat, zero, slope))
    }), Slope::By(|l, x, y| {
        let (zero, one) = (l.constant(0.0), l.constant(1.0));
        let positive = l.bin(Bin::Lt, zero, x[0]);
        let inside = l.push(Instr::Select(positive, x[0], one));
        let log = l.un(Un::Log, inside);
        l.mul(y, log)
    })];
    Lt "<" cost 1 eval |x, y| f64::from(x < y),
        order |x, y| x < y,
        wgsl "$0 < $1", slopes [Slope::Zero, Slope::Zero];
    Le "<=" cost 1 eval |x, y| f64::from(x <= y),
        order |x, y| x <= y,
        wgsl "$0 <= $1", slopes [Slope::Zero, Slope::Zero];
    Eq "==" cost 1 eval |x, y| f64::from(x == y),
        order |x, y| x == y,
        wgsl "$0 == $1", slopes [Slope::Zero, Slope::Zero];
    Hash "#hash" cost 10 eval |x, y| f64::from(hash(x as u32, y as u32)),
        u32 |x, y| hash(x, y),
        wgsl "hash_($0, $1)" helper HASH, slopes [Slope::Zero, Slope::Zero];
    Normal "#normal" cost 40 eval |x, y| (-2.0 * x.ln()).sqrt() * (std::f64::consts::TAU * y).cos(),
        f32 |x, y| math::normal::<A>(x, y),
        wgsl "normal_($0, $1)" helper NORMAL, slopes [Slope::Zero, Slope::Zero];
    And "&" cost 1 eval |x, y| f64::from(x != 0.0 && y != 0.0),
        truth |x, y| x & y,
        wgsl "$0 && $1", slopes [Slope::Zero, Slope::Zero];
    Or "|" cost 1 eval |x, y| f64::from(x != 0.0 || y != 0.0),
        truth |x, y| x | y,
        wgsl "$0 || $1", slopes [Slope::Zero, Slope::Zero];
}

impl Un {
    /// The value on an operand of a type, as words; none if it has none.
    pub fn on_word(self, dtype: DType, x: u32) -> Option<u32> {
        self.visit(dtype, Words(dtype, [x]))
    }

    /// The value; truth is 1 and 0.
    pub fn eval(self, x: f64) -> f64 {
        self.function()(x)
    }
}

impl Bin {
    /// The value on operands of a type, as words; none if it has none.
    pub fn on_words(self, dtype: DType, x: u32, y: u32) -> Option<u32> {
        self.visit(dtype, Words(dtype, [x, y]))
    }

    /// The value; truth is 1 and 0.
    pub fn eval(self, x: f64, y: f64) -> f64 {
        self.function()(x, y)
    }

    /// Whether the operands may change places.
    pub fn commutes(self) -> bool {
        matches!(self, Bin::Add | Bin::Mul | Bin::Max | Bin::Min | Bin::Eq | Bin::And | Bin::Or)
    }

    /// Whether the result is a truth value.
    pub fn is_comparison(self) -> bool {
        matches!(self, Bin::Lt | Bin::Le | Bin::Eq)
    }

    /// Whether operands and result are truth values.
    pub fn is_logical(self) -> bool {
        matches!(self, Bin::And | Bin::Or)
    }
}

fn chosen(l: &mut Linker, compare: Bin, a: Reg, b: Reg) -> Reg {
    let hit = l.bin(compare, a, b);
    let one = l.push(Instr::Const(Const::float(1.0)));
    let zero = l.constant(0.0);
    l.push(Instr::Select(hit, one, zero))
}

/// For small arguments the series, since the rounding of `1 + x` loses them.
const LOG1P: Helper = (
    "log1p_",
    "fn log1p_(x: f32) -> f32 {
    let u = 1.0 + x;
    let d = u - 1.0;
    return select(log(u) * (x / select(d, 1.0, d == 0.0)), x, d == 0.0);
}
",
);

const SOFTPLUS: Helper = (
    "softplus_",
    "fn softplus_(x: f32) -> f32 {
    let e = exp(-abs(x));
    let u = 1.0 + e;
    let d = u - 1.0;
    return max(x, 0.0) + select(log(u) * (e / select(d, 1.0, d == 0.0)), e, d == 0.0);
}
",
);

/// WGSL's `pow` is undefined for a negative base, of which whole powers exist (others are NaN, as the square root is),
/// and for powers of 0.
const POW: Helper = (
    "pow_",
    "fn pow_(x: f32, y: f32) -> f32 {
    let p = pow(abs(x), y);
    let odd = abs(y) % 2.0 == 1.0;
    let whole = select(select(p, -p, x < 0.0 && odd), sqrt(x), x < 0.0 && fract(y) != 0.0);
    return select(select(whole, 0.0, x == 0.0 && y > 0.0), 1.0, y == 0.0);
}
",
);

/// A Taylor series below 0.5, above it 1 - erfc by the rational approximation 7.1.26 of Abramowitz and Stegun.
const ERF: Helper = (
    "erf_",
    "fn erf_(x: f32) -> f32 {
    let a = min(abs(x), 9.0);
    let s = a * a;
    let small = a * 1.1283792 * (1.0 + s * (-0.33333333 + s * (0.1 + s * (-0.023809524 + s * (0.0046296296 + s * -0.00075757576)))));
    let t = 1.0 / (1.0 + 0.3275911 * a);
    let tail = t * (0.25482959 + t * (-0.28449674 + t * (1.4214137 + t * (-1.4531520 + t * 1.0614054)))) * exp(-s);
    return sign(x) * select(1.0 - tail, small, a < 0.5);
}
",
);

/// Two words as one that looks random: `mix(x + mix(y + 0x9e3779b9))` with the mixing function of 32 bits that has the
/// least bias known (Wellons and others, 2018). The same bits on every device.
pub fn hash(x: u32, y: u32) -> u32 {
    fn mix(x: u32) -> u32 {
        let x = (x ^ x >> 16).wrapping_mul(0x21f0_aaad);
        let x = (x ^ x >> 15).wrapping_mul(0xd35a_2d97);
        x ^ x >> 15
    }
    mix(x.wrapping_add(mix(y.wrapping_add(0x9e37_79b9))))
}

const HASH: Helper = (
    "hash_",
    "fn mix_(x: u32) -> u32 {
    let y = (x ^ (x >> 16u)) * 0x21f0aaadu;
    let z = (y ^ (y >> 15u)) * 0xd35a2d97u;
    return z ^ (z >> 15u);
}
fn hash_(x: u32, y: u32) -> u32 {
    return mix_(x + mix_(y + 0x9e3779b9u));
}
",
);

/// A normal number of two uniform ones, a radius in (0, 1] and turns in [0, 1) (Box and Muller, 1958). Logarithm and
/// cosine are series of their own, since those of a device may be off by 2^-11: ln(m · 2^e) = e ln 2 + 2 artanh
/// ((m - 1) / (m + 1)) with m in √½ .. √2; the cosine of the part of a turn that is left after folding it into a quarter.
const NORMAL: Helper = (
    "normal_",
    "fn normal_(radius: f32, turns: f32) -> f32 {
    let bits = bitcast<u32>(radius);
    let up = select(0u, 1u, (bits & 0x7fffffu) > 0x3504f3u);
    let m = bitcast<f32>((bits & 0x7fffffu) | ((127u - up) << 23u));
    let e = f32(bits >> 23u) - 127.0 + f32(up);
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let log = e * 0.69314718 + 2.0 * s * (1.0 + s2 * (0.33333333 + s2 * (0.2 + s2 * (0.14285714 + s2 * 0.11111111))));
    let quarters = turns * 4.0;
    let half = select(quarters, 4.0 - quarters, quarters > 2.0);
    let folded = select(half, 2.0 - half, half > 1.0);
    let a = folded * 1.5707964;
    let a2 = a * a;
    let cosine = 1.0 - a2 * (0.5 - a2 * (0.041666667 - a2 * (0.0013888889 - a2 * (2.4801587e-5 - a2 * (2.7557319e-7 - a2 * 2.0876757e-9)))));
    return sqrt(max(-2.0 * log, 0.0)) * select(cosine, -cosine, half > 1.0);
}
",
);

/// The error function by its Taylor series (|x| < 3) and the continued fraction of erfc (beyond), to f64 accuracy.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a < 3.0 {
        let (mut term, mut sum, mut n) = (a, a, 0.0f64);
        while term.abs() > 1e-18 * sum.abs() && n < 200.0 {
            n += 1.0;
            term *= -a * a / n;
            sum += term / (2.0 * n + 1.0);
        }
        return x.signum() * sum * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let fraction = (1..=60).rev().fold(a, |below, k| a + f64::from(k) / 2.0 / below);
    x.signum() * (1.0 - (-a * a).exp() / fraction / std::f64::consts::PI.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prog::Leaf;

    #[test]
    fn erf_has_its_known_values() {
        let known =
            [(0.1, 0.1124629160182849), (0.5, 0.5204998778130465), (1.0, 0.8427007929497149), (2.5, 0.999593047982555)];
        for (x, y) in known.into_iter().chain([(3.5, 0.999999256901628), (0.0, 0.0)]) {
            assert!((erf(x) - y).abs() < 1e-14 && (erf(-x) + y).abs() < 1e-14, "erf({x}) = {}", erf(x));
        }
    }

    /// Every derivative of the registry against a difference quotient, at points of both signs.
    #[test]
    fn slopes_are_the_limits_of_difference_quotients() {
        let slope = |slope: Slope, x: &[f64], y: f64| match slope {
            Slope::Zero => 0.0,
            Slope::By(by) => {
                let mut link = Linker::default();
                let operands: Vec<Reg> = (0..x.len() as u32).map(|k| link.leaf(Leaf::Arg(k))).collect();
                let result = link.leaf(Leaf::Arg(9));
                let root = by(&mut link, &operands, result);
                let (programs, leaves) = link.finish(&[root], &[]);
                let inputs = leaves.iter().map(|leaf| match leaf {
                    Leaf::Arg(9) => y,
                    Leaf::Arg(k) => x[*k as usize],
                    _ => f64::NAN,
                });
                programs[0].eval_scalars(&inputs.collect::<Vec<_>>())
            }
        };
        let check = |name: &str, exact: f64, f: &dyn Fn(f64) -> f64, x: f64| {
            let step = 1e-6;
            let quotient = (f(x + step) - f(x - step)) / (2.0 * step);
            assert!((exact - quotient).abs() < 1e-6 * (1.0 + exact.abs()), "{name} at {x}: {exact}, found {quotient}");
        };
        for un in Un::ALL.iter().filter(|un| **un != Un::Not) {
            for x in [0.3, 1.7, -0.6, -2.2] {
                let y = un.eval(x);
                if y.is_finite() {
                    check(un.name(), slope(un.slopes()[0], &[x], y), &|x| un.eval(x), x);
                }
            }
        }
        // Random numbers are constants.
        for bin in Bin::ALL.iter().filter(|bin| !matches!(bin, Bin::Hash | Bin::Normal)) {
            for (x, y) in [(0.7, 1.9), (2.3, 0.4), (1.3, -0.8), (5.5, 2.0)] {
                let (slopes, value) = (bin.slopes(), bin.eval(x, y));
                check(bin.name(), slope(slopes[0], &[x, y], value), &|x| bin.eval(x, y), x);
                check(bin.name(), slope(slopes[1], &[x, y], value), &|y| bin.eval(x, y), y);
            }
        }
    }

    #[test]
    fn ties_of_max_and_min_go_to_the_first_operand() {
        assert!(Bin::Max.commutes() && !Bin::Sub.commutes());
        let mut link = Linker::default();
        let x = [link.leaf(Leaf::Arg(0)), link.leaf(Leaf::Arg(1))];
        let Slope::By(by) = Bin::Max.slopes()[0] else { return assert_eq!(0, 1, "max has a slope") };
        let root = by(&mut link, &x, x[0]);
        let (programs, _) = link.finish(&[root], &[Leaf::Arg(0), Leaf::Arg(1)]);
        assert_eq!(programs[0].eval_scalars(&[2.0, 2.0]), 1.0);
    }

    /// The column of the CPU against the one in f64, at ordinary points; `math` has the rest.
    #[test]
    fn every_row_computes_on_f32_what_it_does_in_f64() {
        let points = [0.0, 0.3, 1.0, 1.7, -0.6, -2.2, 5.5, -3.5, 2.5];
        let close = |name: &str, found: Option<u32>, exact: f64| {
            let found = f64::from(found.map_or(f32::INFINITY, f32::from_bits));
            let same = (found.is_nan() && exact.is_nan()) || found == exact;
            assert!(same || (found - exact).abs() <= 4e-7 * exact.abs(), "{name}: {exact}, found {found}");
        };
        for x in points.map(|x| x as f32) {
            for un in Un::ALL.iter().filter(|un| !matches!(un, Un::Not | Un::Nan)) {
                close(un.name(), un.on_word(DType::F32, x.to_bits()), un.eval(f64::from(x)));
            }
            for y in points.map(|y| y as f32) {
                let (x_word, y_word, exact) =
                    (x.to_bits(), y.to_bits(), |bin: Bin| bin.eval(f64::from(x), f64::from(y)));
                // Hashes are of words, normal numbers of a positive radius.
                let other = |bin: &Bin| bin.is_logical() || matches!(bin, Bin::Hash | Bin::Normal);
                for bin in Bin::ALL.iter().filter(|bin| !other(bin)) {
                    let found = bin.on_words(DType::F32, x_word, y_word);
                    match bin.is_comparison() {
                        true => assert_eq!(found.map(f64::from), Some(exact(*bin)), "{} of {x}, {y}", bin.name()),
                        false => close(bin.name(), found, exact(*bin)),
                    }
                }
            }
        }
    }

    #[test]
    fn rows_over_integers_and_truth_agree_with_f64_where_nothing_wraps() {
        let int = |word: Option<u32>| word.map(|word| f64::from(word as i32));
        for x in [-7, -1, 0, 2, 9] {
            for un in [Un::Neg, Un::Abs, Un::Sign] {
                assert_eq!(int(un.on_word(DType::I32, x as u32)), Some(un.eval(f64::from(x))), "{}", un.name());
            }
            for y in [-3, -1, 1, 2, 4] {
                for bin in Bin::ALL
                    .iter()
                    .filter(|bin| !bin.is_logical() && !matches!(bin, Bin::Pow | Bin::Hash | Bin::Normal))
                {
                    let (found, exact) =
                        (bin.on_words(DType::I32, x as u32, y as u32), bin.eval(f64::from(x), f64::from(y)));
                    assert_eq!(int(found), Some(exact.trunc()), "{x} {} {y}", bin.name());
                    if x >= 0 && y > 0 && exact >= 0.0 {
                        assert_eq!(bin.on_words(DType::U32, x as u32, y as u32).map(f64::from), Some(exact.trunc()));
                    }
                }
            }
        }
        for (x, y) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            for bin in [Bin::And, Bin::Or, Bin::Lt, Bin::Le, Bin::Eq] {
                let exact = bin.eval(f64::from(x), f64::from(y));
                assert_eq!(bin.on_words(DType::Bool, x, y).map(f64::from), Some(exact), "{x} {} {y}", bin.name());
            }
            assert_eq!(Un::Not.on_word(DType::Bool, x), Some(1 - x));
        }
        assert_eq!(Un::Neg.on_word(DType::U32, 1), None);
    }
}
