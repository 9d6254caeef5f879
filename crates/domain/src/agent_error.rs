//! Errors in an agent or around it.

/// An error in the agent or around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentError {
    pub class: ErrorClass,
    /// Tokenrail's own code, for example `idle_timeout`. `None` if the error comes from the agent.
    pub code: Option<String>,
    /// The error message: a sentence.
    pub text: String,
    pub retry_after_ms: Option<u64>,
    /// Whether the same prompt may succeed later.
    pub recoverable: bool,
}

impl AgentError {
    /// An error of this class. The class determines whether the same prompt may succeed later: see
    /// [`ErrorClass::is_recoverable`].
    pub fn new(class: ErrorClass, code: Option<&str>, text: impl Into<String>) -> Self {
        Self {
            class,
            code: code.map(str::to_owned),
            text: text.into(),
            retry_after_ms: None,
            recoverable: class.is_recoverable(),
        }
    }

    /// The same error, marked as recoverable whatever its class is.
    #[must_use]
    pub fn recoverable(self) -> Self {
        Self { recoverable: true, ..self }
    }
}

/// The class of an error, by what can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    RateLimit,
    Overloaded,
    Authentication,
    InvalidRequest,
    Network,
    Timeout,
    /// The agent's process could not start, or exited abnormally.
    Process,
    /// The agent printed invalid output.
    Protocol,
    Unknown,
}

impl ErrorClass {
    pub const ALL: [Self; 9] = [
        Self::RateLimit,
        Self::Overloaded,
        Self::Authentication,
        Self::InvalidRequest,
        Self::Network,
        Self::Timeout,
        Self::Process,
        Self::Protocol,
        Self::Unknown,
    ];

    /// The name of the class in the API and the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::Authentication => "authentication",
            Self::InvalidRequest => "invalid_request",
            Self::Network => "network",
            Self::Timeout => "timeout",
            Self::Process => "process",
            Self::Protocol => "protocol",
            Self::Unknown => "unknown",
        }
    }

    /// The inverse of [`ErrorClass::as_str`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == name)
    }

    /// Whether the same request may succeed later without a change.
    pub fn is_recoverable(self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded | Self::Network | Self::Timeout)
    }
}
