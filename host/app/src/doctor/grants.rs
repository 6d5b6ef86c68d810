//! Each kind of grant, tried on the probe: nothing without it, with it what it says and no more.

use super::bench::{Bench, Called};
use super::limits::folder;
use super::report::{Row, Verdict};
use super::server::{ECHOED, Server};
use cofferdam_sandbox::grants::{Access, FileGrant, HttpRule, SecretGrant, address};
use cofferdam_sandbox::{Grants, Limits};
use std::net::{IpAddr, ToSocketAddrs as _};

/// One row or more for each kind.
pub(super) async fn rows(bench: &Bench) -> Vec<Row> {
    let mut rows = Vec::new();
    for kind in Grants::KEYS {
        match *kind {
            "files" => {
                rows.push(Row::proof("files", read_only(bench).await));
                rows.push(Row::proof("files", read_write(bench).await));
            }
            "http" => {
                rows.push(Row::proof("http", http(bench).await));
                rows.push(private(bench).await);
            }
            "env" => rows.push(Row::proof("env", env(bench).await)),
            "config" => rows.push(Row::proof("config", config(bench).await)),
            "kv" => rows.push(Row::proof("kv", key_value(bench).await)),
            "secrets" => rows.push(secrets(bench).await),
            _ => rows.push(Row::failed(*kind, "no proof exists for this grant")),
        }
    }
    rows
}

async fn call(bench: &Bench, grants: &Grants, task: &str) -> Called {
    bench.granted(Limits::default(), grants.clone(), task).await
}

/// That the probe was turned away: it says so, or finds nothing to begin with.
fn turned_away(called: &Called, what: &str) -> Result<(), String> {
    match &*called.ended_by {
        "answer" => Err(format!("{what} should have been refused, and {called}")),
        _ => Ok(()),
    }
}

async fn read_only(bench: &Bench) -> Result<String, String> {
    let (folder, _) = folder()?;
    let inside = folder.path().join("inside");
    let wrote = |problem: std::io::Error| format!("prepare the trial: {problem}");
    std::fs::create_dir(&inside).map_err(wrote)?;
    std::fs::write(inside.join("a"), "granted").map_err(wrote)?;
    std::fs::write(folder.path().join("b"), "not granted").map_err(wrote)?;
    #[cfg(unix)]
    std::os::unix::fs::symlink("../b", inside.join("link")).map_err(wrote)?;
    let grant = FileGrant { host: inside, guest: "/work".into(), access: Access::ReadOnly };
    let grants = Grants { files: vec![grant], ..Grants::default() };
    let read = call(bench, &grants, "16 0 0|a").await;
    if read.answered("a granted file")? != "granted" {
        return Err(format!("a granted file was read, and {read}"));
    }
    turned_away(&call(bench, &Grants::default(), "16 0 0|a").await, "a file without a grant")?;
    turned_away(&call(bench, &grants, "16 0 0|../b").await, "a way out by `..`")?;
    turned_away(&call(bench, &grants, "16 0 0|/etc/hostname").await, "an absolute path")?;
    #[cfg(unix)]
    turned_away(&call(bench, &grants, "16 0 0|link").await, "a way out by a link")?;
    turned_away(
        &call(bench, &grants, "17 1 0|new").await,
        "writing where only reading is granted",
    )?;
    Ok("read-only: a file was read; outside, by `..` and by a link, and writing were refused"
        .into())
}

async fn read_write(bench: &Bench) -> Result<String, String> {
    let (folder, grants) = folder()?;
    let wrote = call(bench, &grants, "17 5 0|new").await;
    wrote.answered("writing a granted file")?;
    let size = std::fs::metadata(folder.path().join("new")).map_or(0, |found| found.len());
    if size != 5 {
        return Err(format!("5 bytes were written and {size} are there"));
    }
    let linked = call(bench, &grants, "18 0 0|new").await;
    linked.refused("a hard link", "hard links")?;
    turned_away(&call(bench, &grants, "17 1 0|../out").await, "writing outside")?;
    Ok("read-write: a file was written; a hard link, and writing outside, were refused".into())
}

fn rule(text: &str) -> Result<Grants, String> {
    Ok(Grants { http: vec![HttpRule::parse(text)?], ..Grants::default() })
}

async fn http(bench: &Bench) -> Result<String, String> {
    let server = Server::start().map_err(|problem| format!("no server on loopback: {problem}"))?;
    server.set_body(3);
    let here = format!("127.0.0.1:{}", server.port());
    let task = format!("11 1 0|{here}");
    let granted = call(bench, &rule(&format!("GET http://{here}/"))?, &task).await;
    if granted.answered("a granted request")? != "bbb" {
        return Err(format!("a granted request was sent, and {granted}"));
    }
    let none = call(bench, &Grants::default(), &task).await;
    none.refused("a request without a grant", "no http grant")?;
    for (other, what) in [
        ("GET http://example.com/".to_owned(), "another host"),
        (format!("GET http://127.0.0.1:{}/", server.port() ^ 1), "another port"),
        (format!("POST http://{here}/"), "another method"),
        (format!("GET http://{here}/below/"), "another path"),
        (format!("GET https://{here}/"), "another scheme"),
    ] {
        call(bench, &rule(&other)?, &task).await.refused(what, "is not granted")?;
    }
    match server.requests() {
        1 => Ok("a granted request was sent; another host, port, method, path and scheme were \
                 refused, and nothing of them was sent"
            .into()),
        sent => Err(format!("one request was granted, and {sent} arrived")),
    }
}

