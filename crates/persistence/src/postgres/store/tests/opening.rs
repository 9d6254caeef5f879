//! Opening a database: the errors tell an operator why it cannot be used.

use tokenrail_test_postgres::{Flush, Replication, Server};

use super::*;
use crate::postgres::database::steps::RELEASED;

/// Why the store does not open.
async fn refused(config: PostgresConfig) -> PostgresOpenError {
    let Err(error) = PostgresStore::open(config).await else { panic!("it opened") };
    error
}

#[tokio::test]
async fn a_database_is_migrated_once_however_many_open_it_at_once() {
    let database = tokenrail_test_postgres::database();
    let opening = (0..6).map(|_| PostgresStore::open(config(&database)));
    for opened in futures_util::future::join_all(opening).await {
        opened.unwrap().check().await.unwrap();
    }
    let newest = format!("1|{}|1", RELEASED.schema());
    assert_eq!(database.sql("SELECT one, schema, compatible_from FROM cluster"), newest);
    let id = database.sql("SELECT id FROM cluster");
    drop(PostgresStore::open(config(&database)).await.unwrap());
    assert_eq!(database.sql("SELECT id FROM cluster"), id);
}

#[tokio::test]
async fn a_wrong_password_user_or_database_is_named() {
    let database = tokenrail_test_postgres::database();
    let wrong = PostgresConfig { password: Some(Password::new("wrong")), ..config(&database) };
    let error = refused(wrong).await;
    assert!(matches!(&error, PostgresOpenError::Refused { user, .. } if user == "tokenrail"), "{error:?}");
    assert!(error.to_string().contains("PGPASSWORD"));
    let error = refused(PostgresConfig { password: None, ..config(&database) }).await;
    assert!(error.to_string().contains("PGPASSWORD"), "{error:?}");
    let error = refused(PostgresConfig { url: format!("{}x", database.url()), ..config(&database) }).await;
    assert!(matches!(&error, PostgresOpenError::NoDatabase { .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_named() {
    let server = Server::start(Flush::Off);
    let database = server.database();
    server.stop();
    let error = refused(config(&database)).await;
    assert!(matches!(&error, PostgresOpenError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
}

#[tokio::test]
async fn a_replica_is_refused() {
    let primary = Server::start(Flush::Off);
    let database = primary.database();
    drop(PostgresStore::open(config(&database)).await.unwrap());
    let standby = primary.standby(Replication::Asynchronous);
    let replica = PostgresConfig { url: standby.url_of(&database), ..config(&database) };
    let error = refused(replica.clone()).await;
    assert!(matches!(error, PostgresOpenError::ReadOnly), "{error:?}");
    standby.promote();
    PostgresStore::open(replica).await.unwrap().check().await.unwrap();
}

#[tokio::test]
async fn a_user_who_may_not_create_tables_is_told_so() {
    let database = tokenrail_test_postgres::database();
    database.sql(&format!("ALTER DATABASE {} OWNER TO postgres", database.name()));
    let error = refused(config(&database)).await;
    assert!(matches!(&error, PostgresOpenError::NotAllowed { .. }), "{error:?}");
    assert!(error.to_string().contains("owner"), "{error}");
}

#[tokio::test]
async fn a_database_of_another_program_is_not_touched() {
    let database = tokenrail_test_postgres::database();
    database.sql("CREATE TABLE public.orders (id int)");
    let error = refused(config(&database)).await;
    assert!(matches!(error, PostgresOpenError::Foreign { .. }), "{error:?}");
    assert_eq!(database.sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), "1");
    let database = tokenrail_test_postgres::database();
    database.sql("CREATE TABLE public.cluster (id int); GRANT ALL ON public.cluster TO tokenrail");
    let error = refused(config(&database)).await;
    assert!(matches!(error, PostgresOpenError::Foreign { .. }), "{error:?}");
}

#[tokio::test]
async fn a_newer_schema_is_used_if_it_is_compatible_and_refused_if_not() {
    let (store, database) = fresh().await;
    store.close().await;
    let newer = RELEASED.schema() + 1;
    database.sql(&format!("UPDATE cluster SET schema = {newer}"));
    PostgresStore::open(config(&database)).await.unwrap().check().await.unwrap();
    assert_eq!(database.sql("SELECT schema FROM cluster"), newer.to_string());
    database.sql(&format!("UPDATE cluster SET compatible_from = {newer}"));
    let error = refused(config(&database)).await;
    let PostgresOpenError::NewerSchema { required, known } = error else { panic!("{error:?}") };
    assert_eq!((required, known), (newer, RELEASED.schema()));
}

#[tokio::test]
async fn a_host_that_is_down_is_passed_over() {
    let (down, up) = (Server::start(Flush::Off), Server::start(Flush::Off));
    let database = up.database();
    down.stop();
    let url = database.url().replace('@', &format!("@{},", down.address()));
    let both = PostgresConfig { url, ..config(&database) };
    PostgresStore::open(both).await.unwrap().check().await.unwrap();
}

fn fixture(name: &str) -> String {
    format!("{}/../../tests/fixtures/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Gives the server the certificate `first`, which is valid for 127.0.0.1.
fn encrypt(server: &Server) {
    for (name, file) in [("first.pem", "server.crt"), ("first.key", "server.key")] {
        let text = std::fs::read_to_string(fixture(name)).unwrap();
        let lines = format!("SELECT unnest(string_to_array('{}', E'\\n'))", text.trim_end());
        server.sql(&format!("COPY ({lines}) TO PROGRAM 'umask 077; cat > {file}'"));
    }
    server.sql("ALTER SYSTEM SET ssl = on");
    server.sql("SELECT pg_reload_conf()");
    until("TLS", || server.sql("SHOW ssl") == "on");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_known_by_its_certificate_if_that_is_asked_for() {
    let server = Server::start(Flush::Off);
    encrypt(&server);
    let database = server.database();
    let with = |query: String| PostgresConfig { url: database.url() + &query, ..config(&database) };
    let root = |file: &str| format!("?sslmode=verify-full&sslrootcert={}", fixture(file));
    let encrypted =
        "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'tokenrail'";
    for (query, is_encrypted) in [
        (String::new(), "t"),
        ("?sslmode=require".to_owned(), "t"),
        (root("ca.pem"), "t"),
        ("?sslmode=disable".to_owned(), "f"),
    ] {
        let store = PostgresStore::open(with(query)).await.unwrap();
        store.check().await.unwrap();
        assert_eq!(database.sql(encrypted), is_encrypted);
        store.close().await;
        drop(store);
        until("the end of the connections", || database.sql(encrypted).is_empty());
    }
    let error = refused(with(root("expired.pem"))).await;
    assert!(error.to_string().contains("certificate"), "{error:?}");
    let error = refused(with(root("missing.pem"))).await;
    assert!(matches!(&error, PostgresOpenError::Tls { .. }), "{error:?}");
    server.sql("ALTER SYSTEM SET ssl = off");
    server.sql("SELECT pg_reload_conf()");
    until("no TLS", || server.sql("SHOW ssl") == "off");
    let error = refused(with("?sslmode=require".to_owned())).await;
    assert!(matches!(&error, PostgresOpenError::Tls { .. }), "{error:?}");
}

#[tokio::test]
async fn people_can_read_what_agents_said() {
    let (store, database) = fresh().await;
    let (agent, _) = running(&store, 1).await;
    let shown = |columns: &str, view: &str| database.sql(&format!("SELECT {columns} FROM readable_{view}"));
    assert_eq!(shown("id, type, prompt, running", "agents"), format!("{}|demo|count to three|t", agent.id));
    assert_eq!(shown("number, state, prompt", "turns"), "1|running|count to three");
    assert_eq!(shown("type, content", "messages"), "user|count to three");
    database.sql(r"UPDATE agents SET prompt = '\x61ff0062'");
    assert_eq!(shown("prompt", "agents"), r"a\377\000b");
}
