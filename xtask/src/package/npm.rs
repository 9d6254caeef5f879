//! The npm packages: the programs, the launcher that makes `npx tokenrail` run them, and the client library.

use std::path::{Path, PathBuf};

use super::folder::{self, Folder};
use super::release::{Release, VERSION};
use crate::{Failure, web, workspace};

pub(super) fn make(release: &Release) -> Result<Vec<PathBuf>, Failure> {
    let program = start(release, "program")?;
    program.program("bin/tokenrail", &release.server)?;
    program.program("bin/tokenrail-supervisor", &release.supervisor)?;
    program.copy("third-party.txt", &release.third_party)?;
    let launcher = start(release, "launcher")?;
    launcher.program("bin/tokenrail.js", &from("launcher").join("bin/tokenrail.js"))?;
    // The compiler of the client library.
    web::fetch()?;
    let (out, client) = (release.out.path(), web::client());
    let packed = |package: &Path| web::pack(package, out).map(|file| out.join(file));
    [program.path(), launcher.path(), &client].into_iter().map(packed).collect()
}

/// A folder with what both packages have. It fails if the versions in `package.json` are not those of the programs.
fn start(release: &Release, name: &str) -> Result<Folder, Failure> {
    let (from, root) = (from(name), workspace::root());
    let folder = Folder::create(release.out.path().join("npm").join(name))?;
    let manifest = folder::read(&from.join("package.json"))?;
    if !versions(&manifest).all(|version| version == VERSION) {
        return Err(Failure::new(format!(
            "packaging/npm/{name}/package.json: not every version is {VERSION}"
        )));
    }
    folder.text("package.json", &manifest)?;
    for (file, source) in [("README.md", &from), ("LICENSE-APACHE", &root), ("LICENSE-MIT", &root)] {
        folder.copy(file, &source.join(file))?;
    }
    Ok(folder)
}

fn from(name: &str) -> PathBuf {
    workspace::root().join("packaging/npm").join(name)
}

/// The version of a package, and the versions of the packages of ours that it needs.
fn versions(manifest: &str) -> impl Iterator<Item = &str> {
    let ours = |line: &&str| {
        line.trim_start().starts_with("\"version\":") || line.trim_start().starts_with("\"@tokenrail/")
    };
    manifest.lines().filter(ours).filter_map(|line| line.split('"').nth(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_of_the_package_and_of_its_programs_are_found() {
        let manifest = "{\n  \"name\": \"it\",\n  \"version\": \"1.2.3\",\n  \"@tokenrail/x\": \"1.2.4\"\n}";
        assert_eq!(versions(manifest).collect::<Vec<_>>(), ["1.2.3", "1.2.4"]);
    }
}
