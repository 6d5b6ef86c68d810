//! What a client of `rpc` that is broken, cut off or malicious may send.

/// xorshift64.
fn draw(state: &mut u64, below: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state % below as u64) as usize
}

/// A line of input without its end: good, cut, damaged, or of another kind altogether. The same for
/// the same state, which it moves on.
pub fn hostile_line(state: &mut u64) -> Vec<u8> {
    const GOOD: [&str; 7] = [
        r#"{"id":1,"type":"steer","text":"left"}"#,
        r#"{"id":"two","type":"follow_up","text":"then \u00e9\ud83d\ude00"}"#,
        r#"{"type":"abort"}"#,
        r#"{"type":"state","id":3}"#,
        r#"{"type":"messages","from":18446744073709551615}"#,
        r#"{"type":"answer","question":"q1","approved":true}"#,
        r#"{"type":"continue"}"#,
    ];
    const BAD: [&[u8]; 10] = [
        b"{\"type\":\"prompt\",\"text\":\"\"}",
        b"{\"type\":\"steer\",\"text\":\"\\ud800\"}",
        b"{\"type\":\"steer\",\"text\":\"a\",\"text\":\"b\"}",
        b"{\"type\":\"messages\",\"from\":-1}",
        b"{\"type\":\"messages\",\"from\":1e400}",
        b"{\"id\":{},\"type\":\"state\"}",
        b"\xff\xfe{\"type\":\"state\"}",
        b"\x00",
        b"null",
        b"{\"type\":\"answer\",\"question\":1,\"approved\":\"yes\"}",
    ];
    let mut line = GOOD[draw(state, GOOD.len())].as_bytes().to_vec();
    match draw(state, 8) {
        0 | 1 => {}
        2 => line.truncate(draw(state, line.len())),
        3 => drop(line.drain(..draw(state, line.len()))),
        4 => {
            for _ in 0..1 + draw(state, 4) {
                let at = draw(state, line.len());
                line[at] = draw(state, 256) as u8;
            }
        }
        5 => line = (0..draw(state, 300)).map(|_| draw(state, 256) as u8).collect(),
        6 => line = ["[", "{\"a\":"][draw(state, 2)].repeat(1 + draw(state, 5_000)).into(),
        _ => line = BAD[draw(state, BAD.len())].to_vec(),
    }
    line.retain(|byte| *byte != b'\n');
    line
}
