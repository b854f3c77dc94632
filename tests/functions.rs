//! Built-in functions through the public interface: ids, types of arguments, random numbers, training and evaluation.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use meganeura::{Device, Sgd, model};

model! {
    model Bag<n in 1..=64> {
        embed: Embedding<7, 5>,
        out: Linear<5, 3>,

        pub fn scores(ids: u32[n, 4]) -> f32[n, 3] {
            out(mean(dropout(embed(ids), 0.5), axis = 1))
        }

        pub fn best(ids: u32[n, 4]) -> (u32[n], f32[n, 2], u32[n, 2]) {
            let s = scores(ids);
            let (values, places) = topk(s, 2);
            (argmax(s, axis = 1), values, places)
        }

        #[train]
        pub fn loss(ids: u32[n, 4], label: u32[n]) -> f32 {
            cross_entropy(scores(ids), label, ignore_index = 9)
        }
    }

    model Types<n in 1..=64> {
        pub fn mixed(bytes: u8[n, 3], mask: bool[n, 3], whole: i32[n, 3]) -> (f32[n, 3], bool[n, 3], i32[n, 3]) {
            (where(mask, f32(bytes) / 255, -1), (bytes > 7) & mask, cumsum(whole, 1))
        }

        pub fn noise(x: f32[n]) -> (f32[n, 3], f32[n, 3]) {
            (random_uniform([n, 3]) + reshape(x * 0, [n, 1]), random_normal([n, 3]))
        }
    }
}

const IDS: [[u32; 4]; 3] = [[0, 1, 2, 6], [6, 6, 6, 6], [3, 0, 3, 5]];

#[test]
fn evaluation_drops_nothing_and_training_the_same_for_a_seed() {
    let device = Device::open().unwrap();
    let mut bag = Bag::with_seed(&device, 5).unwrap();
    let first = bag.scores(&IDS).unwrap().to_vec().unwrap();
    assert_eq!(first, bag.scores(&IDS).unwrap().to_vec().unwrap());
    let losses = |seed: u64| {
        let mut trainer = Bag::with_seed(&device, seed).unwrap().trainer(Sgd::new(0.0)).unwrap();
        let steps = (0..3).map(|_| trainer.step(&IDS, &[0, 1, 9]).unwrap().get().unwrap());
        steps.collect::<Vec<f32>>()
    };
    let found = losses(5);
    assert_eq!(found, losses(5));
    assert!(found[0] != found[1] && found[1] != found[2], "each step has a mask of its own: {found:?}");
}

#[test]
fn gradients_see_the_mask_of_their_step() {
    let device = Device::open().unwrap();
    let mut trainer = Bag::with_seed(&device, 5).unwrap().trainer(Sgd::new(0.0)).unwrap();
    let gradients = trainer.gradients(&IDS, &[0, 1, 9]).unwrap();
    assert_eq!(gradients.loss(), trainer.step(&IDS, &[0, 1, 9]).unwrap().get().unwrap());
    let embed = gradients.get("embed.weight").unwrap();
    let is_zero = |row: usize| embed[row * 5..][..5].iter().all(|x| *x == 0.0);
    // Row 4 is named by nobody, rows 3 and 5 only where the label does not count.
    assert_eq!((0..7).map(is_zero).collect::<Vec<_>>(), [false, false, false, true, true, true, false]);
    let nothing = trainer.gradients(&IDS, &[9, 9, 9]).unwrap();
    assert_eq!(nothing.loss(), 0.0);
    assert!(nothing.iter().all(|(_, _, values)| values.iter().all(|x| *x == 0.0)));
}

#[test]
fn extremes_are_found_on_the_device() {
    let device = Device::open().unwrap();
    let mut bag = Bag::with_seed(&device, 1).unwrap();
    let scores = bag.scores(&IDS).unwrap().to_vec().unwrap();
    let (best, values, places) = bag.best(&IDS).unwrap();
    let (best, values, places) = (best.to_vec().unwrap(), values.to_vec().unwrap(), places.to_vec().unwrap());
    for (row, scores) in scores.chunks(3).enumerate() {
        let mut order = [0, 1, 2];
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        assert_eq!(best[row] as usize, order[0]);
        assert_eq!([places[2 * row] as usize, places[2 * row + 1] as usize], order[..2]);
        assert!((values[2 * row] - scores[order[0]]).abs() < 1e-6);
    }
}

#[test]
fn an_id_outside_of_the_table_is_an_error_that_says_where() {
    let device = Device::open().unwrap();
    let mut bag = Bag::new(&device).unwrap();
    let error = bag.scores(&[[0u32, 1, 7, 2]]).unwrap_err().to_string();
    assert!(error.contains("ids") && error.contains("below 7") && error.contains("7 at index 2"), "{error}");
}

#[test]
fn bytes_truth_and_integers_come_in_and_go_out() {
    let device = Device::open().unwrap();
    let mut types = Types::new(&device).unwrap();
    let (bytes, mask, whole) =
        ([[0u8, 255, 51], [8, 9, 7]], [[true, true, false], [false, true, true]], [[1, -2, 3], [0, 7, -9]]);
    let (values, both, sums) = types.mixed(&bytes, &mask, &whole).unwrap();
    assert_eq!(values.to_vec().unwrap(), [0.0, 1.0, -1.0, -1.0, 9.0 / 255.0, 7.0 / 255.0]);
    assert_eq!(both.to_vec().unwrap(), [false, true, false, false, true, false]);
    assert_eq!(sums.to_vec().unwrap(), [1, -1, 2, 0, 7, -2]);
}

#[test]
fn random_numbers_follow_from_seed_and_call() {
    let device = Device::open().unwrap();
    let numbers = |types: &mut Types| {
        let (uniform, normal) = types.noise(&[0.0; 5]).unwrap();
        (uniform.to_vec().unwrap(), normal.to_vec().unwrap())
    };
    let (mut one, mut same) = (Types::with_seed(&device, 1).unwrap(), Types::with_seed(&device, 1).unwrap());
    let first = numbers(&mut one);
    assert_eq!(first, numbers(&mut same));
    assert_ne!(first, numbers(&mut one));
    assert_ne!(first, numbers(&mut Types::with_seed(&device, 1 << 40).unwrap()));
    assert!(first.0.iter().all(|x| (0.0..1.0).contains(x) && (x * 16_777_216.0).fract() == 0.0));
}
