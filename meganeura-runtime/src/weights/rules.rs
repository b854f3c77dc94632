//! Exceptions from strictness: names that may be missing or unexpected, and renaming.

/// What may differ between a file and a model, by names in which `*` stands for anything.
#[derive(Default)]
pub struct Rules {
    missing: Vec<String>,
    unexpected: Vec<String>,
    renames: Vec<Rename>,
}

enum Rename {
    Prefix(String, String),
    With(Box<dyn Fn(&str) -> String + Send + Sync>),
}

impl Rules {
    /// The model's tensors that match need not be in the file; they keep their initial values.
    pub fn allow_missing(mut self, pattern: impl Into<String>) -> Self {
        self.missing.push(pattern.into());
        self
    }

    /// The file's tensors that match, after renaming, are ignored if the model does not have them.
    pub fn allow_unexpected(mut self, pattern: impl Into<String>) -> Self {
        self.unexpected.push(pattern.into());
        self
    }

    /// Names in the file that begin with `from` begin with `to` instead.
    pub fn rename(mut self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.renames.push(Rename::Prefix(from.into(), to.into()));
        self
    }

    /// Names in the file are replaced by what the function makes of them.
    pub fn rename_with(mut self, name: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.renames.push(Rename::With(Box::new(name)));
        self
    }

    pub(super) fn may_miss(&self, name: &str) -> bool {
        self.missing.iter().any(|pattern| matches(pattern, name))
    }

    pub(super) fn may_have(&self, name: &str) -> bool {
        self.unexpected.iter().any(|pattern| matches(pattern, name))
    }

    /// The model's name for a name in the file: all renamings in the order in which they were given.
    pub(super) fn renamed(&self, name: &str) -> String {
        self.renames.iter().fold(name.to_string(), |name, rename| match rename {
            Rename::With(function) => function(&name),
            Rename::Prefix(from, to) => match name.strip_prefix(from.as_str()) {
                Some(rest) => format!("{to}{rest}"),
                None => name,
            },
        })
    }
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let renames = self.renames.len();
        write!(f, "Rules {{ missing: {:?}, unexpected: {:?}, renames: {renames} }}", self.missing, self.unexpected)
    }
}

/// Whether a name matches a pattern in which `*` stands for any text.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        // The earliest place leaves the most for what follows.
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, yes, no) in [
            ("a.b", vec!["a.b"], vec!["a.bc", "xa.b", ""]),
            ("*", vec!["", "anything"], vec![]),
            ("*.bias", vec!["fc.bias", ".bias"], vec!["bias", "fc.bias.x"]),
            ("pooler.*", vec!["pooler.", "pooler.x.y"], vec!["pooler", "a.pooler.x"]),
            ("*.lora_*", vec!["x.lora_a", ".lora_"], vec!["lora_a"]),
            ("a*b*a", vec!["aba", "aXbYa", "abba"], vec!["aa", "ab", "aab"]),
            ("aa*aa", vec!["aaaa", "aaXaa"], vec!["aaa"]),
            ("*ab*ab", vec!["abab", "xababab"], vec!["ab"]),
            ("ü*", vec!["übung"], vec!["ubung"]),
        ] {
            for name in yes {
                assert!(matches(pattern, name), "{pattern} {name}");
            }
            for name in no {
                assert!(!matches(pattern, name), "{pattern} {name}");
            }
        }
    }

    #[test]
    fn renamings_apply_in_order() {
        let rules = Rules::default().rename("bert.", "").rename_with(|name| name.replace("gamma", "weight"));
        assert_eq!(rules.renamed("bert.norm.gamma"), "norm.weight");
        assert_eq!(rules.renamed("other.bert.gamma"), "other.bert.weight");
    }
}
