//! `cofferdam run` with somebody at the terminal.

use crate::cofferdam;
use crate::runs::{Setup, calls, entry, says};
use crate::seat::Seat;
use cofferdam_tests::run;
use rexpect::process::Signal;
use serde_json::{Value, json};
use std::process::Command;

const ENTER: &str = "\r";
const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";
const CTRL_J: &str = "\n";
const UP: &str = "\u{1b}[A";

/// `cofferdam run`, which keeps what it keeps in the folder of the set-up.
fn command(setup: &Setup, more: &[&str]) -> Command {
    let mut command = cofferdam();
    command.args(["run", "--allow-unpinned", "--config"]).arg(setup.path("cofferdam.toml"));
    command.env("COFFERDAM_STATE_DIR", setup.path("state")).args(more);
    command
}

fn calc(id: &'static str, expression: &str) -> (&'static str, &'static str, Value) {
    (id, "calc", json!({"expressions": [expression]}))
}

/// An answer that comes in pieces, with a pause after each.
fn streams(pieces: &[&str], ms: u64, more: &[(&str, &str, Value)]) -> Value {
    let mut answer = calls(more);
    let text = json!({"type": "text", "text": pieces.concat(), "chunks": pieces});
    answer["content"].as_array_mut().unwrap().insert(0, text);
    let pause = |at| json!({"after_chunk": at, "steps": [{"sleep_ms": ms}]});
    answer["pauses"] = (1..=pieces.len()).map(pause).collect();
    answer["stream"] = json!("deltas");
    answer["stop_reason"] = if more.is_empty() { json!("stop") } else { json!("tool_use") };
    answer
}

/// Where each of these texts is, the first time, in this order.
fn in_order(text: &str, wants: &[&str]) {
    let mut rest = text;
    for want in wants {
        let at = rest.find(want).unwrap_or_else(|| panic!("{want:?} in its place in:\n{text}"));
        rest = &rest[at + want.len()..];
    }
}

#[test]
fn a_long_run_with_steering_and_a_follow_up() {
    let script = json!([
        streams(
            &["I look ", "at it.\n", "And then at ", "that."],
            1_000,
            &[
                calc("c1", "6*7"),
                ("c2", "nap", json!({"ms": 4000})),
                ("c3", "nap", json!({"ms": 60_000}))
            ]
        ),
        says("The sum is ${results.c1.details.results.0.exact}."),
        says("More, as you asked."),
        says("Again."),
    ]);
    let limits = "limits = { wall_ms = 12000 }";
    let setup = Setup::new(&(entry("calc", "") + &entry("unruly", limits)), &script);
    let mut seat = Seat::at(command(&setup, &["Look at it"]), 80, 24);
    seat.sees("› Look at it");
    // The first line is there before the answer is whole.
    seat.waits_for("a partial answer", |screen| {
        screen.contains("at it.") && !screen.contains("that.")
    });
    let working = seat.waits_for("both naps and the sum", |screen| {
        screen.contains("✓ calc") && screen.matches("nap ").count() == 2
    });
    assert!(working.contains("6*7 = 42") && working.contains("running 2 calls"), "{working}");
    seat.types("be brief\r");
    seat.sees("steers next: be brief");
    seat.types("tell me more\t");
    seat.sees("follows up: tell me more");
    seat.types(&format!("half{CTRL_J}a message"));
    let typed = seat.sees("a message");
    in_order(&typed, &["› half\n", "  a message\n", "Enter: steer"]);
    seat.sees("More, as you asked.");
    seat.sees("done after");
    // What is typed in the meantime stays, and is sent when its time has come.
    seat.types(ENTER);
    seat.sees("Again.");
    seat.waits_for("the end of it", |screen| screen.matches("done after").count() == 2);
    seat.types(CTRL_D);
    let left = seat.leaves();
    assert_eq!(left.code, 0, "{}", left.text);
    in_order(
        &left.text,
        &[
            "› Look at it",
            "I look at it.",
            "And then at that.",
            "✓ calc",
            "✓ nap",
            "slept 4000 ms",
            "✗ nap",
            "time-limit",
            "› be brief",
            "The sum is 42.",
            "› tell me more",
            "More, as you asked.",
            "done after",
            "› half\n  a message",
            "Again.",
            "done after",
        ],
    );
    assert!(!left.text.contains("Ctrl-D: leave"), "live rows go at the end: {}", left.text);
    assert!(
        left.raw.ends_with("\u{1b}[0m") && left.raw.contains("\u{1b}[?2004l"),
        "{:?}",
        left.raw
    );
}

