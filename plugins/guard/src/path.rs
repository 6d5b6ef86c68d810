//! A path as the file system will read it, or why it is not to be trusted.

/// The names of a path below the first root that it begins with, joined by `/`.
///
/// Links are not seen from here; the grants of the tool's own plugin stop those.
pub(crate) fn normal(path: &str, roots: &[String]) -> Result<String, String> {
    let shown = path.escape_debug();
    if let Some(c) = path.chars().find(|c| deceptive(*c)) {
        return Err(format!(
            "`{shown}` has the character U+{:04X}, which can make a path look like another; leave it out.",
            u32::from(c)
        ));
    }
    let below = if path.starts_with('/') {
        let root = roots.iter().find_map(|root| below(path, root));
        root.ok_or_else(|| {
            format!("`{shown}` is not below {}; write a path below it.", roots.join(" or "))
        })?
    } else {
        path
    };
    let mut names = Vec::new();
    for name in below.split('/') {
        match name {
            "" | "." => {}
            ".." if names.pop().is_none() => {
                return Err(format!(
                    "`{shown}` leads out of the directory; write a path below it."
                ));
            }
            ".." => {}
            name => names.push(name),
        }
    }
    if names.is_empty() {
        return Err(format!("`{shown}` names no file."));
    }
    Ok(names.join("/"))
}

fn below<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(root.trim_end_matches('/'))?;
    rest.starts_with('/').then_some(rest)
}

/// Characters that nobody sees, that turn text around, or that look like `/`, `\` or `.`; and the
/// backslash itself, which is a separator on some systems and a letter on others.
fn deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\\' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{feff}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e007f}'
            | '\u{2024}'..='\u{2026}' | '\u{fe52}' | '\u{ff0e}'
            | '\u{2044}' | '\u{2215}' | '\u{2571}' | '\u{29f8}' | '\u{ff0f}'
            | '\u{2216}' | '\u{29f5}' | '\u{29f9}' | '\u{fe68}' | '\u{ff3c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: &str) {
        let roots = ["/workspace".to_owned()];
        assert_eq!(normal(path, &roots).unwrap_or_else(|reason| reason), expected);
    }

    #[test]
    fn plain_paths() {
        check("a/b", "a/b");
        check("./a//b/../c/", "a/c");
        check("/workspace/a", "a");
        check("größe/文.md", "größe/文.md");
    }

    #[test]
    fn ways_out() {
        check("a/../../b", "`a/../../b` leads out of the directory; write a path below it.");
        check(
            "/workspace/../etc",
            "`/workspace/../etc` leads out of the directory; write a path below it.",
        );
        check("/workspaces/a", "`/workspaces/a` is not below /workspace; write a path below it.");
        check("..", "`..` leads out of the directory; write a path below it.");
        check("./", "`./` names no file.");
    }

    #[test]
    fn what_looks_like_something_else() {
        for path in [
            "notes\\..\\x",
            "notes/\u{202e}dm.exe",
            "notes\u{2215}..",
            "a\u{200b}",
            "a\0b",
            "\u{ff0e}\u{ff0e}/a",
        ] {
            assert!(normal(path, &[]).unwrap_err().contains("has the character"), "{path:?}");
        }
    }
}
