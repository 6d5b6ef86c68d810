//! A mistake in each key of the operator's file: the message names the file, the line, the key, and
//! what to write instead. And what stands above the file, and what of it is shown.

use cofferdam_app::config::{Layers, Origin, effective, list_keys};
use cofferdam_app::{Config, ConfigError};
use cofferdam_sandbox::Limits;
use std::collections::BTreeSet;
use std::path::Path;

/// Every key but the limits, with values that it does not take and what the message says it takes.
/// `…` stands for what is around it in [`Scene`].
const MISTAKES: &[(&str, &[&str], &str)] = &[
    ("model.provider", &["\"opanai\"", "1", "\"\""], "did you mean `openai`?|one of `anthropic`"),
    ("model.script", &["1", "\"\""], "it takes a path"),
    ("model.name", &["\" \"", "1"], "a text that is not empty|a text"),
    ("model.base_url", &["\"localhost:1\"", "7", "\"ftp://x\""], "begins with `http://`|a text"),
    ("model.api_key_env", &["\"A=B\"", "[]"], "the name of an environment variable|a text"),
    ("model.api_key_file", &["3", "\"\""], "it takes a path"),
    ("model.api_key_command", &["\"pass show\"", "[1]"], "a list of texts|a text"),
    (
        "model.headers",
        &["1", "{ \"a b\" = \"x\" }", "{ a = 1 }"],
        "a table of texts|the name of a header|a text",
    ),
    ("model.extra", &["1"], "it takes a table"),
    ("model.max_output_tokens", &["0", "-1", "\"9\"", "99999999999"], "a whole number from 1 to"),
    ("model.thinking", &["\"lo\"", "true"], "did you mean `low`?|one of `off`"),
    ("model.images", &["\"yes\"", "1"], "`true` or `false`"),
    ("model.dialect", &["\"minstral\"", "1"], "did you mean `mistral`?|one of `generic`"),
    (
        "model.timeouts.connect_s",
        &["0", "-1", "1e9", "\"1\"", "nan"],
        "a number of seconds above 0",
    ),
    ("model.timeouts.headers_s", &["0", "86401"], "a number of seconds above 0"),
    ("model.timeouts.idle_s", &["0.0", "true"], "a number of seconds above 0"),
    ("model.retries", &["-1", "1001", "1.5"], "a whole number from 0 to 1000"),
    ("agent.tool_execution", &["\"paralel\"", "1"], "did you mean `parallel`?|one of `parallel`"),
    ("agent.system_prompt", &["1", "[\"a\"]"], "it takes a text"),
    ("agent.coerce_arguments", &["\"true\"", "0"], "`true` or `false`"),
    ("agent.max_turns", &["0", "\"many\"", "5000000000"], "a whole number from 1 to 4294967295"),
    ("agent.max_truncated_answers", &["0", "[]"], "a whole number from 1 to"),
    ("plugins.NAME.name", &["\"\"", "1", "\"a b\""], "1 to 64 letters|a text"),
    ("plugins.NAME.path", &["\"\"", "1"], "it takes a path"),
    ("plugins.NAME.sha256", &["\"abc\"", "1"], "64 hexadecimal digits|a text"),
    ("plugins.NAME.source", &["1"], "it takes a text"),
    ("plugins.NAME.tools", &["\"calc\"", "[1]"], "a list of texts|a text"),
    ("plugins.NAME.prefix", &["\"a b\"", "\"9\"", "1"], "letters, digits, `_` and `-`|a text"),
    ("plugins.NAME.grants.files.N.host", &["1", "\"\""], "it takes a path"),
    (
        "plugins.NAME.grants.files.N.guest",
        &["\"data\"", "\"/a/../b\"", "1"],
        "an absolute path|a text",
    ),
    (
        "plugins.NAME.grants.files.N.access",
        &["\"write\"", "1"],
        "did you mean `read-write`?|one of",
    ),
    (
        "plugins.NAME.grants.http",
        &["\"GET https://a.com/\"", "[1]", "[\"https://a.com\"]"],
        "a list of texts|METHODS SCHEME|a text",
    ),
    (
        "plugins.NAME.grants.env",
        &["\"LANG\"", "[\"API_TOKEN\"]", "[\"\"]"],
        "a list of texts|looks like a credential|the name of an environment",
    ),
    ("plugins.NAME.grants.config", &["1", "\"x\""], "it takes a table"),
    (
        "plugins.NAME.grants.kv",
        &["0", "\"lots\"", "2000000"],
        "a whole number from 1 to 1048576, or `on`, or `off`",
    ),
    (
        "plugins.NAME.grants.secrets.N.env",
        &["1", "\"\""],
        "the name of an environment variable|a text",
    ),
    ("plugins.NAME.grants.secrets.N.header", &["\"a b\"", "1"], "the name of a header|a text"),
    (
        "plugins.NAME.grants.secrets.N.format",
        &["\"Bearer\"", "1"],
        "`{}` where the secret goes|a text",
    ),
    (
        "plugins.NAME.grants.secrets.N.for",
        &["\"http://a.com\"", "\"a.com\"", "1"],
        "`https://HOST`|a text",
    ),
    ("hooks.N.plugin", &["\"clac\"", "1"], "did you mean `calc`?|a text"),
    (
        "hooks.N.on",
        &["\"before\"", "[\"befor\"]", "[]"],
        "a list, each one of|did you mean `before`?|say `on = [\"before\"]`",
    ),
    ("hooks.N.tools", &["\"a\"", "[\"a[\"]"], "a list of texts|patterns of tool names"),
    ("hooks.N.before_failure", &["\"blok\"", "1"], "did you mean `block`?|one of `block`"),
    ("hooks.N.after_failure", &["\"keeep\"", "1"], "did you mean `keep`?|one of `error`"),
    ("hooks.N.rewrites", &["\"trust\"", "1"], "did you mean `trusted`?|one of `trusted`"),
    ("approval.ask", &["\"shell\"", "[\"a[\"]"], "a list of texts|patterns of tool names"),
    ("approval.timeout_seconds", &["0", "86401", "\"60\""], "a whole number from 1 to 86400"),
    ("session.record", &["\"no\""], "`true` or `false`"),
    ("session.dir", &["1", "\"\""], "it takes a path"),
    ("session.keep_results", &["1"], "`true` or `false`"),
    ("sandbox.slots", &["0", "10001", "\"9\""], "a whole number from 1 to 10000"),
    ("sandbox.workers", &["-1", "1025"], "a whole number from 0 to 1024"),
    ("sandbox.memory_total_mib", &["0", "1.5"], "a whole number from 1 to"),
    ("sandbox.stack_kib", &["63", "8193"], "a whole number from 64 to 8192"),
    ("sandbox.file_operations", &["0", "4097"], "a whole number from 1 to 4096"),
    (
        "sandbox.allocation",
        &["\"pool\"", "1"],
        "did you mean `pooled|one of `auto`|did you mean `auto`",
    ),
    ("sandbox.state_dir", &["1", "\"\""], "it takes a path"),
    ("sandbox.spill_dir", &["true"], "it takes a path"),
    ("sandbox.spill_total_mib", &["0"], "a whole number from 1 to 1048576"),
    ("sandbox.cache_dir", &["1"], "it takes a path"),
    ("sandbox.cache_mib", &["0"], "a whole number from 1 to"),
];