/// A granted name that leads to a private address. Which names do so depends on the machine.
async fn private(bench: &Bench) -> Row {
    let server = match Server::start() {
        Ok(server) => server,
        Err(problem) => return Row::failed("http", format!("no server on loopback: {problem}")),
    };
    if let Some((name, at)) = private_name(server.port()).await {
        let refused = async {
            let grants = rule(&format!("GET http://{name}:{}/", server.port()))?;
            let called = call(bench, &grants, &format!("11 1 0|{name}:{}", server.port())).await;
            called.refused("a name with a private address", "private\"]")?;
            match server.requests() {
                0 => Ok(format!("a granted name ({name}) that leads to {at} was refused")),
                _ => Err(format!("the granted name {name} leads to {at}, and a request arrived")),
            }
        };
        return Row::proof("http", refused.await);
    }
    // No name at hand: the rule is asked directly.
    let metadata = IpAddr::from([169, 254, 169, 254]);
    match HttpRule::parse("GET https://example.com/").map(|rule| rule.allows_address(metadata)) {
        Ok(Err(_)) => Row::note(
            "http",
            "no name of this machine leads to a private address, so only the rule itself was tried: \
             it refuses 169.254.169.254",
        ),
        _ => Row::failed("http", "a granted name may lead to 169.254.169.254"),
    }
}

/// A name, other than `localhost`, that leads to an address which is not public.
async fn private_name(port: u16) -> Option<(String, IpAddr)> {
    let look = move || {
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let names = ["ip6-loopback", "ip6-localhost", "localhost.localdomain", own.trim()];
        names.into_iter().filter(|name| !name.is_empty()).find_map(|name| {
            let mut found = (name, port).to_socket_addrs().ok()?.map(|found| found.ip());
            let first = found.next()?;
            // The host tries every address; all of them must be private for a clear answer.
            let all = address::special(first).is_some()
                && found.all(|other| address::special(other).is_some());
            all.then(|| (name.to_owned(), first))
        })
    };
    tokio::task::spawn_blocking(look).await.ok().flatten()
}

async fn env(bench: &Bench) -> Result<String, String> {
    let none = call(bench, &Grants::default(), "12 0 0|").await;
    if none.answered("a look at the environment")? != "none" {
        return Err(format!("without a grant, {none}"));
    }
    let Some((name, value)) = variable(|_| true) else {
        return Ok("none was visible without a grant; this process has none to grant".into());
    };
    let mut grants = Grants::default();
    grants.add("env", &name).map_err(|problem| problem.to_string())?;
    let one = call(bench, &grants, "12 0 0|").await;
    if one.answered("a look at a granted variable")? != value {
        return Err(format!("with {name} granted, {one}"));
    }
    Ok(format!("none was visible without a grant, {name} with one"))
}

/// A variable of this process that may be granted.
fn variable(fits: impl Fn(&str) -> bool) -> Option<(String, String)> {
    ["PATH", "HOME", "PWD", "LANG", "USER", "SHELL"].iter().find_map(|name| {
        let value = std::env::var(name).ok().filter(|value| fits(value))?;
        Some(((*name).to_owned(), value))
    })
}

async fn config(bench: &Bench) -> Result<String, String> {
    let grants = Grants { config: [("color".into(), "red".into())].into(), ..Grants::default() };
    for (key, expected) in [("color", "red"), ("colour", "none")] {
        let called = call(bench, &grants, &format!("15 0 0|{key}")).await;
        if called.answered("a configuration value")? != expected {
            return Err(format!("`{key}` should be {expected}, and {called}"));
        }
    }
    Ok("a granted value was read, another was not there".into())
}

async fn key_value(bench: &Bench) -> Result<String, String> {
    let quota = Grants { kv_kib: Some(1), ..Grants::default() };
    for (grants, task, expected, what) in [
        (Grants::default(), "13 10 0|", "denied", "keeping a value without a grant"),
        (quota.clone(), "13 900 0|", "written", "keeping a value within the quota"),
        (quota, "13 1100 0|", "over-quota", "keeping a value above the quota"),
    ] {
        let called = call(bench, &grants, task).await;
        if called.answered(what)? != expected {
            return Err(format!("{what} should be {expected}, and {called}"));
        }
    }
    Ok("a value was kept within the quota of 1 KiB; above it, and without a grant, none was".into())
}

/// A credential goes into the request, and its echo does not come back. Some variable of this
/// process stands in for one; it goes to a server of ours on loopback.
async fn secrets(bench: &Bench) -> Row {
    let fits = |value: &str| value.len() >= 4 && value.bytes().all(|b| (0x20..0x7f).contains(&b));
    let Some((env, value)) = variable(fits) else {
        let text = "not tried: this process has no variable that could stand in for a credential";
        return Row::new(Verdict::Note, "secrets", text);
    };
    let tried = async {
        let server =
            Server::start().map_err(|problem| format!("no server on loopback: {problem}"))?;
        let here = format!("127.0.0.1:{}", server.port());
        let mut grants = rule(&format!("GET http://{here}/"))?;
        grants.secrets.push(SecretGrant {
            env,
            header: ECHOED.into(),
            format: "{}".into(),
            origin: format!("http://{here}"),
        });
        let called = call(bench, &grants, &format!("11 1 0|{here}")).await;
        let seen = called.answered("a request with a credential")?;
        // The server echoes what it got: were the credential not in the request, nothing would be.
        if seen.is_empty() {
            return Err("the request went out without its credential".into());
        }
        if seen.contains(&value) {
            return Err("the plugin saw a credential that a server echoed".into());
        }
        Ok("a credential was in the request, and masked in its echo".into())
    };
    Row::proof("secrets", tried.await)
}
