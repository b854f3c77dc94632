//! As much of SVG as pictures of schedules need: text that any browser draws, and nothing that has to be loaded.

use std::fmt::Write;

/// Shapes in the order in which they are drawn.
#[derive(Clone, Debug, Default)]
pub(super) struct Svg(pub(super) String);

/// A rectangle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rect {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Svg {
    /// A rectangle that shows `about` where a pointer rests on it. `style` is attributes.
    pub(super) fn rect(&mut self, rect: Rect, style: &str, about: &str) {
        let Rect { x, y, width, height } = rect;
        let about = if about.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(about)) };
        self.line(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" {style}>{about}</rect>"
        ));
    }

    /// A line of text whose left end, or middle, or right end is at `x` by `anchor`: start, middle, end.
    pub(super) fn text(&mut self, [x, y]: [f64; 2], anchor: &str, style: &str, text: &str) {
        self.line(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {style}>{}</text>",
            escaped(text)
        ));
    }

    /// A curve or line.
    pub(super) fn path(&mut self, path: &str, style: &str) {
        self.line(&format!("<path d=\"{path}\" fill=\"none\" {style}/>"));
    }

    /// Another drawing further down.
    pub(super) fn below(&mut self, y: f64, other: &Svg) {
        self.line(&format!("<g transform=\"translate(0 {y:.1})\">"));
        self.0 += &other.0;
        self.line("</g>");
    }

    fn line(&mut self, line: &str) {
        let written = writeln!(self.0, "{line}");
        debug_assert!(written.is_ok(), "writing to a string cannot fail");
    }
}

/// Text as it may stand in elements and attributes; what XML cannot hold becomes a question mark.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\t' | '\n' | '\r' => escaped.push(letter),
            control if control < ' ' || matches!(control, '\u{fffe}' | '\u{ffff}') => escaped.push('?'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_element() {
        assert_eq!(escaped("a<b> & \"c\" 'd' → ∂\u{1}"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39; → ∂?");
        let mut svg = Svg::default();
        svg.text([1.0, 2.0], "start", "", "</text><script>");
        svg.rect(Rect { x: 0.0, y: 1.0, width: 2.0, height: 3.04 }, "fill=\"red\"", "a\nb < c");
        let expected = "<text x=\"1.0\" y=\"2.0\" text-anchor=\"start\" >&lt;/text&gt;&lt;script&gt;</text>\n\
                        <rect x=\"0.0\" y=\"1.0\" width=\"2.0\" height=\"3.0\" fill=\"red\"><title>a\nb &lt; c</title></rect>\n";
        assert_eq!(svg.0, expected);
    }
}
