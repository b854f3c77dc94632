//! What someone who watches the compiler sees: the texts of the stages that they asked for, and the moment each stage
//! is through. Watching changes no output, and the compiler itself has no clock: whoever is called has one.

use crate::errors::At;
use crate::ir::SpanId;

/// Texts and moments of stages.
#[derive(Default)]
pub struct Watch<'a> {
    wanted: Vec<&'a str>,
    passed: Option<&'a mut dyn FnMut(&'static str)>,
    /// The texts that were asked for.
    pub texts: Vec<String>,
    /// Where the origins of nodes stand.
    pub(crate) places: Vec<At>,
}

impl<'a> Watch<'a> {
    /// Wants the texts of the listed stages: `graph,egraph,schedule,wgsl`.
    pub fn new(wanted: &'a str) -> Watch<'a> {
        Watch { wanted: wanted.split(',').map(str::trim).collect(), ..Watch::default() }
    }

    /// Calls this with the name of each stage that is through.
    pub fn calling(mut self, passed: &'a mut dyn FnMut(&'static str)) -> Watch<'a> {
        self.passed = Some(passed);
        self
    }

    /// A stage is through.
    pub(crate) fn passed(&mut self, stage: &'static str) {
        if let Some(passed) = &mut self.passed {
            passed(stage);
        }
    }

    /// Whether a stage's text is wanted.
    pub(crate) fn wants(&self, stage: &str) -> bool {
        self.wanted.contains(&stage)
    }

    /// File, line and column; of a layer from elsewhere those of its own text.
    pub(crate) fn place(&self, span: SpanId) -> Option<String> {
        let at = self.places.get(span.index())?;
        let span = at.inside.as_ref().map_or(at.span, |inside| inside.span);
        let (file, start) = (span.file(), span.start());
        Some(format!("{file}:{}:{}", start.line, start.column + 1))
    }

    /// A stage's text, made if it is wanted.
    pub(crate) fn show(&mut self, stage: &str, entry: &str, text: impl FnOnce() -> String) {
        if self.wants(stage) {
            self.texts.push(format!("── {stage} of {entry}\n{}", text()));
        }
    }
}