/// A file in which one line can be wrong: the line of a key stands alone, and the others make the
/// rest of the file right.
struct Scene {
    /// What stands before the line.
    before: &'static str,
    /// Keys that the table needs, with what they would be.
    needed: &'static [(&'static str, &'static str)],
    /// What stands after the line.
    after: &'static str,
}

fn scene(key: &str) -> Scene {
    const PLUGIN: &[(&str, &str)] = &[("name", "\"calc\""), ("path", "\"calc.wasm\"")];
    let scene = |before, needed, after| Scene { before, needed, after };
    match key {
        "model.script" => scene("[model]\nprovider = \"scripted\"\n", &[("script", "\"a\"")], ""),
        _ if key.starts_with("model.timeouts") => {
            scene("[model]\nprovider = \"gemini\"\nname = \"m\"\n[model.timeouts]\n", &[], "")
        }
        _ if key.starts_with("model.") => scene(
            "[model]\n",
            &[
                ("provider", "\"openai-compatible\""),
                ("name", "\"m\""),
                ("base_url", "\"http://127.0.0.1:1\""),
            ],
            "",
        ),
        _ if key.contains("grants.files") => scene(
            "[[plugins]]\nname = \"calc\"\npath = \"a\"\n[[plugins.grants.files]]\n",
            &[("host", "\"a\""), ("guest", "\"/a\"")],
            "",
        ),
        _ if key.contains("grants.secrets") => scene(
            "[[plugins]]\nname = \"calc\"\npath = \"a\"\n[[plugins.grants.secrets]]\n",
            &[("env", "\"A\""), ("header", "\"h\""), ("for", "\"https://a.com\"")],
            "",
        ),
        _ if key.contains("grants.") => {
            scene("[[plugins]]\nname = \"calc\"\npath = \"a\"\n[plugins.grants]\n", &[], "")
        }
        _ if key.contains("limits.") => {
            scene("[[plugins]]\nname = \"calc\"\npath = \"a\"\n[plugins.limits]\n", &[], "")
        }
        _ if key.starts_with("plugins.") => scene("[[plugins]]\n", PLUGIN, ""),
        _ if key.starts_with("hooks.") => scene(
            "[[hooks]]\n",
            &[("plugin", "\"calc\""), ("on", "[\"before\"]")],
            "[[plugins]]\nname = \"calc\"\npath = \"a\"\n",
        ),
        _ if key.starts_with("agent.") => scene("[agent]\n", &[], ""),
        _ if key.starts_with("approval.") => scene("[approval]\n", &[], ""),
        _ if key.starts_with("session.") => scene("[session]\n", &[], ""),
        _ if key.starts_with("sandbox.") => scene("[sandbox]\n", &[], ""),
        _ => panic!("{key} has no scene"),
    }
}

