//! The Debian package, made by `dpkg-deb`. It has no dependency on a version of a distribution.

use std::path::PathBuf;
use std::process::Command;

use super::folder::{self, Folder};
use super::release::{Release, VERSION};
use crate::{Failure, process, workspace};

const ARCHITECTURE: &str = "amd64";

/// Where the completions of a shell belong.
const COMPLETION_FOLDERS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/tokenrail"),
    ("fish", "usr/share/fish/vendor_completions.d/tokenrail.fish"),
    ("zsh", "usr/share/zsh/vendor-completions/_tokenrail"),
];

const DOCS: &str = "usr/share/doc/tokenrail";

/// Files of `packaging/`, and where they belong.
const FILES: [(&str, &str); 6] = [
    ("deb/tokenrail.toml", "etc/tokenrail/tokenrail.toml"),
    ("deb/copyright", "usr/share/doc/tokenrail/copyright"),
    ("deb/lintian-overrides", "usr/share/lintian/overrides/tokenrail"),
    ("systemd/tokenrail.service", "lib/systemd/system/tokenrail.service"),
    ("systemd/tokenrail.user.service", "usr/lib/systemd/user/tokenrail.service"),
    ("systemd/sysusers.conf", "usr/lib/sysusers.d/tokenrail.conf"),
];

const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

pub(super) fn make(release: &Release) -> Result<Vec<PathBuf>, Failure> {
    let folder = Folder::create(release.out.path().join("deb"))?;
    fill(release, &folder)?;
    compress(&folder)?;
    describe(&folder)?;
    let package = release.out.path().join(format!("tokenrail_{VERSION}_{ARCHITECTURE}.deb"));
    let mut dpkg = Command::new("dpkg-deb");
    // gzip and xz are the formats that every dpkg reads.
    dpkg.args(["--root-owner-group", "-Zxz", "--build"]).arg(folder.path()).arg(&package);
    process::step("packing the Debian package", dpkg.env("SOURCE_DATE_EPOCH", &release.time))?;
    Ok(vec![package])
}

fn fill(release: &Release, folder: &Folder) -> Result<(), Failure> {
    let root = workspace::root();
    folder.program("usr/bin/tokenrail", &release.server)?;
    folder.program("usr/bin/tokenrail-supervisor", &release.supervisor)?;
    for (shell, path) in COMPLETION_FOLDERS {
        folder.text(path, &release.printed(&["completions", shell])?)?;
    }
    release.manual(folder, "usr/share/man/man1")?;
    for (from, to) in FILES {
        folder.copy(to, &root.join("packaging").join(from))?;
    }
    folder.copy(&format!("{DOCS}/README.md"), &root.join("README.md"))?;
    let changelog = folder::read(&root.join("packaging/deb/changelog"))?;
    let changelog = changelog.replace("@VERSION@", VERSION).replace("@DATE@", &date(&release.time)?);
    folder.text(&format!("{DOCS}/changelog"), &changelog)?;
    folder.copy(&format!("{DOCS}/NEWS"), &root.join("docs/CHANGELOG.md"))?;
    folder.copy(&format!("{DOCS}/third-party.txt"), &release.third_party)
}

/// A time as Debian's changelogs have it.
fn date(seconds: &str) -> Result<String, Failure> {
    let mut date = Command::new("date");
    date.args(["--utc", "--rfc-email", &format!("--date=@{seconds}")]).env("LC_ALL", "C");
    process::output("the date of the changelog", &mut date).map(|date| date.trim().to_owned())
}

/// Debian wants manual pages, changelogs and long texts compressed.
fn compress(folder: &Folder) -> Result<(), Failure> {
    let mut gzip = Command::new("gzip");
    gzip.arg("-n9").args(folder.files("usr/share/man")?).current_dir(folder.path());
    gzip.args(["changelog", "NEWS", "third-party.txt"].map(|name| format!("{DOCS}/{name}")));
    process::step("compressing", &mut gzip)
}

/// Writes what `dpkg` reads: the description, the scripts, and which files an administrator may change.
fn describe(folder: &Folder) -> Result<(), Failure> {
    let from = workspace::root().join("packaging/deb");
    let files = folder.files("")?;
    let mut size = 0;
    for file in &files {
        size += folder::size(&folder.path().join(file))?.div_ceil(1024);
    }
    let control = folder::read(&from.join("control"))?
        .replace("@VERSION@", VERSION)
        .replace("@ARCHITECTURE@", ARCHITECTURE)
        .replace("@INSTALLED_SIZE@", &size.to_string());
    let changeable: Vec<_> = files.iter().filter(|file| file.starts_with("etc/")).collect();
    let changeable = changeable.iter().fold(String::new(), |list, file| list + "/" + file + "\n");
    let mut sums = Command::new("md5sum");
    sums.args(files.iter().filter(|file| !file.starts_with("etc/"))).current_dir(folder.path());
    let sums = process::output("checksums of the Debian package", &mut sums)?;
    for script in SCRIPTS {
        folder.program(&format!("DEBIAN/{script}"), &from.join(script))?;
    }
    folder.text("DEBIAN/md5sums", &sums)?;
    folder.text("DEBIAN/conffiles", &changeable)?;
    folder.text("DEBIAN/control", &control).map(drop)
}
