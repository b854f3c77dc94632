//! What nobody uses is silent where the module says so.
#![deny(warnings)]

#[allow(unused)]
mod quiet {
    meganeura::model! {
        pub model Net<batch in 1..=4> {
            fc: Linear<4, 2>,
            spare: Linear<4, 2>,
            let third = 3;

            pub fn run(x: f32[batch, 4], y: f32[batch]) -> f32[batch, 2] {
                let z = relu(x);
                for i in 0..2 { let w = x; }
                fc(x)
            }
        }
    }
}

meganeura::model! {
    pub model Loud<batch in 1..=4> {
        fc: Linear<4, 2>,

        pub fn run(x: f32[batch, 4], _y: f32[batch]) -> f32[batch, 2] {
            let _z = relu(x);
            fc(x)
        }
    }
}

fn main() {
    assert_eq!(quiet::Net::PARAMETER_COUNT + Loud::PARAMETER_COUNT, 30);
}
