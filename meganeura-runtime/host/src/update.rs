//! Optimizer steps: one loop over parameters, gradients and moments, in parts fixed by the number of elements. The
//! formulas stand beside the shader texts.

use std::ops::Range;

use meganeura_shaders::update::Update;
use meganeura_shaders::update::formula::{Formula, Visit};
use pulp::{Arch, Simd, WithSimd};
use smallvec::SmallVec;

use crate::level::By;
use crate::task::Refusal;
use crate::threads::Threads;
use crate::view::{Source, Target};

/// Elements of a part.
const PART: usize = 32 << 10;

/// One step over flat stretches: `places` are parameters, then as many moments as the update has; `words` are those of
/// the shader. Fails, before anything is written, if stretches are too few or too short, or overlap.
pub fn update(
    threads: &Threads,
    update: &Update,
    words: &[u32],
    gradients: Source<'_>,
    places: &[Target<'_>],
) -> Result<(), Refusal> {
    let [_, count, floats @ ..] = words else { return Err(Refusal("an update without words".into())) };
    let count = *count as usize;
    if floats.len() != update.floats.len() || places.len() + 1 != update.buffers {
        return Err(Refusal("an update with other words or places than its text's".into()));
    }
    let stretches = places.iter().map(|place| (place.address(), place.words()));
    let stretches = stretches.chain([(gradients.address(), gradients.words())]);
    for (k, (first, words)) in stretches.clone().enumerate() {
        if words < count {
            return Err(Refusal(format!("an update of {count} elements in {words} words")));
        }
        let apart = |other: usize| first + 4 * count <= other || other + 4 * count <= first;
        if count > 0 && !stretches.clone().take(k).all(|(other, _)| apart(other)) {
            return Err(Refusal("an update whose stretches overlap".into()));
        }
    }
    let values: SmallVec<[f32; 8]> = floats.iter().copied().map(f32::from_bits).collect();
    threads.parts(count.div_ceil(PART), |part| {
        let range = part * PART..count.min((part + 1) * PART);
        update.visit(Part { floats: &values, gradients, places, range });
    });
    Ok(())
}

struct Part<'a> {
    floats: &'a [f32],
    gradients: Source<'a>,
    places: &'a [Target<'a>],
    range: Range<usize>,
}

impl Visit for Part<'_> {
    type Out = ();

    fn visit<F: Formula>(self) {
        let Part { floats, gradients, places, range } = self;
        let of = |k: usize| -> &mut [f32] {
            // SAFETY: parts are disjoint, stretches were checked to be long enough and apart.
            unsafe { places[k].slice(range.start, range.len()) }
        };
        // SAFETY: as above.
        let g = unsafe { gradients.slice(range.start, range.len()) };
        let moments = match F::MOMENTS {
            0 => [None, None],
            1 => [Some(of(1)), None],
            _ => [Some(of(1)), Some(of(2))],
        };
        let (floats, x) = (F::floats(floats), of(0));
        Arch::new().dispatch(Loop::<F> { floats, x, g, moments, formula: std::marker::PhantomData });
    }
}

struct Loop<'a, F: Formula> {
    floats: [f32; 7],
    x: &'a mut [f32],
    g: &'a [f32],
    moments: [Option<&'a mut [f32]>; 2],
    formula: std::marker::PhantomData<F>,
}

impl<F: Formula> WithSimd for Loop<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Loop { floats, x, g, moments, .. } = self;
        match moments {
            [Some(m), Some(v)] => {
                for (((x, g), m), v) in x.iter_mut().zip(g).zip(m).zip(v) {
                    (*x, [*m, *v]) = F::apply::<By<S>>(&floats, *x, *g, [*m, *v]);
                }
            }
            [Some(m), _] => {
                for ((x, g), m) in x.iter_mut().zip(g).zip(m) {
                    (*x, [*m, _]) = F::apply::<By<S>>(&floats, *x, *g, [*m, 0.0]);
                }
            }
            _ => {
                for (x, g) in x.iter_mut().zip(g) {
                    (*x, _) = F::apply::<By<S>>(&floats, *x, *g, [0.0; 2]);
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use meganeura_shaders::update::{ADAM, ADAMW, SGD, SGD_MOMENTUM, SGD_NESTEROV};

    use super::*;

    fn floats(count: usize, seed: u32) -> Vec<u32> {
        let mix = |k: u32| (k.wrapping_mul(2_654_435_761) >> 8) as f32 / 16_777_216.0;
        (0..count as u32).map(|k| (mix(k.wrapping_add(seed * 977)) + 0.01).to_bits()).collect()
    }

    #[test]
    fn every_element_is_updated_by_the_formula_and_none_beyond() {
        let given = [0.1f32, 0.01, 0.9, 0.99, 1e-3, 10.0, 100.0];
        for update_of in [SGD, SGD_MOMENTUM, SGD_NESTEROV, ADAM, ADAMW] {
            for count in [0, 1, 17, 511, PART, 2 * PART + 13] {
                let own = &given[..update_of.floats.len()];
                let words: Vec<u32> = [7, count as u32].into_iter().chain(own.iter().map(|x| x.to_bits())).collect();
                let gradients = floats(count, 1);
                let before: Vec<Vec<u32>> =
                    (0..update_of.buffers as u32 - 1).map(|k| floats(count + 3, k + 2)).collect();
                let mut results = vec![];
                for threads in [1, 2, 3].map(Threads::new) {
                    let mut places = before.clone();
                    let targets: Vec<Target<'_>> = places.iter_mut().map(|place| Target::new(place)).collect();
                    threads.call(|| update(&threads, &update_of, &words, Source::new(&gradients), &targets)).unwrap();
                    results.push(places);
                }
                assert!(results.iter().all(|places| *places == results[0]), "threads change bits");
                for k in 0..count {
                    let of = |place: usize| before.get(place).map_or(0.0, |words| f32::from_bits(words[k]));
                    let g = f32::from_bits(gradients[k]);
                    let (x, moments) = update_of.apply(own, of(0), g, [of(1), of(2)]);
                    for (place, expected) in results[0].iter().zip([x, moments[0], moments[1]]) {
                        let found = f32::from_bits(place[k]);
                        // Some roundings of terms of magnitude up to 2.
                        assert!((found - expected).abs() <= 8.0 * f32::EPSILON, "{expected}, found {found} at {k}");
                        assert!(found.to_bits() != before[0][k], "nothing moved");
                    }
                }
                assert!(results[0].iter().zip(&before).all(|(after, before)| after[count..] == before[count..]));
            }
        }
    }

    #[test]
    fn overlaps_and_short_stretches_are_refused() {
        let threads = Threads::new(1);
        let words = [1, 8, 0, 0];
        let (gradients, mut x) = (floats(8, 1), floats(8, 2));
        let short = update(&threads, &SGD, &words, Source::new(&gradients[..7]), &[Target::new(&mut x)]);
        assert!(short.unwrap_err().0.contains("8 elements in 7 words"));
        let first = x.as_mut_ptr();
        // SAFETY: refused before anything is touched.
        let (over, target) = unsafe { (Source::from_raw(first, 8), Target::from_raw(first, 8)) };
        assert!(update(&threads, &SGD, &words, over, &[target]).unwrap_err().0.contains("overlap"));
        assert!(update(&threads, &ADAM, &words, Source::new(&gradients), &[]).is_err());
    }
}
