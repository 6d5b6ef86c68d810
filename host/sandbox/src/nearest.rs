//! The word that somebody probably meant.

/// The known word with the smallest edit distance to `word`.
pub(crate) fn nearest(word: &str, known: &[&'static str]) -> &'static str {
    known.iter().copied().min_by_key(|candidate| distance(word, candidate)).unwrap_or_default()
}

/// The nearest of words that are not known when this is compiled; none if there are none.
pub fn nearest_of<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known.iter().copied().min_by_key(|candidate| distance(word, candidate))
}

/// How many single-character edits turn one word into the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (i, a) in one.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.chars().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.chars().count()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn typing_mistakes() {
        let known = ["files", "http", "env", "config"];
        for (word, meant) in
            [("file", "files"), ("https", "http"), ("enviroment", "env"), ("", "env")]
        {
            assert_eq!(nearest(word, &known), meant, "{word}");
        }
    }
}
