//! The packages for users, in `target/package`: a tarball, a Debian package, npm packages and a container image. All of
//! them contain the same static programs.

mod checksums;
mod container;
mod deb;
mod folder;
mod npm;
mod programs;
mod release;
mod tarball;
mod third_party;

use std::path::PathBuf;

use crate::{Failure, system, workspace};
use folder::Folder;
use release::Release;

/// The tests find the packages by this.
pub(crate) const VARIABLE: &str = "TOKENRAIL_TEST_PACKAGES";

/// Part of the path of each test of a package.
pub(crate) const TESTS: &str = "packaged::";

/// A kind of package.
pub(crate) struct Kind {
    /// Its row in the table of the tests.
    pub(crate) what: &'static str,
    /// Part of the path of each of its tests.
    pub(crate) tests: &'static str,
    /// The programs that make it, and those with which it is tested. Each has the name of its system package.
    makers: &'static [(&'static str, &'static str)],
    testers: &'static [(&'static str, &'static str)],
    tester: Tester,
    make: fn(&Release) -> Result<Vec<PathBuf>, Failure>,
}

/// Who can run the tests.
enum Tester {
    Anyone,
    Root,
}

pub(crate) const KINDS: [Kind; 4] = [
    Kind {
        what: "tarball",
        tests: "packaged::tarball::",
        makers: &[("tar", "tar"), ("gzip", "gzip")],
        testers: &[],
        tester: Tester::Anyone,
        make: tarball::make,
    },
    Kind {
        what: "deb",
        tests: "packaged::deb::",
        makers: &[("dpkg", "dpkg-deb"), ("gzip", "gzip")],
        testers: &[("lintian", "lintian"), ("systemd", "systemd-analyze")],
        tester: Tester::Root,
        make: deb::make,
    },
    Kind {
        what: "npm packages",
        tests: "packaged::npm::",
        makers: &[("npm", "npm")],
        testers: &[],
        tester: Tester::Anyone,
        make: npm::make,
    },
    Kind {
        what: "container",
        tests: "packaged::container::",
        makers: &[("buildah", "buildah")],
        testers: &[],
        tester: Tester::Root,
        make: container::make,
    },
];

impl Kind {
    /// The error says why the package cannot be tested here.
    pub(crate) fn ready(&self) -> Result<(), Failure> {
        if cfg!(not(target_arch = "x86_64")) {
            return Err(Failure::new("the packages are for x86-64"));
        }
        if matches!(self.tester, Tester::Root) && !system::is_root() {
            return Err(Failure::new(format!("only root can install a {} and run its tests", self.what)));
        }
        present(self.makers)?;
        present(self.testers)
    }
}

/// The folder of the packages.
pub(crate) fn target() -> PathBuf {
    workspace::target().join("package")
}

/// Builds the programs and makes every package. A package whose maker is missing is named, and is not an error: only
/// Debian has `dpkg-deb`.
pub(crate) fn run() -> Result<(), Failure> {
    let out = Folder::create(target())?;
    let release = Release::build(out)?;
    let (mut files, mut table) = (Vec::new(), Vec::new());
    for kind in &KINDS {
        if let Err(reason) = present(kind.makers) {
            table.push(format!("{:<14} | NOT RUN ({reason})", kind.what));
            continue;
        }
        for file in (kind.make)(&release)? {
            let size = folder::size(&file)?;
            table.push(format!("{:<14} | {:>6} KiB | {}", kind.what, size.div_ceil(1024), file.display()));
            files.push(file);
        }
    }
    checksums::write(release.out.path(), &files)?;
    table.push(format!("{:<14} | NOT RUN (no cross compiler is set up)", "arm64"));
    println!("\n{}", table.join("\n"));
    Ok(())
}

fn present(programs: &[(&str, &str)]) -> Result<(), Failure> {
    programs.iter().try_for_each(|(package, program)| system::program(package, &[program]).map(drop))
}