#[test]
fn questions_come_one_at_a_time_and_what_was_typed_before_is_no_answer() {
    let config = entry("calc", "") + "[approval]\nask = [\"calc\"]\n";
    let long = format!("1{}", "+1".repeat(900));
    let script = json!([
        streams(&["Well. "], 5_000, &[calc("a", &long), calc("b", "2\u{202e}"), calc("c", "3")]),
        says("a: ${results.a}, b: ${results.b}, c: ${results.c}"),
    ]);
    let setup = Setup::new(&config, &script);
    let mut seat = Seat::at(command(&setup, &["--no-session", "go"]), 60, 20);
    seat.sees("answering");
    // Typed into the wrong window, so to say: it waits where it is.
    seat.types("y");
    seat.sees("› y");
    let first = seat.sees("run it?");
    assert!(
        first.contains("approval needed: calc, call a") && !first.contains("run it? y"),
        "{first}"
    );
    seat.types("yes\r");
    let second = seat.sees("call b");
    assert!(!second.contains("call c, shown"), "{second}");
    seat.types("not by far\r");
    seat.sees("approval needed: calc, call c");
    seat.types(ENTER);
    seat.types("n\r");
    seat.sees("done after");
    seat.sees("› y");
    seat.types("\u{15}");
    seat.types(CTRL_D);
    let left = seat.leaves();
    assert_eq!(left.code, 0, "{}", left.text);
    // Folded behind bars and longer than the screen, and all of it is there above the question.
    let question = left.text.split("┌ approval needed").nth(1).unwrap();
    let shown: String = question.lines().filter_map(|row| row.strip_prefix("│   ")).collect();
    assert!(shown.contains(&long), "{question}");
    in_order(
        &left.text,
        &["call a", "└ yes", "call b", "2\\u{202e}", "└ no: not by far", "call c", "└ no\n"],
    );
    in_order(&left.text, &["901", "b: ", "not by far", "c: ", "done after"]);
}

#[test]
fn an_interrupt_in_the_middle_of_a_batch_aborts_and_the_second_leaves() {
    let naps =
        [("n1", "nap", json!({"ms": 100})), ("n2", "nap", json!({})), ("n3", "spin", json!({}))];
    let setup = Setup::new(
        &entry("unruly", "limits = { wall_ms = 100000, fuel = \"off\" }"),
        &json!([calls(&naps), says("on")]),
    );
    let mut seat = Seat::at(command(&setup, &["go"]), 40, 24);
    seat.sees("slept 100 ms");
    seat.types("one more thing\r");
    seat.sees("steers next: one more thing");
    seat.types(CTRL_C);
    let aborted = seat.sees("aborted after");
    assert_eq!(aborted.matches("· aborted").count(), 2, "{aborted}");
    // What was not delivered is back where it was typed.
    seat.sees("› one more thing");
    assert!(!aborted.contains("steers next"), "{aborted}");
    seat.types(CTRL_C);
    let left = seat.leaves();
    assert_eq!(left.code, 130, "{}", left.text);
    // And it can be had again.
    let mut seat = Seat::at(command(&setup, &["--continue"]), 40, 24);
    seat.sees("aborted");
    seat.types(UP);
    seat.sees("› one more thing");
    seat.types("\u{15}");
    seat.types(CTRL_D);
    assert_eq!(seat.leaves().code, 0);
}

