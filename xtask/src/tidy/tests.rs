use super::*;

/// What is wrong in a project of these files only.
fn check(files: &[(&str, &str)], expected: &[&str]) {
    let source = |(path, text): &(&str, &str)| Source { path: (*path).into(), text: (*text).into() };
    let sources: Vec<Source> = files.iter().map(source).collect();
    assert_eq!(faults(&sources, Path::new("/somewhere/project"), Some("/home/jo")), expected);
}

#[test]
fn a_file_has_350_lines_at_most_and_one_of_tests_400() {
    let lines = |lines: usize| "\n".repeat(lines);
    let fault = "crates/runner/src/a/b.rs: 351 lines, at most 350";
    check(&[("crates/runner/src/a/b.rs", &lines(350))], &[]);
    check(&[("crates/runner/src/a/b.rs", &lines(351))], &[fault]);
    for tests in ["crates/runner/src/a/tests/b.rs", "crates/runner/src/a/tests.rs"] {
        check(&[(tests, &lines(400))], &[]);
        check(&[(tests, &lines(401))], &[&format!("{tests}: 401 lines, at most 400")]);
    }
    check(&[("crates/parser/src/fixtures/b.rs", &lines(401))], &[]);
    check(&[("crates/presentation/assets/page.js", &lines(401))], &[]);
    let page = "crates/web/page/src/app/App.tsx";
    check(&[(page, &lines(350))], &[]);
    check(&[(page, &lines(351))], &[&format!("{page}: 351 lines, at most 350")]);
    check(&[("crates/web/client/src/generated/wire.ts", &lines(351))], &[]);
    check(&[("crates/web/page/test/a.tsx", &lines(351))], &[]);
}

#[test]
fn a_line_of_a_comment_has_120_bytes_at_most() {
    let words = |bytes: usize| "a".repeat(bytes);
    for (path, before) in
        [("crates/runner/src/a.rs", "//! "), ("tests/e2e/a.rs", "    /// "), ("xtask/src/a.rs", "  // ")]
    {
        let fits = format!("{before}{}", words(120 - before.len()));
        check(&[(path, &fits)], &[]);
        let fault = format!("{path}:2: a line of a comment has 121 bytes, at most 120");
        check(&[(path, &format!("\n{fits}a"))], &[&fault]);
    }
    let path = "crates/runner/src/a.rs";
    check(&[(path, &format!("//! | {} |", words(200)))], &[]);
    check(&[(path, &format!("let a = \"// {}\";", words(200)))], &[]);
    check(&[("crates/parser/src/fixtures/a.rs", &format!("// {}", words(200)))], &[]);
    check(&[("docs/a.md", &format!("// {}", words(200)))], &[]);
}

#[test]
fn a_list_of_modules_has_all_of_them() {
    let file = |list: &str| {
        format!(
            "{list}\n//! See `d`.\n\nmod a;\npub(crate) mod b;\n#[cfg(test)]\nmod c;\npub mod d;\nfn mod_e();\n"
        )
    };
    let path = "crates/runner/src/a.rs";
    let fault = "crates/runner/src/a.rs: the list of modules lacks `b`";
    check(&[(path, &file("//! | [`a`] | one |\n//! | [`x`], `b/` | two |\n//! | `d` | three |"))], &[]);
    check(&[(path, &file("//! | [`a`] | one |\n//! | `d` | two, not b |"))], &[fault]);
    check(&[(path, &file("//! * [`a`]: one\n//! * [`d::f`]: two"))], &[fault]);
    check(&[(path, &file("//! | `a` | one |\n//! | two | `d` |"))], &[]);
    check(&[(path, &file("//! Only `a` and `d`."))], &[]);
    check(&[("tests/e2e/a.rs", &file("//! * [`a`]: one\n//! * [`d`]: two"))], &[]);
}

#[test]
fn ports_and_only_ports_are_called_i() {
    let port = "crates/ports/src/clock.rs";
    check(&[(port, "pub trait IClock: Send {\n")], &[]);
    check(
        &[(port, "pub trait Clock {")],
        &["crates/ports/src/clock.rs:1: the name of a port must begin with I, but Clock does not"],
    );
    check(
        &[(port, "pub trait Into2 {}")],
        &["crates/ports/src/clock.rs:1: the name of a port must begin with I, but Into2 does not"],
    );
    check(&[(port, "trait Fixture {}\n// a trait of mind")], &[]);
    let fault = "crates/runner/src/a.rs:2: IRunner: only the names of ports may begin with I";
    check(&[("crates/runner/src/a.rs", "\n    pub(crate) trait IRunner<T> {}")], &[fault]);
    check(&[("crates/runner/src/a.rs", "trait Iterate {}\nlet portrait = IRunner;")], &[]);
}

#[test]
fn a_public_type_has_a_name_of_its_own() {
    let (one, other) = ("crates/domain/src/a.rs", "crates/server/src/b.rs");
    let fault =
        "crates/server/src/b.rs:2: Agent is also the name of a public type in crates/domain/src/a.rs:1";
    check(&[(one, "pub struct Agent<T>(T);"), (other, "\npub enum Agent {}")], &[fault]);
    for private in ["struct Agent;", "pub(crate) struct Agent;", "pub(super) enum Agent {}"] {
        check(&[(one, "pub struct Agent;"), (other, &format!("\n{private}"))], &[fault]);
        check(&[(one, private), (other, private)], &[]);
        check(&[(one, "pub struct Agent;"), ("crates/server/src/a/tests/b.rs", private)], &[]);
        check(&[("crates/ports/src/testing/a.rs", "pub struct Agent;"), (other, private)], &[]);
    }
    check(&[(one, "pub struct Agent;"), (other, "pub type Agents = ();")], &[]);
    check(&[(one, "pub struct Agent;"), ("tests/e2e/b.rs", "pub struct Agent;")], &[]);
}

