use super::*;

const URL: &str = "postgres://me@db1,db2/tokenrail?target_session_attrs=read-write";

fn storage(settings: &str, env: &[(&str, &str)]) -> StorageConfig {
    load(Some(&format!("[storage]\n{settings}\n")), env).unwrap().storage
}

#[test]
fn without_a_url_the_data_is_in_the_data_folder() {
    assert_eq!(load(None, &[]).unwrap().storage, StorageConfig::Sqlite { synchronous: SyncMode::Full });
    let normal = StorageConfig::Sqlite { synchronous: SyncMode::Normal };
    assert_eq!(storage("synchronous = \"normal\"", &[("PGPASSWORD", "s3cret")]), normal);
    check_wrong("[storage]\nsynchronous = \"ful\"\n", "did you mean `full`?");
    check_wrong(
        "[storage]\npassword_file = \"p\"\n",
        "tokenrail.toml:2: storage.password_file: only for PostgreSQL",
    );
    check_wrong(
        "[storage]\ndurability = \"auto\"\n",
        "tokenrail.toml:2: storage.durability: only for PostgreSQL",
    );
}

#[test]
fn the_password_of_the_database_is_in_a_file_or_in_a_variable() {
    let file = format!("url = \"{URL}\"\npassword_file = \"~/pg\"\ndurability = \"replicated\"");
    let StorageConfig::Postgres(block) = storage(&file, &[("PGPASSWORD", "s3cret")]) else { panic!("a url") };
    assert_eq!((&*block.url, block.durability), (URL, DurabilityMode::Replicated));
    let PasswordSource::File(path) = block.password else { panic!("the file wins") };
    assert!(path.is_absolute() && path.ends_with("pg") && !path.starts_with("/~"), "{path:?}");

    let env = [("TOKENRAIL_STORAGE_URL", URL), ("PGPASSWORD", "s3cret")];
    let config = load(None, &env).unwrap();
    assert!(!format!("{config:?}").contains("s3cret"));
    let StorageConfig::Postgres(block) = config.storage else { panic!("a url") };
    assert!(matches!(block.password, PasswordSource::Variable(password) if password.reveal() == "s3cret"));
    assert_eq!(block.durability, DurabilityMode::Auto);
}

#[test]
fn a_url_with_a_password_is_refused_and_not_repeated() {
    let error = load(Some("[storage]\nurl = \"postgres://me:s3cret@db/t\"\n"), &[]).unwrap_err().to_string();
    assert!(error.contains("tokenrail.toml:2: storage.url: must not contain a password"), "{error}");
    assert!(error.contains("storage.password_file") && !error.contains("s3cret"), "{error}");
    let env = [("TOKENRAIL_STORAGE_URL", "postgres://me:s3cret@db/t")];
    let error = load(None, &env).unwrap_err().to_string();
    assert!(
        error.starts_with("TOKENRAIL_STORAGE_URL: storage.url: ") && !error.contains("s3cret"),
        "{error}"
    );
}

#[test]
fn what_is_meant_for_sqlite_is_an_error_beside_a_url() {
    let url = format!("[storage]\nurl = \"{URL}\"\n");
    check_wrong(
        &format!("{url}synchronous = \"full\"\n"),
        "tokenrail.toml:3: storage.synchronous: only for SQLite",
    );
    check_wrong(
        &format!("{url}[limits]\nwal_bytes = 67108864\n"),
        "tokenrail.toml:4: limits.wal_bytes: only for SQLite",
    );
    let env = [("tokenrail_limits_wipe_bytes", "1"), ("TOKENRAIL_LIMITS_FLOOD_REST", "1")];
    let error = load(Some(&url), &env).unwrap_err().to_string();
    assert!(error.starts_with("TOKENRAIL_LIMITS_FLOOD_REST: limits.flood_rest: only for SQLite"), "{error}");
}

#[test]
fn what_is_meant_for_postgres_is_an_error_without_a_url() {
    check_wrong(
        "[limits]\npostgres_writers = 8\n",
        "tokenrail.toml:2: limits.postgres_writers: only for PostgreSQL; set storage.url too",
    );
    let limits = format!(
        "[storage]\nurl = \"{URL}\"\n[limits]\npostgres_writers = 8\npostgres_answer_timeout_ms = 900\n"
    );
    let limits = crate::store::postgres_limits(&load(Some(&limits), &[]).unwrap().limits);
    assert_eq!((limits.writers, limits.answer_timeout_ms, limits.pool_connections), (8, 900, 8));
}

/// A limit of one of the two stores is in one of the two lists.
#[test]
fn the_lists_of_limits_have_the_limits_of_postgres() {
    let shown = LimitsConfig::default().to_toml();
    let keys = shown.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key);
    let mut found: Vec<_> = keys.filter(|key| key.starts_with("postgres_")).collect();
    let mut listed = crate::config::storage::LIMITS_OF_POSTGRES.to_vec();
    found.sort_unstable();
    listed.sort_unstable();
    assert_eq!(found, listed);
}

#[test]
fn the_shown_settings_of_postgres_can_be_read_again() {
    let file = format!("[storage]\nurl = \"{URL}\"\npassword_file = \"/run/secrets/pg\"\n");
    let config = load(Some(&file), &[]).unwrap();
    let shown = toml::to_string(&config.to_table()).unwrap();
    assert_eq!(load(Some(&shown), &[]).unwrap().storage, config.storage);
}

#[test]
fn agents_do_not_get_the_password_of_the_database() {
    let file = format!(
        "[storage]\nurl = \"{URL}\"\n[agents.a]\nprogram = \"p\"\npass_env = [\"PATH\", \"PGPASSWORD\"]\n"
    );
    let env = [("PGPASSWORD", "s3cret")];
    let error = load(Some(&file), &env).unwrap_err().to_string();
    assert!(
        error.contains("tokenrail.toml:5: agents.a: pass_env: agents must not get PGPASSWORD"),
        "{error}"
    );
    // Without it, the variable is the agent's own business.
    assert!(load(Some(&file), &[]).is_ok());
    let sqlite = "[agents.a]\nprogram = \"p\"\npass_env = [\"PGPASSWORD\"]\n";
    assert!(load(Some(sqlite), &env).is_ok());
}