#[test]
fn an_interrupt_closes_the_question() {
    let config = entry("calc", "") + "[approval]\nask = [\"calc\"]\n";
    let setup = Setup::new(&config, &json!([calls(&[calc("a", "1"), calc("b", "2")])]));
    let mut seat = Seat::at(command(&setup, &["--no-session", "go"]), 80, 24);
    seat.sees("run it?");
    seat.types(CTRL_C);
    let screen = seat.sees("aborted after");
    assert!(screen.contains("└ taken back: the call does not run"), "{screen}");
    assert!(!screen.contains("call b of"), "the next one is not asked about: {screen}");
    seat.types(CTRL_D);
    assert_eq!(seat.leaves().code, 130);
}

#[test]
fn the_rows_follow_the_size_of_the_window() {
    let words = "word ".repeat(30);
    let script =
        json!([streams(&[&words, "\nEnd. "], 200, &[("n", "nap", json!({"ms": 100_000}))])]);
    let setup = Setup::new(&entry("unruly", ""), &script);
    let mut seat = Seat::at(command(&setup, &["--no-session", "go"]), 80, 24);
    seat.sees("running a call");
    seat.resizes(30, 24);
    seat.types(&"typed ".repeat(8));
    let narrow = seat.waits_for("two rows of keys", |screen| screen.contains("Enter: steer\n"));
    assert!(narrow.lines().all(|row| row.chars().count() <= 30), "{narrow}");
    assert_eq!(narrow.matches("running a call").count(), 1, "{narrow}");
    seat.resizes(100, 10);
    let wide = seat.sees("typed ".repeat(8).trim_end());
    assert!(wide.contains("Tab: follow up · Ctrl-J: new line · Ctrl-C: abort"), "{wide}");
    assert_eq!(wide.matches("running a call").count(), 1, "{wide}");
    seat.types(CTRL_C);
    seat.sees("aborted after");
    seat.types(CTRL_C);
    assert_eq!(seat.leaves().code, 130);
}

