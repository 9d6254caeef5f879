//! TLS to the server.

use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::postgres::error::PostgresOpenError;

/// How the identity of the server is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerCheck {
    /// Not at all: the connection is encrypted, with whomever it leads to.
    None,
    /// Its certificate must be valid for its host name.
    Full {
        /// A file of certificates. `None`: those that the operating system trusts.
        roots: Option<PathBuf>,
    },
}

/// Makes TLS connections with this check.
pub(crate) fn connector(check: &ServerCheck) -> Result<MakeRustlsConnect, PostgresOpenError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?;
    let config = match check {
        ServerCheck::None => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServer(provider)))
            .with_no_client_auth(),
        ServerCheck::Full { roots } => {
            builder.with_root_certificates(trusted(roots.as_deref())?).with_no_client_auth()
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

fn trusted(file: Option<&Path>) -> Result<RootCertStore, PostgresOpenError> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        let native = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(native.certs);
        if roots.is_empty() {
            let problem = "the operating system trusts no certificates; set sslrootcert".to_owned();
            return Err(PostgresOpenError::Tls { problem });
        }
        return Ok(roots);
    };
    let broken = |error: &dyn std::error::Error| PostgresOpenError::Tls {
        problem: format!("cannot read the certificates in {}: {error}", file.display()),
    };
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| broken(&error))? {
        let certificate = certificate.map_err(|error| broken(&error))?;
        roots.add(certificate).map_err(|error| broken(&error))?;
    }
    if roots.is_empty() {
        let problem = format!("{} contains no certificate", file.display());
        return Err(PostgresOpenError::Tls { problem });
    }
    Ok(roots)
}

fn failed(error: &dyn std::error::Error) -> PostgresOpenError {
    PostgresOpenError::Tls { problem: error.to_string() }
}

/// What is wrong with TLS, if that is why there is no connection.
pub(crate) fn problem_of(error: &tokio_postgres::Error) -> Option<String> {
    let cause = error.source()?;
    if error.to_string() == "error performing TLS handshake" {
        return Some(cause.to_string());
    }
    let refused = cause.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(refused.to_string())
}

/// Accepts every certificate, but only from a server that has its key.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
