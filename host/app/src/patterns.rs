//! Patterns of tool names, such as `write_*`.

use glob::Pattern;
use serde::{Deserialize, Deserializer};

/// A list of patterns; a name matches if one of them does.
#[derive(Debug, Clone, Default)]
pub struct ToolPatterns(Vec<Pattern>);

impl ToolPatterns {
    /// Reads patterns; `Err` says which one is none.
    pub fn parse(patterns: &[String]) -> Result<Self, String> {
        let one = |text: &String| {
            Pattern::new(text).map_err(|problem| {
                format!("`{text}` is no pattern of tool names such as `write_*`: {problem}")
            })
        };
        patterns.iter().map(one).collect::<Result<_, _>>().map(Self)
    }

    /// The pattern that every tool matches.
    pub fn every() -> Self {
        Self(Pattern::new("*").into_iter().collect())
    }

    /// Whether a tool of this name is meant.
    pub fn matches(&self, tool: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(tool))
    }

    /// The patterns that none of these tools matches, save the one for every tool.
    pub fn without_match<'a>(&'a self, tools: &'a [&str]) -> impl Iterator<Item = &'a str> {
        let idle = |pattern: &&Pattern| {
            pattern.as_str() != "*" && !tools.iter().any(|tool| pattern.matches(tool))
        };
        self.0.iter().filter(idle).map(Pattern::as_str)
    }

    /// Whether no tool can be meant.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de> Deserialize<'de> for ToolPatterns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let patterns = Vec::deserialize(deserializer)?;
        Self::parse(&patterns).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::ToolPatterns;

    #[test]
    fn names_match_patterns() {
        let patterns = ToolPatterns::parse(&["write_*".into(), "shell".into()]).unwrap();
        for (tool, matches) in
            [("write_file", true), ("shell", true), ("rewrite_file", false), ("shells", false)]
        {
            assert_eq!(patterns.matches(tool), matches, "{tool}");
        }
        let idle: Vec<&str> = patterns.without_match(&["write_file"]).collect();
        assert_eq!(idle, ["shell"]);
        assert!(ToolPatterns::every().matches("any"));
        assert!(!ToolPatterns::default().matches("any"));
    }
}