#[test]
fn sql_is_in_persistence_and_migrations_only() {
    let fault = &["crates/application/src/a.rs:1: SQL belongs in persistence and migrations"];
    for sql in ["SELECT id FROM x", "INSERT INTO x", "UPDATE x SET a = 1", "DELETE FROM x", "CREATE TABLE x"]
    {
        check(&[("crates/application/src/a.rs", sql)], fault);
        check(&[("crates/persistence/src/a.rs", sql), ("migrations/0001_a.sql", sql)], &[]);
    }
    check(&[("crates/application/src/a.rs", "// UPDATE is not meant here\nselect! {}")], &[]);
}

#[test]
fn migrations_are_numbered_without_a_hole() {
    check(&[("migrations/0001_a.sql", ""), ("migrations/0002_b.sql", "")], &[]);
    check(&[("migrations/0001_a.sql", ""), ("migrations/postgres/0001_a.sql", "")], &[]);
    check(
        &[("migrations/0001_a.sql", ""), ("migrations/0003_b.sql", "")],
        &["migrations/0003_b.sql: the name of the next migration must begin with 0002_ and end with .sql"],
    );
    check(
        &[("migrations/0001_a.sql", ""), ("migrations/0001_b.sql", "")],
        &["migrations/0001_b.sql: the name of the next migration must begin with 0002_ and end with .sql"],
    );
}

#[test]
fn no_path_of_the_machine_it_was_written_on() {
    check(&[("README.md", "cd /somewhere/project")], &["README.md:1: a path of this machine"]);
    check(&[("README.md", "see\n/home/jo/notes")], &["README.md:2: a path of this machine"]);
    check(&[("README.md", "/home/joanna/ or /tmp/x or web/home/jo/x or /somewhere/projects/")], &[]);
}

#[test]
fn every_problem_code_is_in_the_protocol() {
    let code = "    ($name:ident $word:literal)\n/// a \"free\" WORD\n    Busy \"busy\" OK false \"Busy\"\n        \"Told \";\n\
                NotFound  \"not_found\" NOT_FOUND false \"x\"\n";
    check(&[(PROBLEM_CODES, code), (PROTOCOL, "| `not_found` | 404 |\n| `busy` | 503 |")], &[]);
    let missing = "docs/reference/protocol/problems.md: the problem code `busy` of crates/presentation/src/error/codes.rs is missing";
    check(&[(PROBLEM_CODES, code), (PROTOCOL, "| `not_found` | 404 | when it is `busy`")], &[missing]);
    check(&[(PROBLEM_CODES, code)], &[]);
    let none = "crates/presentation/src/error/codes.rs: found no problem codes";
    check(&[(PROBLEM_CODES, "enum Code {}"), (PROTOCOL, "")], &[none]);
}

#[test]
fn links_lead_somewhere() {
    let missing = "docs/a.md:1: missing.md: no such file";
    check(
        &[("docs/a.md", "[a](missing.md), ![b](https://example.org/x.png), [c](mailto:a@example.org)")],
        &[missing],
    );
    check(
        &[("docs/a.md", "```\n[a](missing.md)\n```\n<img src=\"gone.gif\">")],
        &["docs/a.md:4: gone.gif: no such file"],
    );
    check(
        &[("docs/a.md", "# What: it is\n[x](#what-it-is) [y](#what)")],
        &["docs/a.md:2: #what: no such heading"],
    );
    check(&[("crates/parser/src/fixtures/recorded.md", "[a](missing.md)")], &[]);
    check(
        &[("crates/ports/README.md", "[a](missing.md)")],
        &["crates/ports/README.md:1: missing.md: no such file"],
    );
}

#[test]
fn a_link_to_a_file_that_is_there_is_alive() {
    let root = crate::workspace::root();
    let text = "[a](Cargo.toml) [b](xtask/src/main.rs#L1) [c](../missing)";
    let source = Source { path: "README.md".into(), text: text.into() };
    assert_eq!(faults(&[source], &root, None), ["README.md:1: ../missing: no such file"]);
}

#[test]
fn nothing_is_handed_to_a_shell() {
    let (path, shell) = ("crates/runner/src/a.rs", "Command::new(\"sh\").args([\"-c\", words])");
    let fault =
        "crates/runner/src/a.rs:2: sh is a shell or equivalent: start programs with arguments instead";
    check(&[(path, &format!("\n{shell}"))], &[fault]);
    check(&[(path, "let program = \"/bin/bash\";")], &[&fault.replace(":2: sh", ":1: bash")]);
    check(&[("crates/runner/src/a/tests.rs", shell), ("xtask/src/a.rs", shell)], &[]);
    check(&[(path, "let fish = shell(\"shut\");")], &[]);
}

#[test]
fn what_users_say_is_not_logged() {
    let path = "crates/runner/src/a.rs";
    let fault = |word: &str| format!("crates/runner/src/a.rs:2: {word} must not be logged");
    check(&[(path, "\ntracing::warn!(\n  agent = %id(1), prompt, \"it (says\",\n);")], &[&fault("prompt")]);
    check(&[(path, "\ntracing::info!(said = ?order.token, \"x\");")], &[&fault("token")]);
    check(&[(path, "\ntracing::error!(error, \"the prompt, and its token\"); let prompt = 1;")], &[]);
}
