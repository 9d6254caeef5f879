use super::*;
use crate::postgres::config::Password;

fn address(url: &str) -> Result<Address, PostgresOpenError> {
    Address::of(&PostgresConfig::new(url))
}

#[test]
fn a_url_says_where_the_database_is() {
    let found = address("postgres://ada@db1:5433,db2/tokenrail?target_session_attrs=read-write").unwrap();
    assert_eq!((&*found.user, &*found.database), ("ada", "tokenrail"));
    assert_eq!((&*found.hosts, found.drivers.len()), ("db1:5433, db2:5432", 2));
    assert_eq!(found.drivers[1].get_ssl_mode(), SslMode::Prefer);
    assert_eq!(address("postgresql://ada@db1").unwrap().database, "ada", "as for other programs");
}

#[test]
fn a_password_is_given_beside_the_url_and_never_shown() {
    let refused = address("postgres://ada:secret@db1/tokenrail").err().unwrap();
    assert!(matches!(refused, PostgresOpenError::PasswordInUrl), "{refused:?}");
    assert!(!format!("{refused} {refused:?}").contains("secret"));
    let password = Some(Password::new("secret"));
    let config = PostgresConfig { password, ..PostgresConfig::new("postgres://ada@db1/tokenrail") };
    assert!(!format!("{config:?}").contains("secret"));
    assert_eq!(Address::of(&config).unwrap().drivers[0].get_password(), Some(&b"secret"[..]));
}

#[test]
fn only_verify_full_checks_the_server() {
    for (query, mode, check) in [
        ("?sslmode=disable", SslMode::Disable, ServerCheck::None),
        ("?sslmode=require&connect_timeout=3", SslMode::Require, ServerCheck::None),
        ("?sslmode=verify-full", SslMode::Require, ServerCheck::Full { roots: None }),
        (
            "?sslmode=verify-full&sslrootcert=/etc/ca.pem",
            SslMode::Require,
            ServerCheck::Full { roots: Some("/etc/ca.pem".into()) },
        ),
    ] {
        let found = address(&format!("postgres://ada@db1/tokenrail{query}")).unwrap();
        assert_eq!((found.drivers[0].get_ssl_mode(), found.check), (mode, check), "{query}");
    }
}

#[test]
fn a_url_that_cannot_be_used_is_refused_with_a_reason() {
    for (url, reason) in [
        ("mysql://ada@db1/x", "postgres://"),
        ("postgres://db1/x", "user"),
        ("postgres://ada@/x", "host"),
        ("postgres://ada@db1:port/x", "driver"),
        ("postgres://ada@db1/x?sslmode=verify-ca", "verify-full"),
        ("postgres://ada@db1/x?sslmode=require&sslrootcert=/ca.pem", "sslrootcert"),
    ] {
        let refused = address(url).err().unwrap().to_string();
        assert!(refused.contains(reason), "{url}: {refused}");
    }
}
