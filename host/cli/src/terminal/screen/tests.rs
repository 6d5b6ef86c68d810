//! Events and keys in, rows out.

use super::*;
use crate::render::Paint;
use cofferdam_agent::event::{CallEnd, CallEvent};
use cofferdam_agent::hook::Question;
use cofferdam_agent::message::{Arguments, Content};
use cofferdam_agent::tool::{Call, ToolResult};

fn screen(columns: usize, rows: usize) -> Screen {
    let mut screen = Screen::new(Theme::new(Paint::Plain), History::forgetful());
    screen.resize(columns, rows);
    screen
}

fn lines(rows: Vec<Line<'static>>) -> Vec<String> {
    rows.iter().map(|row| row.to_string().trim_end().to_owned()).collect()
}

fn live(screen: &Screen) -> Vec<String> {
    lines(screen.frame().rows)
}

fn done(screen: &mut Screen) -> Vec<String> {
    lines(screen.take_done())
}

fn press(screen: &mut Screen, code: KeyCode) -> Option<Intent> {
    screen.key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn control(screen: &mut Screen, c: char) -> Option<Intent> {
    screen.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL))
}

fn types(screen: &mut Screen, text: &str) {
    for c in text.chars() {
        assert_eq!(press(screen, KeyCode::Char(c)), None);
    }
}

fn starts(screen: &mut Screen, id: &str, arguments: &Arguments) {
    screen.event(&Event::ToolExecutionStart { call: CallEvent { id, name: "read", arguments } });
}

fn ends(screen: &mut Screen, id: &str, text: &str) {
    let end = CallEnd {
        result: ToolResult { content: vec![Content::Text(text.into())], ..ToolResult::default() },
        is_error: false,
        ended_by: None,
        duration: Duration::from_millis(12),
        receipt: None,
        hooks: Vec::new(),
    };
    let call = CallEvent { id, name: "read", arguments: &Arguments::default() };
    screen.event(&Event::ToolExecutionEnd { call, end: &end });
}

#[test]
fn keys_mean_what_the_moment_makes_of_them() {
    let mut screen = screen(80, 24);
    assert_eq!(press(&mut screen, KeyCode::Enter), None, "there is nothing to send");
    types(&mut screen, "go");
    assert_eq!(press(&mut screen, KeyCode::Tab), None, "there is nothing to follow");
    assert_eq!(press(&mut screen, KeyCode::Enter), Some(Intent::Prompt("go".into())));
    screen.begins();
    assert_eq!(control(&mut screen, 'd'), None, "nobody leaves a run by mistake");
    types(&mut screen, "left");
    control(&mut screen, 'j');
    types(&mut screen, "a bit");
    assert_eq!(press(&mut screen, KeyCode::Enter), Some(Intent::Steer("left\na bit".into())));
    types(&mut screen, "then");
    assert_eq!(press(&mut screen, KeyCode::Tab), Some(Intent::FollowUp("then".into())));
    assert_eq!(control(&mut screen, 'c'), Some(Intent::Abort));
    screen.aborts();
    assert_eq!(control(&mut screen, 'c'), Some(Intent::Leave));
    screen.ends("aborted", false);
    types(&mut screen, "draft");
    assert_eq!(control(&mut screen, 'd'), None, "there is something typed");
    assert_eq!(control(&mut screen, 'c'), Some(Intent::Leave));
    press(&mut screen, KeyCode::Up);
    assert!(live(&screen)[0].contains("draft"), "what was typed is not lost: {:?}", live(&screen));
}

#[test]
fn calls_show_their_progress_where_there_is_room_and_their_number_where_there_is_not() {
    let arguments = Arguments::default();
    let mut screen = screen(40, 24);
    screen.begins();
    for id in ["a", "b", "c"] {
        starts(&mut screen, id, &arguments);
    }
    let call = CallEvent { id: "b", name: "read", arguments: &arguments };
    screen.event(&Event::ToolExecutionUpdate {
        call,
        partial: &ToolResult::text("half\nway\x1b[2J"),
    });
    screen.at(Duration::from_millis(1_500));
    assert_eq!(
        live(&screen),
        [
            "  ⠴ read 1.5 s {}",
            "  ⠴ read 1.5 s {}",
            "    · half\\nway\\u{1b}[2J",
            "  ⠴ read 1.5 s {}",
            "",
            "⠴ running 3 calls · 1.5 s",
            "›",
            "  Enter: steer · Tab: follow up",
            "  Ctrl-J: new line · Ctrl-C: abort"
        ]
    );
    screen.resize(40, 9);
    assert_eq!(live(&screen)[..2], ["  ⠴ read 1.5 s {}", "    … and 2 more calls"]);
    screen.queue(vec![(QueueKind::FollowUp, "later".into()); 5]);
    for rows in 1..24 {
        screen.resize(12, rows);
        let frame = screen.frame();
        assert!(frame.rows.len() < rows.max(3), "{rows}: {:?}", lines(frame.rows));
        assert!(frame.cursor.0 < frame.rows.len());
    }
    screen.queue(Vec::new());
    screen.resize(40, 24);
    ends(&mut screen, "b", "1\n2\n3\n4\n5\n6\n7\n8");
    let ended = done(&mut screen);
    assert_eq!(ended[..2], ["  ✓ read {}", "      b · 12.0 ms"]);
    assert_eq!(ended[2..].len(), 7, "{ended:?}");
    assert_eq!(ended.last().map(String::as_str), Some("      … 2 more lines"));
}

