//! The server that commands connect to, and the token for it from the environment.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use reqwest::Url;

use super::Flags;
use super::problem::ConfigError;

/// The variable that holds the access token. It is never passed to agents.
pub(crate) const TOKEN_VARIABLE: &str = "TOKENRAIL_TOKEN";
/// The maximum length of a token, in bytes: that of a header that every server and proxy accepts.
const TOKEN_BYTES: usize = 4096;
const EXAMPLE_URL: &str = "https://agents.example.com";

/// A value of the command line, and the flag or variable that set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    pub text: String,
    /// Its name, such as `--listen` or `TOKENRAIL_LISTEN`.
    pub by: &'static str,
}

impl Given {
    fn is_flag(&self) -> bool {
        self.by.starts_with("--")
    }
}

/// Which server the commands connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The server that uses the data folder.
    DataFolder,
    /// The address of `--listen` or its variable, and no other.
    Address(SocketAddr),
    /// The URL of `--url` or its variable, and no other. The data folder is not read.
    Url(Url),
}

impl Target {
    /// A flag wins over a variable, and of two variables the URL wins: the other one may be for `serve`.
    pub(super) fn of(flags: &Flags, listen: SocketAddr) -> Result<Self, ConfigError> {
        let url = flags.url.as_ref().filter(|given| !given.text.is_empty());
        let url = url.map(|given| Ok::<_, ConfigError>((given, parse(given)?))).transpose()?;
        match (url, &flags.listen) {
            (Some((given, _)), Some(listen)) if given.is_flag() && listen.is_flag() => {
                let message = "--url and --listen both name a server; use only one of them";
                Err(ConfigError::Setting(message.to_owned()))
            }
            (Some((given, _)), Some(named)) if named.is_flag() && !given.is_flag() => {
                Ok(Self::Address(listen))
            }
            (Some((_, url)), _) => Ok(Self::Url(url)),
            (None, Some(_)) => Ok(Self::Address(listen)),
            (None, None) => Ok(Self::DataFolder),
        }
    }
}

/// Errors do not repeat the text, because it may contain a token or a password.
fn parse(given: &Given) -> Result<Url, ConfigError> {
    let wrong = |why: String| {
        ConfigError::Setting(format!("{}: {why}; expected a form like {EXAMPLE_URL}", given.by))
    };
    let lower = given.text.to_ascii_lowercase();
    if !(lower.starts_with("http://") || lower.starts_with("https://")) {
        return Err(wrong("the URL must begin with http:// or https://".to_owned()));
    }
    let url = Url::parse(&given.text).map_err(|error| wrong(format!("invalid URL: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        let why = "the URL must not contain a user name or password";
        return Err(wrong(format!("{why}; set the token in {TOKEN_VARIABLE}")));
    }
    if url.query().is_some() || url.fragment().is_some() {
        let why = "the URL must not contain \"?\" or \"#\"";
        return Err(wrong(format!("{why}; set the token in {TOKEN_VARIABLE}")));
    }
    Ok(url)
}

/// The access token of the environment. It must never be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct EnvToken(String);

impl EnvToken {
    pub(super) fn of(env: &BTreeMap<String, String>) -> Result<Option<Self>, ConfigError> {
        let Some(token) = env.get(TOKEN_VARIABLE).map(|token| token.trim()).filter(|it| !it.is_empty())
        else {
            return Ok(None);
        };
        if TOKEN_BYTES < token.len() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message = "not a token; set it to what `tokenrail token` prints on the server's machine";
            return Err(ConfigError::Variable {
                variable: TOKEN_VARIABLE.to_owned(),
                message: message.to_owned(),
            });
        }
        Ok(Some(Self(token.to_owned())))
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for EnvToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EnvToken(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: Option<(&str, &'static str)>, listen: Option<&'static str>) -> Result<Target, String> {
        let given = |(text, by): (&str, &'static str)| Given { text: text.to_owned(), by };
        let listen = listen.map(|by| given(("127.0.0.1:1", by)));
        let flags = Flags { url: url.map(given), listen, ..Flags::default() };
        Target::of(&flags, ([127, 0, 0, 1], 1).into()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_flag_names_the_server_before_a_variable_does() {
        let url = Target::Url(Url::parse("https://box/").unwrap());
        let address = Target::Address(([127, 0, 0, 1], 1).into());
        let (flag, variable) = (Some(("https://box", "--url")), Some(("https://box", "TOKENRAIL_URL")));
        assert_eq!(target(None, None).unwrap(), Target::DataFolder);
        assert_eq!(target(Some(("", "TOKENRAIL_URL")), None).unwrap(), Target::DataFolder);
        assert_eq!(target(flag, Some("TOKENRAIL_LISTEN")).unwrap(), url);
        assert_eq!(target(variable, Some("TOKENRAIL_LISTEN")).unwrap(), url);
        assert_eq!(target(variable, Some("--listen")).unwrap(), address);
        assert!(target(flag, Some("--listen")).unwrap_err().contains("use only one of them"));
    }

    #[test]
    fn an_invalid_url_is_explained_without_its_secrets() {
        for (text, why) in [
            ("box:7117", "must begin with http:// or https://"),
            ("ftp://box", "must begin with http:// or https://"),
            ("https://", "invalid URL"),
            ("https://me:s3cret@box", "must not contain a user name or password"),
            ("http://box/#token=s3cret", "set the token in TOKENRAIL_TOKEN"),
            ("http://box/?token=s3cret", "set the token in TOKENRAIL_TOKEN"),
        ] {
            let error = target(Some((text, "TOKENRAIL_URL")), None).unwrap_err();
            assert!(error.starts_with("TOKENRAIL_URL: ") && error.contains(why), "{error}");
            assert!(error.contains("https://agents.example.com") && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn the_token_of_the_environment_is_checked_and_never_shown() {
        let env = |token: &str| BTreeMap::from([(TOKEN_VARIABLE.to_owned(), token.to_owned())]);
        assert_eq!(EnvToken::of(&env(" \n")).unwrap(), None);
        let token = EnvToken::of(&env("s3cret\n")).unwrap().unwrap();
        assert_eq!(token.reveal(), "s3cret");
        assert!(!format!("{token:?}").contains("s3cret"));
        let error = EnvToken::of(&env("s3cret and more")).unwrap_err().to_string();
        assert!(error.starts_with("TOKENRAIL_TOKEN: not a token") && !error.contains("s3cret"), "{error}");
    }
}
