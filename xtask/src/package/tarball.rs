//! The tarball: the programs and what belongs to them, for every distribution.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::checksums;
use super::folder::Folder;
use super::release::{Release, VERSION};
use crate::{Failure, process, workspace};

/// The shells, and the names by which they find their completions.
const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "tokenrail.bash"), ("fish", "tokenrail.fish"), ("zsh", "_tokenrail")];

pub(super) fn make(release: &Release) -> Result<Vec<PathBuf>, Failure> {
    let name = format!("tokenrail-{VERSION}-x86_64-linux");
    let folder = Folder::create(release.out.path().join("tarball").join(&name))?;
    fill(release, &folder)?;
    checksums::write_for(&folder)?;
    let archive = release.out.path().join(format!("{name}.tar.gz"));
    pack(&folder, &archive, &release.time)?;
    Ok(vec![archive])
}

fn fill(release: &Release, folder: &Folder) -> Result<(), Failure> {
    let root = workspace::root();
    folder.program("bin/tokenrail", &release.server)?;
    folder.program("bin/tokenrail-supervisor", &release.supervisor)?;
    for (shell, name) in COMPLETIONS {
        folder.text(&format!("completions/{name}"), &release.printed(&["completions", shell])?)?;
    }
    release.manual(folder, "man")?;
    for name in ["tokenrail.service", "tokenrail.user.service", "sysusers.conf"] {
        folder.copy(&format!("systemd/{name}"), &root.join("packaging/systemd").join(name))?;
    }
    folder.copy("systemd/tokenrail.toml", &root.join("packaging/deb/tokenrail.toml"))?;
    for name in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        folder.copy(name, &root.join(name))?;
    }
    folder.copy("third-party.txt", &release.third_party)
}

/// Packs a folder so that equal files make equal bytes: in a fixed order, with one time and one owner.
fn pack(folder: &Folder, archive: &Path, time: &str) -> Result<(), Failure> {
    let mut tar = Command::new("tar");
    // `-n`: gzip must not record the time either.
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-I", "gzip -n9"]);
    tar.arg(format!("--mtime=@{time}")).arg("-cf").arg(archive);
    tar.args(folder.path().file_name()).current_dir(folder.path().join(".."));
    process::step("packing the tarball", &mut tar)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_files_make_equal_bytes_whatever_their_times_and_order() {
        let out = workspace::target().join("test-tarball");
        let packed = |place: &str, names: [&str; 3]| {
            let folder = Folder::create(out.join(place).join("tokenrail")).unwrap();
            for (age, name) in names.iter().enumerate() {
                let path = folder.text(name, name).unwrap();
                let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(age as u64);
                std::fs::File::open(path).unwrap().set_modified(time).unwrap();
            }
            let archive = out.join(place).join("it.tar.gz");
            pack(&folder, &archive, "1700000000").unwrap();
            std::fs::read(archive).unwrap()
        };
        assert_eq!(packed("one", ["a", "b/c", "d"]), packed("two", ["d", "b/c", "a"]));
    }
}
