//! Licence expressions: `MIT OR (Apache-2.0 AND ISC)`, and the older `MIT/Apache-2.0`.
//!
//! An expression is allowed if somebody can choose: one side of an OR, both sides of an AND.
//! AND binds tighter than OR, and WITH belongs to the licence before it.

/// Whether an expression can be fulfilled with allowed licences only. What cannot be read is
/// not allowed.
pub(crate) fn is_allowed(expression: &str, allowed: impl Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, allowed: &allowed };
    reader.any() == Some(true) && reader.words.is_empty()
}

struct Reader<'a> {
    words: &'a [&'a str],
    allowed: &'a dyn Fn(&str) -> bool,
}

impl Reader<'_> {
    fn takes(&mut self, word: &str) -> bool {
        let takes = self.words.first() == Some(&word);
        if takes {
            self.words = &self.words[1..];
        }
        takes
    }

    fn any(&mut self) -> Option<bool> {
        let mut allowed = self.all()?;
        while self.takes("OR") {
            allowed |= self.all()?;
        }
        Some(allowed)
    }

    fn all(&mut self) -> Option<bool> {
        let mut allowed = self.one()?;
        while self.takes("AND") {
            allowed &= self.one()?;
        }
        Some(allowed)
    }

    fn one(&mut self) -> Option<bool> {
        if self.takes("(") {
            let inner = self.any()?;
            return self.takes(")").then_some(inner);
        }
        let (word, rest) = self.words.split_first()?;
        self.words = rest;
        if !self.takes("WITH") {
            return Some((self.allowed)(word));
        }
        let (exception, rest) = self.words.split_first()?;
        self.words = rest;
        Some((self.allowed)(&format!("{word} WITH {exception}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_needs_one_good_side_and_a_sum_needs_both() {
        let allowed = |licence: &str| ["MIT", "ISC", "A WITH E"].contains(&licence);
        for good in
            ["MIT", "GPL OR MIT", "GPL/MIT", "MIT AND ISC", "(GPL OR MIT) AND ISC", "A WITH E"]
        {
            assert!(is_allowed(good, allowed), "{good}");
        }
        for bad in ["", "GPL", "MIT AND GPL", "MIT OR", "(MIT", "MIT)", "A", "A WITH", "MIT ISC"] {
            assert!(!is_allowed(bad, allowed), "{bad}");
        }
    }
}