impl Scene {
    /// The file with this line in it, and the number of the line. Without a line it is right.
    fn with(&self, name: &str, line: Option<&str>) -> (String, usize) {
        let needed = self.needed.iter().filter(|(needed, _)| line.is_none() || *needed != name);
        let needed: String = needed.map(|(name, value)| format!("{name} = {value}\n")).collect();
        let before = format!("# An operator's file.\n{}{needed}", self.before);
        let number = before.lines().count() + 1;
        (format!("{before}{}\n{}", line.unwrap_or_default(), self.after), number)
    }
}

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("conf/cofferdam.toml"))
}

/// That this file is refused there, with these words in one message.
fn refused(text: &str, line: usize, words: &[&str]) {
    let problem = parse(text).expect_err(text).to_string();
    let place = format!("conf/cofferdam.toml:{line}: ");
    let told = problem.lines().filter(|told| told.starts_with(&place));
    let fits = told
        .into_iter()
        .any(|told| words.iter().all(|either| either.split('|').any(|word| told.contains(word))));
    assert!(fits, "{text}\nshould say {words:?} at line {line}:\n{problem}");
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

#[test]
fn a_wrong_value_of_each_key_is_told_with_its_line_and_what_it_takes() {
    let documented: BTreeSet<String> = list_keys().into_iter().map(|[_, key, ..]| key).collect();
    let mut tried = BTreeSet::new();
    for (key, values, takes) in MISTAKES {
        let (fine, _) = scene(key).with(last(key), None);
        parse(&fine).unwrap_or_else(|problem| panic!("the scene of {key}: {problem}\n{fine}"));
        for value in *values {
            let (text, line) =
                scene(key).with(last(key), Some(&format!("{} = {value}", last(key))));
            refused(&text, line, &[&format!("{}`|{}.", last(key), last(key)), takes]);
        }
        tried.insert((*key).to_owned());
    }
    for row in Limits::default().rows() {
        let key = format!("plugins.NAME.limits.{}", row.key);
        let takes = format!("it takes a whole number from {} to {}", row.least, row.most);
        let above = (row.most + 1).to_string();
        for value in ["-1", &above, "\"much\"", "1.5", "[]"] {
            let (text, line) = scene(&key).with(row.key, Some(&format!("{} = {value}", row.key)));
            refused(&text, line, &[&format!("`plugins.calc.limits.{}`", row.key), &takes]);
        }
        tried.insert(key);
    }
    assert_eq!(
        tried, documented,
        "each documented key has a mistake here, and the other way round"
    );
}

#[test]
fn a_misspelt_key_is_told_with_its_line_and_the_right_one() {
    for [_, key, ..] in list_keys() {
        let name = last(&key);
        let (text, line) = scene(&key).with("", Some(&format!("{name}x = 1")));
        refused(&text, line, &[&format!("{name}x` is no key"), &format!("did you mean `{name}`?")]);
    }
    for (text, line, words) in [
        ("\n[modle]\nprovider = \"gemini\"", 2, "did you mean `model`?"),
        ("[agent]\nask = [\"x\"]", 2, "it is one of [approval]"),
        ("[plugins]\nname = \"a\"", 1, "[[plugins]]"),
        ("[[agent]]\nmax_turns = 1", 1, "write it as [agent]"),
        ("plugins = 1", 1, "[[plugins]]"),
        ("[[plugins]]\nname = \"a\"\npath = \"a\"\ngrants.files = 1", 4, "grants.files = [{ … }]"),
    ] {
        refused(text, line, &[words]);
    }
}

#[test]
fn a_missing_key_is_told_with_the_line_of_its_table_and_what_to_add() {
    for (text, line, words) in [
        (
            "\n[[plugins]]\nname = \"a\"",
            2,
            "`plugins.a.path` is missing: add `path = \"plugins/calc.wasm\"`",
        ),
        ("[model]\nname = \"m\"", 1, "`model.provider` is missing"),
        ("[model]\nprovider = \"gemini\"", 1, "`model.name` is missing: add `name = "),
        ("[model]\nprovider = \"scripted\"", 1, "`model.script` is missing"),
        (
            "[[hooks]]\nplugin = \"a\"\n[[plugins]]\nname = \"a\"\npath = \"a\"",
            1,
            "`hooks.0.on` is missing",
        ),
    ] {
        refused(text, line, &[words]);
    }
}

#[test]
fn keys_that_do_not_go_together_are_told() {
    const PLUGIN: &str = "[[plugins]]\nname = \"a\"\npath = \"a\"\n";
    for (text, line, words) in [
        ("[model]\nprovider = \"scripted\"\nscript = \"a\"\nname = \"m\"".to_owned(), 4, "does not go with `provider = \"scripted\"`"),
        ("[model]\nprovider = \"openai\"\nname = \"m\"\ndialect = \"groq\"".into(), 4, "choose `openai-compatible`"),
        ("[model]\nprovider = \"gemini\"\nname = \"m\"\napi_key_env = \"A\"\napi_key_file = \"b\"".into(), 5, "keep one of"),
        ("[model]\nprovider = \"gemini\"\nname = \"m\"\napi_key_command = []".into(), 4, "the command is empty"),
        ("[model]\nprovider = \"openai-compatible\"\nname = \"m\"".into(), 2, "say where the server is"),
        (format!("{PLUGIN}{PLUGIN}"), 5, "two plugins are named `a`"),
        (format!("{PLUGIN}[[hooks]]\nplugin = \"g\"\non = [\"before\"]"), 5, "no [[plugins]] has `name = \"g\"`"),
        (
            format!("[model]\nprovider = \"openai\"\nname = \"m\"\napi_key_env = \"MODEL_LOGIN\"\n{PLUGIN}grants.env = [\"LANG\", \"MODEL_LOGIN\"]"),
            8,
            "take it out of `grants.env`",
        ),
        (
            format!("{PLUGIN}[plugins.grants]\nenv = [\"WHO\"]\nsecrets = [{{ env = \"WHO\", header = \"x\", for = \"https://a.com\" }}]"),
            4,
            "holds a secret of `secrets`",
        ),
        ("[agent]\nmax_turns = ".into(), 2, "this is no TOML"),
    ] {
        refused(&text, line, &[words]);
    }
}

#[test]
fn all_mistakes_are_told_at_once_and_no_credential_with_them() {
    let text = "[model]\nprovider = \"gemini\"\nname = 1\nheaders = { authorization = [\"s3cret\"], \"x y\" = \"s3cret\" }\n\
                api_key_command = \"echo s3cret\"\n[agnt]\n";
    let problem = parse(text).expect_err("mistakes").to_string();
    assert_eq!(problem.lines().count(), 5, "{problem}");
    assert!(!problem.contains("s3cret"), "{problem}");
    for broken in
        ["headers = { a = \"s3cret", "api_key = \"s3cret\"", "[model]\nheaders = \"s3cret\""]
    {
        let problem = parse(broken).expect_err(broken).to_string();
        assert!(!problem.contains("s3cret"), "{problem}");
    }
}

const FILE: &str = "[agent]\nmax_turns = 7\n[[plugins]]\nname = \"my-calc\"\npath = \"calc.wasm\"\n\
    limits = { wall_ms = 1000 }\n[[hooks]]\nplugin = \"my-calc\"\non = [\"before\"]\n";

fn layered(environment: &[(&str, &str)], flags: &[&str]) -> Result<Config, String> {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let layers = Layers {
        environment: environment.iter().map(pair).collect(),
        flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
    };
    Config::layered(FILE, Path::new("conf/cofferdam.toml"), &layers)
        .map_err(|problem| problem.to_string())
}

#[test]
fn the_environment_stands_above_the_file_and_the_command_line_above_both() {
    let turns = |environment: &[(&str, &str)], flags: &[&str]| {
        layered(environment, flags).expect("layers").agent.max_turns
    };
    let variable = [("COFFERDAM_AGENT_MAX_TURNS", "8")];
    assert_eq!(turns(&[], &[]), Some(7));
    assert_eq!(turns(&variable, &[]), Some(8));
    assert_eq!(turns(&variable, &["agent.max_turns=9"]), Some(9));
    assert_eq!(turns(&[], &["agent.max_turns=9", "agent.max_turns=10"]), Some(10));
    // What belongs to no section is somebody else's.
    assert_eq!(turns(&[("COFFERDAM_STATE_DIR", "x"), ("PATH", "y")], &[]), Some(7));
}

#[test]
fn both_reach_every_kind_of_key() {
    let config = layered(
        &[
            ("COFFERDAM_PLUGINS_MY_CALC_LIMITS_WALL_MS", "2000"),
            ("COFFERDAM_PLUGINS_MY_CALC_LIMITS_FUEL", "off"),
            ("COFFERDAM_APPROVAL_ASK", "write_*"),
            ("COFFERDAM_HOOKS_0_TOOLS", "[\"a\", \"b\"]"),
            ("COFFERDAM_SANDBOX_STATE_DIR", "kept"),
            (
                "COFFERDAM_MODEL",
                "{ provider = \"openai-compatible\", name = \"m\", base_url = \"http://a\" }",
            ),
        ],
        &[
            "model.headers.x-team=infra",
            "model.timeouts.idle_s=0.5",
            "plugins.my-calc.grants.config.allow=src/**",
            "plugins.my-calc.grants.files=[{ host = \"work\", guest = \"/w\" }]",
            "agent.system_prompt=Be brief = good.",
            "session.record=false",
        ],
    )
    .expect("layers");
    let here = std::env::current_dir().expect("a folder");
    let plugin = &config.plugins[0];
    assert_eq!((plugin.limits.wall_ms, plugin.limits.fuel), (2000, None));
    assert_eq!(plugin.grants.config["allow"], "src/**");
    assert_eq!(plugin.grants.files[0].host, here.join("work"));
    assert_eq!(plugin.path, Path::new("conf/calc.wasm"));
    assert!(config.approval.ask.matches("write_file") && !config.approval.ask.matches("shell"));
    assert!(config.hooks[0].tools.matches("b") && !config.hooks[0].tools.matches("c"));
    assert_eq!(config.sandbox.state_dir, Some(here.join("kept")));
    let model = config.model.as_ref().and_then(|model| model.remote()).expect("a model");
    assert_eq!(model.headers["x-team"].0, "infra");
    assert_eq!(model.timeouts.idle_s, Some(std::time::Duration::from_millis(500)));
    assert_eq!(config.agent.system_prompt, "Be brief = good.");
    assert!(!config.session.record);
}

#[test]
fn their_mistakes_name_the_variable_or_the_flag() {
    for (environment, flags, words) in [
        (
            &[("COFFERDAM_AGENT_MAX_TURN", "1")][..],
            &[][..],
            "COFFERDAM_AGENT_MAX_TURN: no key has this variable: did you mean `COFFERDAM_AGENT_MAX_TURNS`?",
        ),
        (
            &[("COFFERDAM_AGENT_MAX_TURNS", "many")],
            &[],
            "COFFERDAM_AGENT_MAX_TURNS: `agent.max_turns` cannot be \"many\"",
        ),
        (
            &[("COFFERDAM_MODEL_HEADERS", "{ a = ")],
            &[],
            "COFFERDAM_MODEL_HEADERS: `model.headers` is not written as TOML",
        ),
        (
            &[],
            &["agent.max_turn=1"],
            "--set agent.max_turn: `agent.max_turn` is no key of this file: did you mean `agent.max_turns`?",
        ),
        (&[], &["plugins.clac.prefix=x"], "did you mean `plugins.my-calc.prefix`?"),
        (
            &[],
            &["plugins.my-calc.limits.wall_ms=0"],
            "--set plugins.my-calc.limits.wall_ms: `plugins.my-calc.limits.wall_ms` cannot be 0",
        ),
        (&[], &["agent.max_turns"], "it takes KEY=VALUE"),
        (&[], &["agent.coerce_arguments=maybe"], "`true` or `false`"),
    ] {
        let problem = layered(environment, flags).expect_err(words);
        assert!(problem.contains(words), "{words}\n{problem}");
    }
}

#[test]
fn what_is_in_force_is_shown_with_its_origin_and_without_credentials() {
    let layers = Layers {
        environment: vec![("COFFERDAM_AGENT_SYSTEM_PROMPT".into(), "Be brief.".into())],
        flags: vec!["model.headers.x-org=s3cret".into(), "session.record=false".into()],
    };
    let text = format!(
        "[model]\nprovider = \"gemini\"\nname = \"m\"\napi_key_command = [\"echo\", \"s3cret\"]\n\
         extra = {{ deep = {{ api_key = \"s3cret\" }} }}\n{FILE}"
    );
    let text = text
        .replace("[[hooks]]", "grants.config = { token = \"s3cret\", allow = \"a\" }\n[[hooks]]");
    let config = Config::layered(&text, Path::new("c.toml"), &layers).expect("good");
    let rows = effective(Some(&config));
    let row = |key: &str| rows.iter().find(|row| row.key == key).unwrap_or_else(|| panic!("{key}"));
    for (key, shown, place) in [
        ("model.provider", "\"gemini\"", "c.toml:2"),
        ("model.headers.x-org", "(…, not shown)", "--set model.headers.x-org"),
        ("model.api_key_command", "(…, not shown)", "c.toml:4"),
        ("model.retries", "3", "default"),
        ("agent.max_turns", "7", "c.toml:7"),
        ("agent.system_prompt", "\"Be brief.\"", "COFFERDAM_AGENT_SYSTEM_PROMPT"),
        ("session.record", "false", "--set session.record"),
        ("plugins.my-calc.limits.wall_ms", "1000", "c.toml:11"),
        ("plugins.my-calc.limits.queue_ms", "60000", "default"),
        ("plugins.my-calc.grants.config.allow", "\"a\"", "c.toml:12"),
        ("plugins.my-calc.grants.config.token", "(…, not shown)", "c.toml:12"),
        ("hooks.0.on", "[\"before\"]", "c.toml:15"),
        ("sandbox.slots", "64", "default"),
    ] {
        assert_eq!((row(key).shown(), &*row(key).place), (shown.into(), place), "{key}");
    }
    for row in &rows {
        assert!(!row.to_json().to_string().contains("s3cret"), "{row:?}");
        assert!(!row.shown().contains("s3cret"), "{row:?}");
    }
    assert_eq!(row("agent.max_turns").origin, Origin::Line(7));
    assert!(!rows.iter().any(|row| row.key == "model.script"), "of another provider");
}

/// The values that are documented as in force without a configuration are those of the types.
#[test]
fn documented_defaults_are_the_values_without_a_file() {
    let bare = "[model]\nprovider = \"gemini\"\nname = \"m\"\n[[plugins]]\nname = \"a\"\npath = \"a\"\n\
                [[hooks]]\nplugin = \"a\"\non = [\"after\"]\n";
    let config = parse(bare).expect("good");
    let set = effective(Some(&config)).into_iter().filter(|row| row.origin == Origin::Default);
    // Folders of this machine are no values of the file.
    let set = set.filter(|row| row.words.is_none() && row.value.is_some());
    let flags: Vec<String> = set
        .map(|row| {
            let value = row.value.expect("filtered");
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{}={text}", row.key)
        })
        .collect();
    assert!(flags.len() > 50, "{flags:#?}");
    let layers = Layers { environment: Vec::new(), flags };
    let again = Config::layered(bare, Path::new("conf/cofferdam.toml"), &layers).expect("defaults");
    let shown = |config: &Config| {
        let Config { agent, plugins, hooks, approval, session, .. } = config.clone();
        // What nobody sets stays unset, and takes the same value later.
        let agent = (agent.tool_execution, agent.system_prompt, agent.coerce_arguments);
        format!("{agent:?}{plugins:?}{hooks:?}{approval:?}{session:?}")
    };
    assert_eq!(shown(&config), shown(&again));
}
