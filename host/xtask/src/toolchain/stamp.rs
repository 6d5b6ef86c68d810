//! What an earlier run proved: a small file beside the toolchain.
//!
//! It says all that its truth depends on, so that it is believed only if it is, byte for
//! byte, what would be written today.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::Route;
use super::base::Base;

/// Goes up when an older installation would not do any more.
const LAYOUT: u32 = 1;

const FILE: &str = "stamp";

pub(super) fn read(home: &Path, base: &Base) -> Option<Route> {
    let found = fs::read_to_string(home.join(FILE)).ok()?;
    route_of(&found, home, base)
}

pub(super) fn write(home: &Path, base: &Base, route: Route) -> Result<()> {
    let path = home.join(FILE);
    fs::write(&path, text(home, base, route))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Before anything is changed: what is half done has no stamp.
pub(super) fn remove(home: &Path) -> Result<()> {
    match fs::remove_file(home.join(FILE)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).context("cannot remove the stamp of the guest toolchain")
        }
        _ => Ok(()),
    }
}

fn route_of(found: &str, home: &Path, base: &Base) -> Option<Route> {
    Route::ALL.into_iter().find(|route| text(home, base, *route) == found)
}

/// Debian's compiler is started by absolute paths and borrows linkers from the toolchain in
/// use: it stands as long as neither moves.
fn text(home: &Path, base: &Base, route: Route) -> String {
    format!(
        "layout {LAYOUT}\nroute {}\nhome {}\nbase {}\nrustc {}\n",
        route.name(),
        home.display(),
        base.sysroot.display(),
        base.version
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(sysroot: &str, version: &str) -> Base {
        Base { cargo: "cargo".into(), sysroot: sysroot.into(), version: version.to_owned() }
    }

    #[test]
    fn a_stamp_holds_until_something_moves_or_changes() {
        let (here, there) = (Path::new("/a/target"), Path::new("/b/target"));
        let (old, new) = (base("/rust", "rustc 1.95.0"), base("/rust", "rustc 1.96.0"));
        let elsewhere = base("/rust2", "rustc 1.95.0");
        for route in Route::ALL {
            let stamp = text(here, &old, route);
            assert_eq!(route_of(&stamp, here, &old), Some(route));
            assert_eq!(route_of(&stamp, there, &old), None);
            assert_eq!(route_of(&stamp, here, &new), None);
            assert_eq!(route_of(&stamp, here, &elsewhere), None);
        }
        assert_eq!(route_of("", here, &old), None);
        assert_eq!(route_of("layout 0\nroute debian\n", here, &old), None);
    }
}