#[test]
fn a_session_goes_on_where_it_stopped_and_so_does_what_was_typed() {
    let first =
        Setup::new(&entry("calc", ""), &json!([calls(&[calc("c", "6*7")]), says("It is 42.")]));
    let mut seat = Seat::at(command(&first, &[]), 80, 24);
    seat.sees("Ctrl-D: leave");
    seat.types("\u{1b}[200~What is\n6*7?\u{1b}[201~");
    seat.sees("  6*7?");
    seat.types(ENTER);
    seat.sees("done after");
    seat.types(CTRL_D);
    assert_eq!(seat.leaves().code, 0);
    std::fs::write(first.path("answers.json"), json!([says("I said so.")]).to_string()).unwrap();
    let mut seat = Seat::at(command(&first, &["--continue"]), 80, 24);
    let recalled = seat.sees("It is 42.");
    in_order(&recalled, &["› What is\n  6*7?", "✓ calc", "6*7 = 42", "It is 42.", "Enter: send"]);
    seat.types(UP);
    seat.sees("› What is\n  6*7?\n");
    seat.types(" Sure?\r");
    seat.sees("I said so.");
    seat.types(CTRL_D);
    assert_eq!(seat.leaves().code, 0);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let history = std::fs::metadata(first.path("state/history.jsonl")).unwrap();
        assert_eq!(history.permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn without_a_session_nothing_that_was_typed_is_kept() {
    let setup = Setup::new("", &json!([says("Hm.")]));
    let mut seat = Seat::at(command(&setup, &["--no-session"]), 80, 24);
    // At once, before anything is there to read it.
    seat.types("a secret\r");
    seat.sees("done after");
    seat.types(&format!("{UP}!"));
    seat.sees("› a secret!");
    seat.types(CTRL_C);
    assert_eq!(seat.leaves().code, 0);
    assert!(!setup.path("state").exists());
}

#[test]
fn the_exit_code_is_that_of_the_last_run() {
    let fails = json!({"content": [], "stop_reason": "error", "error_message": "no such luck"});
    let setup = Setup::new("", &json!([fails, says("Better.")]));
    let mut seat = Seat::at(command(&setup, &["--no-session", "go"]), 80, 24);
    seat.sees("the model failed after");
    seat.types(CTRL_D);
    let left = seat.leaves();
    assert_eq!(left.code, 4, "{}", left.text);
    in_order(&left.text, &["no such luck", "the model failed"]);
    let mut seat = Seat::at(command(&setup, &["--no-session", "go"]), 80, 24);
    seat.sees("the model failed after");
    seat.types("again\r");
    seat.sees("Better.");
    seat.sees("done after");
    seat.types(CTRL_D);
    assert_eq!(seat.leaves().code, 0);
}

/// What a terminal is told, without what it shows.
fn escapes(raw: &str) -> Vec<String> {
    let sequence = |rest: &str| {
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).map_or(rest.len(), |at| at + 1);
        rest[..end].to_owned()
    };
    raw.split('\u{1b}').skip(1).map(sequence).collect()
}

#[test]
fn colours_are_left_out_where_they_are_unwanted() {
    let setup = Setup::new(&entry("calc", ""), &json!([calls(&[calc("c", "1")]), says("Fine.")]));
    for (no_color, coloured) in [(None, true), (Some("1"), false), (Some(""), true)] {
        let mut command = command(&setup, &["--no-session", "go"]);
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        let mut seat = Seat::with_environment(command, 80, 24);
        seat.sees("done after");
        seat.types(CTRL_D);
        let left = seat.leaves();
        let colours =
            escapes(&left.raw).iter().any(|escape| escape.ends_with('m') && escape != "[0m");
        assert_eq!(colours, coloured, "{no_color:?}: {:?}", left.raw);
    }
}

#[test]
fn nothing_that_is_shown_drives_the_terminal() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}]52;c;aGk=\u{7}\u{1b}[31m\u{9b}32m\u{202e}x\u{200b}\u{e0041}\r\u{8}\u{7f}end";
    let config = entry(
        "files",
        "grants.files = [{ host = \".\", guest = \"/workspace\", access = \"read-only\" }]",
    ) + &entry("calc", "")
        + "[approval]\nask = [\"calc\"]\n";
    let script = json!([
        streams(
            &[evil, " and "],
            50,
            &[
                ("r", "read_file", json!({"path": "/workspace/evil", "raw": true})),
                (evil, evil, json!({evil: evil})),
                ("q", "calc", json!({"expressions": [evil]})),
            ]
        ),
        says(&format!("${{results.r}} {evil}")),
    ]);
    let setup = Setup::new(&config, &script);
    std::fs::write(setup.path("evil"), evil).unwrap();
    let mut seat = Seat::at(command(&setup, &["--no-session", &format!("say {evil}")]), 80, 60);
    seat.sees("run it?");
    seat.types(&format!("\u{1b}[200~{evil}\u{1b}[201~{ENTER}"));
    seat.sees("done after");
    seat.types(CTRL_D);
    let left = seat.leaves();
    assert_eq!(left.code, 0, "{}", left.text);
    let ours = ["?2026h", "?2026l", "?25h", "?25l", "?7h", "?7l", "?2004h", "?2004l", "K", "J"];
    for escape in escapes(&left.raw) {
        let known = escape.strip_prefix('[').is_some_and(|rest| {
            let (count, way) = rest.split_at(rest.len().saturating_sub(1));
            let moves = ["A", "C", "m"].contains(&way) && count.bytes().all(|b| b.is_ascii_digit());
            moves || ours.contains(&rest)
        });
        assert!(known, "{escape:?} in {:?}", left.raw);
    }
    let odd =
        |c: &char| !matches!(c, '\r' | '\n' | '\u{1b}') && cofferdam_sandbox::text::is_unseen(*c);
    let found: Vec<char> = left.raw.chars().filter(odd).collect();
    assert!(found.is_empty(), "{found:?} in {:?}", left.raw);
    assert!(left.text.contains("\\u{1b}]0;owned"), "{}", left.text);
}

/// As many calls of an endless loop as there are processors, and two more.
fn spinning() -> Setup {
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    let ids: Vec<String> = (0..processors + 2).map(|at| format!("s{at}")).collect();
    let spins: Vec<_> = ids.iter().map(|id| (id.as_str(), "spin", json!({}))).collect();
    let limits = "limits = { wall_ms = 600000, fuel = \"off\" }";
    Setup::new(&entry("unruly", limits), &json!([calls(&spins), says("never said")]))
}