#[test]
fn nothing_comes_between_a_question_and_its_answer() {
    let mut screen = screen(80, 24);
    screen.begins();
    types(&mut screen, "y");
    starts(&mut screen, "a", &Arguments::default());
    let question = Question { title: "Sure?".into(), message: String::new() };
    let call = Call { id: "q".into(), name: "write".into(), arguments: Arguments::default() };
    screen.ask(&Approval { hook: "guard", question: &question, plugin: "files", call: &call });
    let asked = done(&mut screen);
    assert_eq!(asked[1], "┌ approval needed: write of the plugin files, call q");
    let last = live(&screen);
    assert!(last.contains(&"run it?".to_owned()), "what was typed is no answer: {last:?}");
    ends(&mut screen, "a", "read");
    assert_eq!(done(&mut screen), [""; 0]);
    assert_eq!(press(&mut screen, KeyCode::Enter), None, "nothing is no answer");
    types(&mut screen, "why?");
    let declined = Decision::Declined { reason: Some("why?".into()) };
    assert_eq!(press(&mut screen, KeyCode::Enter), Some(Intent::Answer(declined.clone())));
    screen.asked(&decided(&declined));
    assert_eq!(done(&mut screen)[..2], ["└ no: why?", "  ✓ read {}"]);
    assert!(live(&screen).contains(&"› y".to_owned()), "and it is back: {:?}", live(&screen));
}

#[test]
fn what_waits_is_shown_and_comes_back_if_it_was_not_delivered() {
    let mut screen = screen(30, 24);
    screen.begins();
    let queued: Vec<_> = (1..=6).map(|n| (QueueKind::Steering, format!("message {n}"))).collect();
    screen.queue(queued);
    let shown = live(&screen);
    assert_eq!(
        shown[1..5],
        [
            "  steers next: message 1",
            "  steers next: message 2",
            "  steers next: message 3",
            "  … and 3 more queued"
        ]
    );
    screen.queue(Vec::new());
    screen.at(Duration::from_secs(100));
    screen.ends("the run was ended after 2 turns, its limit,", true);
    screen.give_back(&["one".into(), "two".into()]);
    assert_eq!(live(&screen)[..2], ["› one", "  two"]);
    assert_eq!(
        done(&mut screen),
        ["", "  the run was ended after 2", "  turns, its limit, after 1", "  min 40 s", ""]
    );
}

#[test]
fn the_end_of_an_old_session_is_shown_again() {
    let mut screen = screen(60, 24);
    let messages: Vec<Arc<Message>> =
        (0..20).map(|n| Arc::new(Message::from(format!("question {n}\x1b[2J")))).collect();
    screen.recall(&messages);
    let shown = done(&mut screen);
    assert_eq!(shown[0], "  … 8 earlier messages: cofferdam session show has them");
    assert_eq!(shown[2], "› question 8\\u{1b}[2J");
    assert_eq!(shown.iter().filter(|row| row.contains("question")).count(), RECALLED);
}

#[test]
fn whatever_happens_the_rows_fit_and_nothing_is_live_in_them() {
    const EVIL: &str = "\u{1b}[2J日本\u{9b}31m\u{202e}\r\n\t words of it\u{200b}\u{7}";
    let mut seed = 11_u32;
    let mut chance = |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 16) % below
    };
    let arguments = serde_json::json!({EVIL: EVIL}).as_object().cloned().unwrap_or_default();
    let arguments = Arguments::new(arguments);
    let call = Call { id: EVIL.into(), name: EVIL.into(), arguments: arguments.clone() };
    let question = Question { title: EVIL.into(), message: EVIL.into() };
    let mut screen = screen(80, 24);
    let mut height = 24;
    for step in 0..5_000 {
        screen.at(Duration::from_millis(step * 37));
        match chance(16) {
            0 => {
                height = 1 + usize::try_from(chance(40)).expect("few");
                screen.resize(21 + usize::try_from(chance(100)).expect("few"), height);
            }
            1 => screen.begins(),
            2 => screen.ends(EVIL, chance(2) == 0),
            3 => screen.paste(EVIL),
            4 if screen.question.is_none() => {
                let approval =
                    Approval { hook: EVIL, question: &question, plugin: EVIL, call: &call };
                screen.ask(&approval);
            }
            5 => screen.asked(EVIL),
            6 => starts(&mut screen, EVIL, &arguments),
            7 => ends(&mut screen, EVIL, EVIL),
            8 => screen.event(&Event::MessageEnd { message: &Arc::new(EVIL.into()) }),
            9 => screen.queue(vec![(QueueKind::Steering, EVIL.into()); 3]),
            10 => {
                let call = CallEvent { id: EVIL, name: EVIL, arguments: &arguments };
                let partial = ToolResult::text(EVIL);
                screen.event(&Event::ToolExecutionUpdate { call, partial: &partial });
            }
            11 => drop(control(
                &mut screen,
                ['c', 'd', 'j', 'u', 'w'][usize::try_from(chance(5)).expect("few")],
            )),
            12 => drop(press(
                &mut screen,
                [KeyCode::Up, KeyCode::Down, KeyCode::Enter, KeyCode::Tab]
                    [usize::try_from(chance(4)).expect("few")],
            )),
            _ => types(&mut screen, "日x"),
        }
        let frame = screen.frame();
        assert!(frame.rows.len() < height.max(3), "{step}: {height} rows: {frame:?}");
        assert!(
            frame.cursor.0 < frame.rows.len() && frame.cursor.1 <= screen.width,
            "{step}: {frame:?}"
        );
        let wide = frame.rows.iter().find(|row| row.width() > screen.width);
        assert_eq!(wide, None, "{step}: {} columns", screen.width);
        // Finished rows may be as wide as the terminal was when they were finished.
        for row in frame.rows.into_iter().chain(screen.take_done()) {
            assert!(!row.to_string().chars().any(char::is_control), "{step}: {row}");
        }
    }
}
