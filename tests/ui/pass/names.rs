//! Keywords of Rust and WGSL as names, two models of one name, a model inside a function, pieces from a macro.
#![deny(warnings, missing_docs, unreachable_pub)]

use meganeura::model;

model! {
    /// Names that other languages keep for themselves.
    pub model Odd<fn_ = 3, batch in 1..=4> {
        type: Linear<4, fn_>,
        var: Linear<fn_, 2>,
        param override: f32[2] = zeros;

        /// Keywords of Rust and of WGSL.
        pub fn run(struct: f32[batch, 4]) -> f32[batch, 2] {
            let texture = type(struct);
            let loop = var(relu(texture));
            loop + override
        }
    }
}

mod other {
    meganeura::model! {
        /// The same name in another module.
        pub model Odd<batch in 1..=4> {
            fc: Linear<4, 2>,

            /// Runs.
            pub fn run(x: f32[batch, 4]) -> f32[batch, 2] {
                fc(x)
            }
        }
    }
}

macro_rules! with_width {
    ($name:ident, $width:literal) => {
        model! {
            /// Made by a macro.
            pub model $name<batch in 1..=4> {
                fc: Linear<$width, 2>,

                /// Runs.
                pub fn run(x: f32[batch, $width]) -> f32[batch, 2] {
                    fc(x)
                }
            }
        }
    };
}

with_width!(Made, 6);

macro_rules! with_names {
    ($layer:ident, $local:ident) => {
        model! {
            /// Names from both sides of a macro.
            pub model Mixed<batch in 1..=4> {
                $layer: Linear<4, 2>,

                /// Runs.
                pub fn run(x: f32[batch, 4]) -> f32[batch, 2] {
                    let $local = fc(x);
                    let z = relu(y);
                    z + y
                }
            }
        }
    };
}

with_names!(fc, y);

fn main() {
    meganeura::model! {
        /// Inside a function.
        model Inner<batch in 1..=4> {
            fc: Linear<4, 2>,

            /// Runs.
            pub fn run(x: f32[batch, 4]) -> f32[batch, 2] {
                fc(x)
            }
        }
    }
    let counts = [Odd::PARAMETER_COUNT, other::Odd::PARAMETER_COUNT, Made::PARAMETER_COUNT, Inner::PARAMETER_COUNT];
    assert_eq!(Mixed::PARAMETER_COUNT, 10);
    assert_eq!(counts, [15 + 8 + 2, 10, 14, 10]);
    assert_eq!(Odd::PARAMETERS[0].name, "type.weight");
}
