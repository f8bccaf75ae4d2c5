//! `${NAME}`, `$pagesize`, `$mb_memory`, `$ncpus` and the arithmetic around the latter three.

use crate::source::{MAX_LINE_BYTES, ParseOptions};

/// Text after substitution, and the variables that had no value.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Substituted {
    pub(crate) text: String,
    pub(crate) unset: Vec<String>,
}

/// Replaces variables and keywords in the value of an option. `Err` says what is wrong in a sentence.
pub(crate) fn substitute(value: &str, options: &ParseOptions<'_>) -> Result<Substituted, String> {
    let mut result = variables(value, options);
    let keywords =
        [("$pagesize", options.page_bytes), ("$mb_memory", options.memory_mib), ("$ncpus", options.cpus)];
    let mut calculate = false;
    for (keyword, number) in keywords {
        if result.text.contains(keyword) {
            result.text = result.text.replace(keyword, &number.to_string());
            calculate = true;
        }
    }
    if result.text.len() > MAX_LINE_BYTES {
        return Err(format!(
            "the value is longer than {MAX_LINE_BYTES} bytes once its variables are replaced"
        ));
    }
    if calculate && result.text.contains(['+', '-', '*', '/']) {
        let number = Calculator::new(&result.text).run();
        result.text = number.ok_or_else(|| format!("cannot calculate '{}'", result.text))?.to_string();
    }
    Ok(result)
}

fn variables(value: &str, options: &ParseOptions<'_>) -> Substituted {
    let mut result = Substituted::default();
    let mut rest = value;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        let name = &rest[start + 2..start + length];
        result.text.push_str(&rest[..start]);
        match (options.env)(name) {
            Some(text) => result.text.push_str(&text),
            None => result.unset.push(name.to_owned()),
        }
        rest = &rest[start + length + 1..];
    }
    result.text.push_str(rest);
    result
}

/// Integer arithmetic as bc(1) does it: + - * / and the usual precedence.
struct Calculator<'a> {
    rest: &'a [u8],
}

impl<'a> Calculator<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: text.as_bytes() }
    }

    fn run(mut self) -> Option<i64> {
        let value = self.sum()?;
        self.skip_blanks();
        self.rest.is_empty().then_some(value)
    }

    fn sum(&mut self) -> Option<i64> {
        let mut value = self.product()?;
        loop {
            value = match self.operator(b"+-") {
                Some(b'+') => value.checked_add(self.product()?)?,
                Some(_) => value.checked_sub(self.product()?)?,
                None => return Some(value),
            };
        }
    }

    fn product(&mut self) -> Option<i64> {
        let mut value = self.number()?;
        loop {
            value = match self.operator(b"*/") {
                Some(b'*') => value.checked_mul(self.number()?)?,
                Some(_) => value.checked_div(self.number()?)?,
                None => return Some(value),
            };
        }
    }

    fn number(&mut self) -> Option<i64> {
        self.skip_blanks();
        let end = self.rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    fn operator(&mut self, operators: &[u8]) -> Option<u8> {
        self.skip_blanks();
        let first = *self.rest.first().filter(|byte| operators.contains(byte))?;
        self.rest = &self.rest[1..];
        Some(first)
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> String {
        let env = |name: &str| (name == "SIZE").then(|| "64k".to_owned());
        substitute(value, &ParseOptions { env: &env, ..ParseOptions::default() })
            .map_or_else(|e| e, |s| s.text)
    }

    #[test]
    fn variables_and_keywords() {
        assert_eq!(text("${SIZE}"), "64k");
        assert_eq!(text("a${NONE}b${SIZE}c"), "ab64kc");
        assert_eq!(text("${SIZE"), "${SIZE");
        assert_eq!(text("$pagesize"), "4096");
        assert_eq!(text("2*$pagesize"), "8192");
        assert_eq!(text("$mb_memory/2 + $ncpus*3"), "2060");
        assert_eq!(text("8*1k"), "8*1k");
        assert_eq!(text("$ncpus/0"), "cannot calculate '4/0'");
        assert_eq!(text("9223372036854775807*$ncpus"), "cannot calculate '9223372036854775807*4'");
    }
}
