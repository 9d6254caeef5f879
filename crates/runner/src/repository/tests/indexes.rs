//! The copy of the index.

use std::fs::{self, File};

use tokenrail_ports::{ChangesError, FileStatus, IGitRepository as _};

use super::{Lab, Repositories, RepositoryLimits, lines};

/// The name of the shared index.
fn shared(lab: &Lab) -> String {
    let path = lab.git(&["rev-parse", "--shared-index-path"]);
    path.rsplit('/').next().expect("it is a path").to_owned()
}

#[tokio::test]
async fn every_form_of_an_index_is_understood() {
    for format in ["sha1", "sha256"] {
        let init = ["init", "-q", "--object-format", format];
        let Some(lab) = Lab::with(RepositoryLimits::default(), &init) else { return };
        for number in 0..20 {
            lab.write(&format!("{}{number}", "a long folder/".repeat(number)), "1\n");
        }
        lab.write("z", "1\n");
        lab.commit();
        let base = lab.head().await;
        lab.write("z", "2\n");
        lab.write("intended", "1\n");
        let expected = [lines("intended", FileStatus::Added, 1, 0), lines("z", FileStatus::Modified, 1, 1)];
        // An intended file has flags that only version 3 and 4 have.
        lab.git(&["add", "-N", "intended"]);
        for version in ["2", "4"] {
            lab.git(&["update-index", "--index-version", version]);
            assert_eq!(lab.changes(&base).await.files, expected, "{format}, version {version}");
            lab.git(&["update-index", "--split-index"]);
            assert!(!shared(&lab).is_empty());
            lab.git(&["add", "z"]);
            assert_eq!(lab.changes(&base).await.files, expected, "{format}, version {version}, split");
            lab.git(&["update-index", "--no-split-index"]);
        }
    }
}

#[tokio::test]
async fn only_the_shared_index_that_the_index_names_is_copied() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    for number in 0..40 {
        let other = File::create(lab.root().join(format!(".git/sharedindex.{number:040x}"))).unwrap();
        other.set_len(300 << 20).unwrap();
    }
    lab.git(&["update-index", "--split-index"]);
    lab.write("a.txt", "one\n");
    lab.git(&["add", "a.txt"]);
    assert_eq!(lab.changes(&base).await.files, [lines("a.txt", FileStatus::Modified, 0, 2)]);
}

#[tokio::test]
async fn the_parts_of_an_index_have_one_limit() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    lab.git(&["update-index", "--split-index"]);
    let size = |name: &str| fs::metadata(lab.root().join(".git").join(name)).unwrap().len();
    let both = size("index") + size(&shared(&lab));
    for (index_bytes, fits) in [(both, true), (both - 1, false)] {
        let limits = RepositoryLimits { index_bytes, ..RepositoryLimits::default() };
        let reader = Repositories::new(&lab.folder.path().join("other data"), limits);
        let answer = reader.changes(&lab.root(), &base).await;
        match answer {
            Ok(_) => assert!(fits),
            Err(ChangesError::Failed(error)) => assert!(!fits, "{error}"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn a_path_of_the_index_does_not_lead_out_of_the_repository() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    fs::write(lab.folder.path().join("secret"), "a secret\n").unwrap();
    for (named, changed) in
        [("xx/secret", "../secret"), ("x/yy/secret", "a/../secret"), ("xsecret", "/secret")]
    {
        for version in ["2", "4"] {
            lab.write(named, "1\n");
            lab.git(&["add", named]);
            lab.git(&["update-index", "--index-version", version]);
            let index = lab.root().join(".git/index");
            let mut bytes = fs::read(&index).unwrap();
            let (from, to) = (named.as_bytes(), changed.as_bytes());
            let at = memchr::memmem::find(&bytes, from).expect("it has the path");
            bytes[at..at + from.len()].copy_from_slice(to);
            fs::write(&index, bytes).unwrap();
            for answer in [
                lab.reader.changes(&lab.root(), &base).await.map(|_| ()),
                lab.reader.patch(&lab.root(), &base, None).await.map(|_| ()),
            ] {
                let Err(ChangesError::Failed(error)) = answer else { panic!("{changed}: {answer:?}") };
                assert!(error.to_string().contains("leads out of it"), "{error}");
            }
            fs::remove_file(index).unwrap();
            lab.git(&["read-tree", "HEAD"]);
        }
    }
}

#[tokio::test]
async fn an_index_that_is_cut_off_is_refused() {
    let Some(lab) = Lab::with_commit() else { return };
    let base = lab.head().await;
    let index = lab.root().join(".git/index");
    let bytes = fs::read(&index).unwrap();
    for length in [0, 5, 12, 80, 150] {
        fs::write(&index, &bytes[..length]).unwrap();
        let answer = lab.reader.changes(&lab.root(), &base).await;
        assert!(matches!(answer, Err(ChangesError::Failed(_))), "{length}: {answer:?}");
    }
}
