//! A schedule as a picture: steps as boxes, what reads what, and the arena over time.
//!
//! In come a schedule and its dimensions, out comes SVG. A column is an epoch, a stretch between barriers: what stands in
//! one column may run at once. Loop bodies are drawn once, in a frame. Below, on the same columns, each value of the
//! arena covers the bytes that it has and the epochs that it lives in.

mod depend;
mod svg;

use std::fmt;

use meganeura_shaders::dim::Env;
use meganeura_shaders::schedule::{Plan, Schedule};
use meganeura_shaders::table::short;

use depend::{Order, Placed};
use svg::{Rect, Svg};

/// From one column to the next, and the width of a box in it.
const COLUMN: f64 = 178.0;
const BOX: [f64; 2] = [146.0, 64.0];
/// From one box of a column to the next.
const ROW: f64 = 84.0;
/// Left of the first column, for the scale of the arena.
const MARGIN: f64 = 74.0;
/// Of the arena.
const ARENA: f64 = 300.0;
const LETTERS: &str = "font-family=\"sans-serif\" font-size=\"11\"";

/// A drawing. `Display` gives it as a file in SVG.
#[derive(Clone, Debug)]
pub struct Picture {
    width: f64,
    height: f64,
    svg: Svg,
}

impl Picture {
    /// A schedule at given dimensions.
    pub(crate) fn new(title: &str, schedule: &Schedule, plan: &Plan, env: &Env) -> Picture {
        let order = Order::new(plan);
        let epochs = order.steps.last().map_or(1, |placed| placed.epoch + 1);
        let mut draw = Draw { schedule, plan, env, order, epochs, rows: vec![], svg: Svg::default() };
        let height = draw.all(title);
        Picture { width: MARGIN + COLUMN * epochs as f64 + 16.0, height, svg: draw.svg }
    }

    /// This picture, and another one below it.
    pub fn above(mut self, other: &Picture) -> Picture {
        self.svg.below(self.height, &other.svg);
        Picture { width: self.width.max(other.width), height: self.height + other.height, svg: self.svg }
    }
}

impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Picture { width, height, svg } = self;
        writeln!(
            f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\">"
        )?;
        writeln!(f, "<rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"white\"/>")?;
        writeln!(f, "{}</svg>", svg.0)
    }
}

struct Draw<'s> {
    schedule: &'s Schedule,
    plan: &'s Plan,
    env: &'s Env,
    order: Order<'s>,
    epochs: usize,
    /// The row of each step in its column.
    rows: Vec<usize>,
    svg: Svg,
}

