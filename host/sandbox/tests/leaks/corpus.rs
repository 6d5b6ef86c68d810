//! The hostile files, again and again: each leaves the process as it was.

use crate::census::{Census, alone, resident_kib};
use crate::ending::end;
use crate::guest::Guest;
use crate::guest::hostile;
use crate::support::{SANDBOX, Server, call, ended_by, grants, limits, load, source};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::progress::Progress;
use cofferdam_sandbox::{Code, Plugin};
use std::time::Duration;

#[tokio::test]
async fn every_hostile_file_leaves_nothing() {
    let _alone = alone();
    let good = load(&Guest::default(), &[]).await;
    assert_eq!(ended_by(&call(&good, "{}").await), "answer");
    let rows = hostile::all();
    let round = async |census: Option<&Census>| {
        for row in &rows {
            end(row).await;
            assert_eq!(ended_by(&call(&good, "{}").await), "answer", "after {}", row.file);
            if let Some(census) = census {
                census.wait_until_as_before(&row.file);
            }
        }
    };
    // The pools fill, and the compiled code is kept.
    for _ in 0..4 {
        round(None).await;
        eprintln!("{} KiB", resident_kib());
    }
    let census = settled().await;
    let before = resident_kib();
    round(Some(&census)).await;
    let after = resident_kib();
    eprintln!("{before} KiB before a round of {} files, {after} KiB after it", rows.len());
    assert!(after * 100 <= before * 105, "{before} KiB before, {after} KiB after");
}

/// What is there when nothing runs.
async fn settled() -> Census {
    tokio::time::sleep(Duration::from_secs(2)).await;
    Census::take()
}

#[tokio::test]
async fn a_thousand_failures_leave_nothing() {
    let _alone = alone();
    let trap = load(&Guest::call("unreachable"), &[]).await;
    let bomb = load(
        &Guest::call(
            "(loop $again (br_if $again (i32.ne (i32.const -1) (memory.grow (i32.const 16))))) unreachable",
        ),
        &[],
    )
    .await;
    let round = async || {
        for n in 0..1_000 {
            assert_eq!(ended_by(&call(&trap, "{}").await), "trap");
            if n % 10 == 0 {
                assert_eq!(ended_by(&call(&bomb, "{}").await), "memory-limit");
            }
        }
    };
    round().await;
    let (census, before) = (settled().await, resident_kib());
    round().await;
    let after = resident_kib();
    assert!(after * 100 <= before * 105, "{before} KiB before, {after} KiB after");
    census.wait_until_as_before("a thousand failures");
}

/// Servers that are silent or talk for ever, left again and again by the wall time of the call.
#[tokio::test]
async fn connections_are_closed() {
    let _alone = alone();
    let server = Server::new(|stream, request| {
        let silent = request.contains("/silent");
        let _ = std::io::Write::write_all(stream, b"HTTP/1.1 200 OK\r\n\r\n");
        while !silent && std::io::Write::write_all(stream, &[b'x'; 4_096]).is_ok() {}
        let _ = std::io::Read::read(stream, &mut [0; 64]);
    });
    let row = hostile::all().into_iter().find(|row| row.file == "http-drip.wat").unwrap();
    let code = source(Code::Bytes(row.published()));
    let granted = grants(&[server.grant("GET")]);
    let plugin = Plugin::load(&SANDBOX, code, limits(&["wall_ms=20"]), granted).await.unwrap();
    let arguments = format!(r#"{{"to":"{}"}}"#, server.authority());
    let run = || plugin.call_tool("run", &arguments, Progress::default(), AbortSignal::new());
    run().await;
    let census = settled().await;
    for _ in 0..5 {
        let outcomes = futures::future::join_all((0..20).map(|_| run())).await;
        assert!(outcomes.iter().all(|outcome| outcome.answer.is_err()));
    }
    census.wait_until_as_before("a hundred connections");
}
