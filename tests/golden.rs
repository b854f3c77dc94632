//! The schedules of three models as people read them: what the compiler decided, kernel by kernel.
//!
//! A change of the compiler that is meant to change nothing leaves these files alone.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use expect_test::expect_file;

#[path = "../examples/schedule/models.rs"]
#[allow(dead_code)]
mod models;

fn tables(name: &str) -> String {
    let (_, show) = models::ALL.iter().find(|(known, _)| *known == name).unwrap();
    let tables = show().unwrap().into_iter().map(|models::Shown { title, table, .. }| format!("{title}\n\n{table}\n"));
    tables.collect()
}

fn explanations(name: &str) -> String {
    let (_, show) = models::ALL.iter().find(|(known, _)| *known == name).unwrap();
    show().unwrap().into_iter().map(|shown| format!("{}\n", shown.explanation)).collect()
}

#[test]
fn why_the_kernels_are_what_they_are_is_as_written() {
    expect_file!["golden/mlp_explained.txt"].assert_eq(&explanations("mlp"));
    expect_file!["golden/pre_norm_mlp_explained.txt"].assert_eq(&explanations("pre_norm_mlp"));
    expect_file!["golden/encoder_explained.txt"].assert_eq(&explanations("encoder"));
}

#[test]
fn the_schedule_of_the_classifier_is_as_written() {
    expect_file!["golden/mlp.txt"].assert_eq(&tables("mlp"));
}

#[test]
fn the_schedule_of_the_gated_pre_norm_model_is_as_written() {
    let text = tables("pre_norm_mlp");
    assert!(text.contains("rms_norm") && text.contains("fuse/prologue-a algebra/row-scale"), "{text}");
    expect_file!["golden/pre_norm_mlp.txt"].assert_eq(&text);
}

#[test]
fn the_schedule_of_the_encoder_is_as_written() {
    expect_file!["golden/encoder.txt"].assert_eq(&tables("encoder"));
}
