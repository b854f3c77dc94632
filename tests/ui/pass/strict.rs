//! Strict crates: every warning is an error, there is no prelude, an invocation is on a condition.
#![deny(warnings, missing_docs, unreachable_pub)]
#![no_implicit_prelude]

/// No condition that holds.
mod absent {
    #[cfg(any())]
    ::meganeura::model! {
        pub model Broken { fc: Nothing<1, 2, 3>, }
    }
}

#[cfg(all())]
::meganeura::model! {
    layer Part<dim> {
        buffer mean: f32[dim] = zeros;
        fc: Linear<dim, dim>,

        fn forward(x: f32[n, dim]) -> (f32[n, dim], f32) {
            mean = 0.9 * mean + 0.1 * x[0];
            let y = tap(fc(x - mean));
            (y, sum(y))
        }
    }

    /// All forms at once.
    pub model Net<dim = 4, depth = 3, batch in 1..=8> {
        parts: [Part<dim>; depth],
        others: [Part<dim>; depth],
        param table: f32[depth, dim] = ones;

        /// Runs.
        pub fn run(x: f32[batch, dim], pos: u32 in 0..2) -> (f32[batch, dim], f32) {
            let mut y = x;
            let mut total = 0.0;
            for (i, part) in parts {
                let (z, s) = part(y);
                y = z * f32(i + 1);
                total += s;
            }
            for (a, b) in (parts[..2], others[1..]) {
                y = a.fc(b.fc(y));
            }
            for i in 0..depth { y = y * table[i] + table[pos]; }
            y[.., 0] = 1;
            (y, total)
        }

        /// Trains.
        #[train]
        pub fn loss(x: f32[batch, dim]) -> f32 {
            let (y, _s) = others[-1](x);
            mean(pow(y, 2))
        }
    }
}

fn main() {
    ::std::assert_eq!(Net::PARAMETER_COUNT, 2 * 3 * (4 + 20) + 12);
}