#[test]
fn an_interrupt_reaches_a_run_whose_guests_keep_all_processors_busy() {
    let setup = spinning();
    let mut seat = Seat::at(command(&setup, &["--no-session", "go"]), 80, 24);
    seat.waits_for("all loops", |screen| screen.contains("running") && screen.contains("calls"));
    seat.signals(Signal::SIGINT);
    let screen = seat.sees("aborted after");
    assert!(!screen.contains("never said"), "{screen}");
    seat.signals(Signal::SIGINT);
    let left = seat.leaves();
    assert_eq!(left.code, 130, "{}", left.text);

    // The same without a terminal, in lines.
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;
    let mut command = command(&setup, &["--no-session", "go"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let loops = std::thread::available_parallelism().map_or(2, usize::from) + 2;
    assert_eq!(lines.by_ref().filter(|line| line.contains("→ spin")).take(loops).count(), loops);
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert_eq!(rest.iter().filter(|line| line.contains("[aborted]")).count(), loops, "{rest:?}");
}

#[test]
fn the_end_of_the_process_leaves_the_terminal_as_it_was() {
    let setup = spinning();
    let mut seat = Seat::at(command(&setup, &["--no-session", "go"]), 80, 24);
    seat.sees("calls");
    seat.signals(Signal::SIGTERM);
    let left = seat.leaves();
    assert_eq!(left.code, 130, "{}", left.text);
    assert!(left.raw.ends_with("\u{1b}[?7h\u{1b}[?25h\u{1b}[?2026l\u{1b}[0m"), "{:?}", left.raw);
}

#[test]
fn a_run_is_stopped_and_gone_on_with_as_any_other_program() {
    let setup = Setup::new("", &json!([says("Back again.")]));
    let run = command(&setup, &["--no-session"]);
    let mut shell = Command::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]).env("PS1", "shell> ");
    shell.envs(run.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let mut seat = Seat::at(shell, 100, 24);
    seat.sees("shell> ");
    let words = std::iter::once(run.get_program()).chain(run.get_args());
    let line: Vec<String> = words.map(|word| format!("'{}'", word.display())).collect();
    seat.types(&format!("{}\r", line.join(" ")));
    seat.sees("Enter: send");
    seat.types("half\u{1a}");
    let stopped = seat.sees("Stopped");
    assert!(!stopped.contains("Enter: send"), "{stopped}");
    seat.types("fg\r");
    seat.sees("› half");
    seat.types("\r");
    seat.sees("Back again.");
    seat.types(CTRL_D);
    seat.waits_for("the shell", |screen| screen.trim_end().ends_with("shell>"));
    seat.types("exit\r");
    assert_eq!(seat.leaves().code, 0);
}

#[test]
fn without_a_terminal_that_can_move_its_cursor_there_are_lines() {
    let setup = Setup::new(&entry("calc", ""), &json!([calls(&[calc("c", "1")]), says("Fine.")]));
    let mut dumb = command(&setup, &["--no-session", "go"]);
    dumb.env("TERM", "dumb");
    let left = Seat::with_environment(dumb, 80, 24).leaves();
    assert_eq!((left.code, left.raw.contains('\u{1b}')), (0, false), "{:?}", left.raw);
    in_order(&left.text, &["user: go", "→ calc c", "✓ calc c", "Fine."]);
    let ran = run(&mut command(&setup, &["--no-session", "go"]));
    assert_eq!((ran.code, ran.out.contains('\u{1b}')), (0, false), "{ran:?}");
    // For scripts the same on a terminal as elsewhere.
    let mut print = command(&setup, &["--no-session", "--print", "go"]);
    print.env("TERM", "xterm");
    let left = Seat::with_environment(print, 80, 24).leaves();
    assert!(left.code == 0 && left.text.trim_end().ends_with("Fine."), "{}", left.text);
    assert!(!left.raw.contains('\u{1b}'), "{:?}", left.raw);
}
