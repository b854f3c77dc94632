//! Shader texts: interning, and filling the gaps of the *.wgsl files.

use std::collections::BTreeMap;

use crate::schedule::TextId;

/// The shader texts of an entry; equal texts are kept once.
#[derive(Clone, Default, Debug)]
pub struct Texts {
    list: Vec<String>,
    known: BTreeMap<String, TextId>,
}

impl Texts {
    /// The text of an id, once more or for the first time.
    pub fn intern(&mut self, text: String) -> TextId {
        if let Some(id) = self.known.get(&text) {
            return *id;
        }
        let id = self.list.len() as TextId;
        self.known.insert(text.clone(), id);
        self.list.push(text);
        id
    }

    /// All texts; an id is an index.
    pub fn list(&self) -> &[String] {
        &self.list
    }
}

/// The template with every `${name}` replaced. A line that holds nothing but gaps takes their lines at its own
/// indentation, and goes if they are empty; lines of comment stay in the file.
pub(super) fn fill(template: &str, gaps: &[(&str, String)]) -> String {
    let mut text = String::new();
    for line in template.lines() {
        let bare = line.trim_start();
        if bare.starts_with("//") || bare.is_empty() {
            continue;
        }
        let indent = &line[..line.len() - bare.len()];
        let mut filled = bare.to_string();
        for (name, value) in gaps {
            filled = filled.replace(&format!("${{{name}}}"), value.trim_end());
        }
        assert!(!filled.contains("${"), "a gap of a template is not filled: {line}");
        for line in filled.lines() {
            text += indent;
            text += line;
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_kept_once() {
        let mut texts = Texts::default();
        let ids = ["a", "b", "a"].map(|text| texts.intern(text.to_string()));
        assert_eq!(ids, [0, 1, 0]);
        assert_eq!(texts.list(), ["a", "b"]);
    }

    #[test]
    fn a_gap_takes_lines_at_its_own_indentation_and_goes_when_empty() {
        let text = fill(
            "// why\n  ${body}\n  ${none}\n  x = ${y};\n",
            &[("body", "a;\nb;\n".into()), ("none", String::new()), ("y", "1".into())],
        );
        assert_eq!(text, "  a;\n  b;\n  x = 1;\n");
    }
}
