//! Pictures of schedules: well-formed, with a box for each step and a bar for each value of the arena.
#![allow(clippy::unwrap_used)]

use meganeura::{Picture, Schedule, model};

model! {
    layer Block<dim> {
        norm: RmsNorm<dim>,
        up: Linear<dim, dim>,
        fn forward(x: f32[.., dim]) -> f32[.., dim] { x + silu(up(norm(x))) }
    }

    model Net<batch in 1..=64> {
        embed: Linear<6, 8>,
        blocks: [Block<8>; 3],
        head: Linear<8, 2>,

        /// Two numbers a row.
        pub fn run(x: f32[batch, 6]) -> f32[batch, 2] {
            let mut h = embed(x);
            for block in blocks { h = block(h); }
            head(h)
        }

        /// The mean of squares.
        #[train]
        pub fn loss(x: f32[batch, 6], y: f32[batch, 2]) -> f32 { mse(run(x), y) }
    }
}

/// The tags of a text in XML with their attributes; they open and close in order.
fn tags(text: &str) -> Vec<&str> {
    let (mut open, mut all): (Vec<&str>, Vec<&str>) = Default::default();
    for part in text.split('<').skip(1) {
        let (tag, content) = part.split_once('>').unwrap();
        assert!(!content.contains('>') && tag.matches('"').count().is_multiple_of(2), "{part}");
        let entities =
            content.split('&').skip(1).all(|rest| rest.split_once(';').is_some_and(|(name, _)| name.len() <= 4));
        assert!(entities, "{content}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None => {
                all.push(tag);
                if !tag.ends_with('/') {
                    open.push(tag.split(' ').next().unwrap());
                }
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    all
}

/// x, y, width and height of what shows a text where a pointer rests on it.
fn boxes(text: &str, shows: impl Fn(&str) -> bool) -> Vec<[f64; 4]> {
    let lines = text.split("<rect ").skip(1);
    let with_title = lines.filter_map(|line| Some((line, line.split_once("<title>")?.1.split_once("</title>")?.0)));
    let number = |line: &str, name: &str| {
        let (_, rest) = line.split_once(&format!("{name}=\"")).unwrap();
        rest.split_once('"').unwrap().0.parse().unwrap()
    };
    let place = |line: &str| ["x", "y", "width", "height"].map(|name| number(line, name));
    with_title.filter(|(_, title)| shows(title)).map(|(line, _)| place(line)).collect()
}

fn check(picture: &Picture, schedule: &Schedule) {
    let (text, plan) = (picture.to_string(), &schedule.data().plans[0]);
    assert!(tags(&text)[0].starts_with("svg xmlns=\"http://www.w3.org/2000/svg\" width="));
    let steps = boxes(&text, |title| title.starts_with("step "));
    let all = meganeura_shaders::schedule::steps(&plan.items);
    assert_eq!(steps.len(), all.len());
    for (k, (place, step)) in steps.iter().zip(&all).enumerate().skip(1) {
        // What waits stands in a later column, what does not in the same.
        assert_eq!(place[0] > steps[k - 1][0], step.barrier, "step {k}");
        assert!(place[0] >= steps[k - 1][0]);
    }
    let values = boxes(&text, |title| title.contains(" bytes at "));
    assert_eq!(values.len(), plan.lives.len());
    let apart = |[x, y, width, height]: [f64; 4], [u, v, w, h]: [f64; 4]| {
        x + width <= u + 0.2 || u + w <= x + 0.2 || y + height <= v + 0.2 || v + h <= y + 0.2
    };
    for (k, one) in steps.iter().chain(&values).enumerate() {
        for other in steps.iter().chain(&values).skip(k + 1) {
            assert!(apart(*one, *other), "{one:?} {other:?}");
        }
    }
    assert_eq!(boxes(&text, |title| title.starts_with("repeat 3")).len(), schedule.data().loops.len());
}

#[test]
fn steps_stand_in_their_epochs_and_values_of_the_arena_do_not_overlap() {
    for schedule in [Net::schedule_run().unwrap(), NetTrainer::schedule_loss().unwrap()] {
        for batch in [1, 5, 64] {
            let picture = schedule.picture("Net <at> \"any\" & every size", &[batch]).unwrap();
            check(&picture, &schedule);
            assert_eq!(
                picture.to_string(),
                schedule.picture("Net <at> \"any\" & every size", &[batch]).unwrap().to_string()
            );
        }
        assert!(schedule.picture("", &[65]).is_err());
    }
}

#[test]
fn pictures_can_stand_below_each_other() {
    let [run, loss] = [Net::schedule_run().unwrap(), NetTrainer::schedule_loss().unwrap()];
    let both = run.picture("run", &[3]).unwrap().above(&loss.picture("loss", &[3]).unwrap()).to_string();
    tags(&both);
    let steps = |schedule: &Schedule| meganeura_shaders::schedule::steps(&schedule.data().plans[0].items).len();
    assert_eq!(boxes(&both, |title| title.starts_with("step ")).len(), steps(&run) + steps(&loss));
}
