//! The address of the database: `storage.url`.

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::postgres::config::PostgresConfig;
use crate::postgres::database::tls::ServerCheck;
use crate::postgres::error::PostgresOpenError;

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// The name under which the server shows connections.
pub(crate) const APPLICATION: &str = "tokenrail";

/// Where the server is, and how its identity is checked.
pub(crate) struct Address {
    /// One for each host, in the order in which they are tried.
    pub(crate) drivers: Vec<Config>,
    pub(crate) check: ServerCheck,
    pub(crate) user: String,
    pub(crate) database: String,
    /// For messages.
    pub(crate) hosts: String,
}

impl Address {
    pub(crate) fn of(config: &PostgresConfig) -> Result<Self, PostgresOpenError> {
        let bad = |problem: &str| PostgresOpenError::BadUrl { problem: problem.to_owned() };
        if !SCHEMES.iter().any(|scheme| config.url.starts_with(scheme)) {
            return Err(bad("it does not begin with postgres://"));
        }
        let (url, tls) = split_tls(&config.url)?;
        let mut drivers = Vec::new();
        for url in each_host(&url) {
            // The driver's error may quote the address, which may contain a password.
            let mut driver: Config = url.parse().map_err(|_| bad("the driver cannot read it"))?;
            if driver.get_password().is_some() {
                return Err(PostgresOpenError::PasswordInUrl);
            }
            if driver.get_hosts().is_empty() && driver.get_hostaddrs().is_empty() {
                return Err(bad("the host is missing"));
            }
            set_up(&mut driver, config, tls.mode);
            drivers.push(driver);
        }
        let first = drivers.first().ok_or_else(|| bad("the host is missing"))?;
        let user = first.get_user().ok_or_else(|| bad("the user is missing"))?.to_owned();
        let database = first.get_dbname().unwrap_or(&user).to_owned();
        let hosts = drivers.iter().map(host_of).collect::<Vec<_>>().join(", ");
        Ok(Self { drivers, check: tls.check, user, database, hosts })
    }
}

/// Between the checks of a connection without traffic, and how many of them may fail.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_TRIES: u32 = 3;

fn set_up(driver: &mut Config, config: &PostgresConfig, mode: SslMode) {
    if let Some(password) = &config.password {
        driver.password(password.as_str());
    }
    driver.ssl_mode(mode).application_name(APPLICATION);
    let limits = &config.limits;
    driver.connect_timeout(Duration::from_millis(limits.connect_timeout_ms));
    driver.tcp_user_timeout(Duration::from_millis(limits.tcp_user_timeout_ms));
    driver.keepalives(true).keepalives_idle(Duration::from_millis(limits.keepalive_idle_ms));
    driver.keepalives_interval(KEEPALIVE_INTERVAL).keepalives_retries(KEEPALIVE_TRIES);
}

/// The url of each host. The driver would try them one after the other too, but wait for the answer of the first one
/// that accepts a connection, even if that one is stopped.
fn each_host(url: &str) -> Vec<String> {
    let whole = || vec![url.to_owned()];
    let Some((scheme, rest)) = url.split_once("://") else { return whole() };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let Some((user, hosts)) = authority.rsplit_once('@') else { return whole() };
    hosts.split(',').map(|host| format!("{scheme}://{user}@{host}{tail}")).collect()
}

fn host_of(driver: &Config) -> String {
    let named = driver.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(folder) => folder.display().to_string(),
    });
    let numbers = driver.get_hostaddrs().iter().map(ToString::to_string);
    let hosts: Vec<String> = if driver.get_hosts().is_empty() { numbers.collect() } else { named.collect() };
    let ports: Vec<String> = driver.get_ports().iter().map(ToString::to_string).collect();
    if ports.is_empty() {
        return hosts.join(", ");
    }
    format!("{}:{}", hosts.join(", "), ports.join(", "))
}

struct TlsChoice {
    mode: SslMode,
    check: ServerCheck,
}

/// Takes `sslmode` and `sslrootcert` out of the parameters: the driver does not know all their values.
fn split_tls(url: &str) -> Result<(String, TlsChoice), PostgresOpenError> {
    let Some((before, query)) = url.split_once('?') else {
        return Ok((url.to_owned(), tls_of(None, None)?));
    };
    let (mut mode, mut root, mut rest) = (None, None, Vec::new());
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some(("sslmode", value)) => mode = Some(value),
            Some(("sslrootcert", value)) => root = Some(value),
            _ => rest.push(parameter),
        }
    }
    let url = if rest.is_empty() { before.to_owned() } else { format!("{before}?{}", rest.join("&")) };
    Ok((url, tls_of(mode, root)?))
}

/// As libpq: only `verify-full` checks that the server is the right one.
fn tls_of(mode: Option<&str>, root: Option<&str>) -> Result<TlsChoice, PostgresOpenError> {
    let (mode, check) = match mode {
        Some("disable") => (SslMode::Disable, ServerCheck::None),
        None | Some("prefer") => (SslMode::Prefer, ServerCheck::None),
        Some("require") => (SslMode::Require, ServerCheck::None),
        Some("verify-full") => {
            let roots = root.filter(|root| *root != "system").map(PathBuf::from);
            (SslMode::Require, ServerCheck::Full { roots })
        }
        Some(other) => {
            let problem =
                format!("sslmode={other} is not known; use disable, prefer, require or verify-full");
            return Err(PostgresOpenError::BadUrl { problem });
        }
    };
    if root.is_some() && check == ServerCheck::None {
        let problem = "sslrootcert has an effect only with sslmode=verify-full".to_owned();
        return Err(PostgresOpenError::BadUrl { problem });
    }
    Ok(TlsChoice { mode, check })
}

#[cfg(test)]
mod tests;
