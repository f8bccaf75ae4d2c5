//! The figures' colours on the page: by name, so that a dark screen can have lighter ones.

use std::fmt::Write as _;

use plotters::style::RGBColor;

use crate::chart::{COLOURS, INK, PAPER, RULE};

/// The lines' colours on a dark ground, in the order of [`COLOURS`].
const ON_DARK: [RGBColor; 8] = [
    RGBColor(0x6c, 0xb6, 0xff),
    RGBColor(0xff, 0x9b, 0x5e),
    RGBColor(0x4f, 0xd1, 0xa5),
    RGBColor(0xe9, 0x96, 0xd2),
    RGBColor(0xb0, 0xac, 0xff),
    RGBColor(0xdf, 0xc2, 0x5c),
    RGBColor(0xff, 0x8a, 0x8f),
    RGBColor(0xa8, 0xc7, 0xd6),
];

/// The definitions, for light and dark.
pub(crate) fn css() -> String {
    let mut text = String::from(":root{");
    variables(&mut text, &COLOURS);
    text.push_str("}@media screen and (prefers-color-scheme:dark){:root{");
    variables(&mut text, &ON_DARK);
    text.push_str("}}\n");
    text
}

fn variables(text: &mut String, colours: &[RGBColor]) {
    for (i, colour) in colours.iter().enumerate() {
        let _ = write!(text, "--line-{i}:{};", hex(colour));
    }
}

/// An SVG figure with its colours by name, and without what the page's own text says already.
pub(crate) fn themed(svg: &str) -> String {
    let mut text = svg.to_owned();
    for (i, colour) in COLOURS.iter().enumerate() {
        text = text.replace(&hex(colour), &format!("var(--line-{i})"));
    }
    for (colour, name) in [(INK, "var(--ink)"), (RULE, "var(--rule)"), (PAPER, "var(--paper)")] {
        text = text.replace(&hex(&colour), name);
    }
    text.replacen("<svg ", "<svg aria-hidden=\"true\" focusable=\"false\" ", 1)
}

/// As the drawing library writes it.
fn hex(RGBColor(r, g, b): &RGBColor) -> String {
    format!("#{r:02X}{g:02X}{b:02X}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_get_names() {
        let svg = format!("<svg width=\"1\"><path stroke=\"{}\"/></svg>", hex(&COLOURS[1]));
        assert_eq!(
            themed(&svg),
            "<svg aria-hidden=\"true\" focusable=\"false\" width=\"1\"><path stroke=\"var(--line-1)\"/></svg>"
        );
    }
}
