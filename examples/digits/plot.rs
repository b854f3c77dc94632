//! The course of the loss as a picture.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

/// Draws the loss of every step, pale, and its running mean.
pub fn losses(path: &Path, losses: &[f32]) -> Result<(), Box<dyn Error>> {
    register_font("sans-serif", FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT)
        .map_err(|_| "the font is broken")?;
    let root = BitMapBackend::new(path, (960, 540)).into_drawing_area();
    root.fill(&WHITE)?;
    let highest = losses.iter().copied().fold(0.0f32, f32::max);
    let mut chart = ChartBuilder::on(&root)
        .caption("Handwritten digits: loss while training", ("sans-serif", 24))
        .margin(16)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(0..losses.len(), 0.0..highest * 1.05)?;
    chart.configure_mesh().x_desc("step").y_desc("cross-entropy").label_style(("sans-serif", 15)).draw()?;
    let steps = losses.iter().copied().enumerate();
    chart.draw_series(LineSeries::new(steps, RGBColor(150, 180, 220)))?.label("each step").legend(pale);
    let mut mean = losses.first().copied().unwrap_or_default();
    let smooth = losses.iter().enumerate().map(|(step, loss)| {
        mean += 0.05 * (loss - mean);
        (step, mean)
    });
    let line = RGBColor(20, 60, 140).stroke_width(2);
    chart.draw_series(LineSeries::new(smooth.collect::<Vec<_>>(), line))?.label("running mean").legend(dark);
    let legend = ("sans-serif", 16);
    chart.configure_series_labels().label_font(legend).background_style(WHITE).border_style(BLACK).draw()?;
    root.present()?;
    Ok(())
}

fn pale((x, y): (i32, i32)) -> PathElement<(i32, i32)> {
    PathElement::new([(x, y), (x + 20, y)], RGBColor(150, 180, 220))
}

fn dark((x, y): (i32, i32)) -> PathElement<(i32, i32)> {
    PathElement::new([(x, y), (x + 20, y)], RGBColor(20, 60, 140).stroke_width(2))
}
