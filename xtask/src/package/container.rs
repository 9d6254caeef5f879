//! The container image, made by buildah, which needs no daemon.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::folder::Folder;
use super::release::{Release, VERSION};
use crate::{Failure, process, workspace};

/// Where the systems keep the certificates of the authorities that they trust.
const CERTIFICATES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

pub(super) fn make(release: &Release) -> Result<Vec<PathBuf>, Failure> {
    let folder = Folder::create(release.out.path().join("container"))?;
    fill(release, &folder)?;
    let image = format!("tokenrail:{VERSION}");
    let mut build = buildah();
    // Of the two formats, only Docker's has the health check.
    build.args(["build", "--format", "docker", "--layers=false", "--timestamp", &release.time]);
    build.args(["--tag", &image]).arg(folder.path());
    process::step("building the container image", &mut build)?;
    let archive = release.out.path().join(format!("tokenrail-{VERSION}-container.tar"));
    let mut push = buildah();
    push.args(["push", "--quiet", &image]).arg(format!("docker-archive:{}:{image}", archive.display()));
    process::step("saving the container image", &mut push)?;
    Ok(vec![archive])
}

fn fill(release: &Release, folder: &Folder) -> Result<(), Failure> {
    let root = workspace::root();
    folder.copy("Containerfile", &root.join("packaging/container/Containerfile"))?;
    folder.program("tokenrail", &release.server)?;
    folder.program("tokenrail-supervisor", &release.supervisor)?;
    folder.copy("third-party.txt", &release.third_party)?;
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        folder.copy(name, &root.join(name))?;
    }
    let certificates = CERTIFICATES.into_iter().map(Path::new).find(|path| path.is_file());
    let certificates = certificates.ok_or_else(|| {
        Failure::new("no root certificates of the public authorities; on Debian and Ubuntu: apt-get install ca-certificates")
    })?;
    folder.copy("ca-certificates.crt", certificates)?;
    // A folder is only in the image if it has a file.
    folder.text("volume/data/home/.keep", "")?;
    folder.text("shared/tmp/.keep", "").map(drop)
}

/// The images stay in a store below the target folder, apart from those of this machine.
fn buildah() -> Command {
    let store = super::target().join("images");
    let mut buildah = Command::new("buildah");
    buildah.arg("--storage-driver=vfs").arg("--root").arg(store.join("root"));
    buildah.arg("--runroot").arg(store.join("run"));
    buildah
}