impl Draw<'_> {
    /// Gives the height.
    fn all(&mut self, title: &str) -> f64 {
        let mut filled = vec![0; self.epochs];
        for Placed { epoch, .. } in &self.order.steps {
            self.rows.push(filled[*epoch]);
            filled[*epoch] += 1;
        }
        let deepest = self.order.loops.iter().map(|around| around.depth + 1).max().unwrap_or(0) as f64;
        let top = 44.0 + 22.0 * deepest;
        // Edges to the next iteration run below the boxes.
        let bottom = top + ROW * filled.iter().max().copied().unwrap_or(1) as f64 + 26.0;
        self.svg.text([16.0, 24.0], "start", "font-family=\"sans-serif\" font-size=\"15\" font-weight=\"bold\"", title);
        self.loops(bottom);
        self.edges(top, bottom);
        for k in 0..self.order.steps.len() {
            self.step(k, top);
        }
        self.arena(bottom + 36.0) + 24.0
    }

    fn corner(&self, step: usize, top: f64) -> [f64; 2] {
        let x = MARGIN + COLUMN * self.order.steps[step].epoch as f64 + (COLUMN - BOX[0]) / 2.0;
        [x, top + ROW * self.rows[step] as f64]
    }

    fn loops(&mut self, bottom: f64) {
        for around in &self.order.loops {
            let info = &self.schedule.loops[around.id];
            let [first, last] = around.epochs.map(|epoch| epoch as f64);
            let inset = 3.0 * around.depth as f64;
            let y = 36.0 + 22.0 * around.depth as f64;
            let rect = Rect {
                x: MARGIN + COLUMN * first + inset,
                y,
                width: COLUMN * (last - first + 1.0) - 2.0 * inset,
                height: bottom - y - inset,
            };
            let down = if info.reversed { ", the last iteration first" } else { "" };
            let label = format!("repeat {}{down}", info.count.eval(self.env));
            let style = "fill=\"#f3f4f6\" stroke=\"#6b7280\" stroke-dasharray=\"5 3\"";
            self.svg.rect(rect, style, &label);
            self.svg.text([rect.x + 8.0, y + 15.0], "start", &format!("{LETTERS} fill=\"#374151\""), &label);
        }
    }

    fn edges(&mut self, top: f64, bottom: f64) {
        let [width, height] = BOX;
        for (writer, reader, next) in self.order.edges.clone() {
            let ([from_x, from_y], [to_x, to_y]) = (self.corner(writer, top), self.corner(reader, top));
            let [from, to] = [[from_x + width, from_y + height / 2.0], [to_x, to_y + height / 2.0]];
            let ([x, y], [u, v]) = (from, to);
            let (path, style) = match next {
                false => {
                    let bend = ((u - x) / 2.0).max(16.0);
                    (format!("M{x:.1} {y:.1} C{:.1} {y:.1} {:.1} {v:.1} {u:.1} {v:.1}", x + bend, u - bend), "#4b5563")
                }
                // Below everything and back.
                true => (
                    format!(
                        "M{x:.1} {y:.1} C{:.1} {y:.1} {:.1} {b:.1} {x:.1} {b:.1} L{u:.1} {b:.1} C{:.1} {b:.1} {:.1} \
                         {v:.1} {u:.1} {v:.1}",
                        x + 16.0,
                        x + 16.0,
                        u - 16.0,
                        u - 16.0,
                        b = bottom - 10.0
                    ),
                    "#b45309\" stroke-dasharray=\"4 3",
                ),
            };
            self.svg.path(&path, &format!("stroke=\"{style}\" stroke-opacity=\"0.7\""));
            // The head of an arrow.
            let head = format!("M{:.1} {:.1} L{u:.1} {v:.1} L{:.1} {:.1}", u - 5.0, v - 3.0, u - 5.0, v + 3.0);
            self.svg.path(&head, "stroke=\"#4b5563\"");
        }
    }

    fn step(&mut self, number: usize, top: f64) {
        let [x, y] = self.corner(number, top);
        let step = self.order.steps[number].step;
        let (Some(member), Some(origin)) = (step.members.first(), step.origins.first()) else { return };
        let kernels: Vec<&str> = step.members.iter().map(|member| member.kernel.name()).collect();
        let kernel = match kernels.len() {
            1 => kernels[0].to_string(),
            count if kernels.iter().all(|name| *name == kernels[0]) => format!("{} ×{count}", kernels[0]),
            _ => kernels.join(" + "),
        };
        let backward = if origin.backward { "∂ " } else { "" };
        let what = format!("{backward}{}", origin.what);
        let shapes: Vec<String> =
            step.members.iter().map(|member| format!("{:?}", self.env.shape(&member.shape))).collect();
        let about = format!(
            "step {number}: {}\n{what}\nlayer {}\n{}\n{} bytes, {} flop\n{}",
            kernels.join(" + "),
            if origin.path.is_empty() { "(none)" } else { &origin.path },
            shapes.join(", "),
            short(step.bytes(self.env)),
            short(step.flops(self.env)),
            origin.rules.join(" ")
        );
        let color = color(member.kernel.name());
        let rect = Rect { x, y, width: BOX[0], height: BOX[1] };
        self.svg.rect(rect, &format!("rx=\"4\" fill=\"{color}\" stroke=\"#374151\""), &about);
        let shape = if shapes.len() > 1 { format!("{} …", shapes[0]) } else { shapes[0].clone() };
        let lines = [format!("{number}  {kernel}"), what, origin.path.clone(), shape];
        for (k, line) in lines.iter().enumerate() {
            let weight = if k == 0 { " font-weight=\"bold\"" } else { "" };
            let at = [x + 6.0, y + 14.0 + 15.0 * k as f64];
            self.svg.text(at, "start", &format!("{LETTERS}{weight} pointer-events=\"none\""), &cut(line, 24));
        }
    }

    /// Gives the y of its lower end.
    fn arena(&mut self, top: f64) -> f64 {
        let arena = self.plan.arena(&self.schedule.buffers, self.env);
        let total = arena.bytes.max(1) as f64;
        let (left, width, end) = (MARGIN, COLUMN * self.epochs as f64, top + ARENA);
        let label = format!("{LETTERS} fill=\"#374151\"");
        let title = format!("arena, {} bytes: what lies where, epoch by epoch", arena.bytes);
        self.svg.text([left, top - 8.0], "start", &label, &title);
        let frame = Rect { x: left, y: top, width, height: ARENA };
        self.svg.rect(frame, "fill=\"#fafafa\" stroke=\"#9ca3af\"", "");
        for quarter in 0..=4 {
            let y = end - ARENA * f64::from(quarter) / 4.0;
            let bytes = short((total * f64::from(quarter) / 4.0) as u64);
            self.svg.text([left - 6.0, y + 4.0], "end", &label, &bytes);
            self.svg.path(&format!("M{left:.1} {y:.1} h{width:.1}"), "stroke=\"#e5e7eb\"");
        }
        for (k, life) in self.plan.lives.iter().enumerate() {
            let buffer = &self.schedule.buffers[life.buffer];
            let bytes = buffer.bytes.eval(self.env);
            let offset = arena.offsets.get(&life.buffer).copied().unwrap_or(0);
            let height = ARENA * bytes as f64 / total;
            let rect = Rect {
                x: left + COLUMN * life.first as f64 + 3.0,
                y: end - ARENA * (offset + bytes) as f64 / total,
                width: COLUMN * (life.last - life.first + 1) as f64 - 6.0,
                height,
            };
            let writers = self
                .order
                .steps
                .iter()
                .enumerate()
                .filter(|(_, placed)| placed.step.members.iter().any(|member| member.write.buffer == life.buffer));
            let writers: Vec<String> = writers.map(|(number, _)| number.to_string()).collect();
            let s = if writers.len() == 1 { "" } else { "s" };
            let name = format!("{} of step{s} {}", buffer.name, writers.join(", "));
            let about = format!("{name}: {bytes} bytes at {offset}");
            let fill = ["#c7d2fe", "#bae6fd", "#bbf7d0", "#fde68a", "#fecaca", "#e9d5ff"][k % 6];
            self.svg.rect(rect, &format!("fill=\"{fill}\" stroke=\"#4b5563\" stroke-width=\"0.5\""), &about);
            if height >= 12.0 {
                let at = [rect.x + 5.0, rect.y + height / 2.0 + 4.0];
                let most = (rect.width / 6.0) as usize;
                let text = format!("{name}, {}", short(bytes.unsigned_abs()));
                self.svg.text(at, "start", &format!("{LETTERS} pointer-events=\"none\""), &cut(&text, most));
            }
        }
        for Placed { epoch, .. } in &self.order.steps {
            let x = left + COLUMN * (*epoch as f64 + 0.5);
            self.svg.path(&format!("M{x:.1} {end:.1} v4"), "stroke=\"#9ca3af\"");
        }
        for epoch in 0..self.epochs {
            let numbers = self.order.steps.iter().enumerate().filter(|(_, placed)| placed.epoch == epoch);
            let numbers: Vec<String> = numbers.map(|(number, _)| number.to_string()).collect();
            let x = left + COLUMN * (epoch as f64 + 0.5);
            self.svg.text([x, end + 16.0], "middle", &label, &numbers.join(" "));
        }
        end + 16.0
    }
}

fn color(kernel: &str) -> &'static str {
    match kernel {
        "contract" => "#bfdbfe",
        "rows" => "#bbf7d0",
        "pointwise" => "#d9f99d",
        "column-sum" => "#fde68a",
        "copy" | "concat" => "#e5e7eb",
        _ => "#fbcfe8",
    }
}

/// At most this many letters.
fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_string(),
    }
}
