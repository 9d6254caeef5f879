//! From the configuration to what opens connections.

use std::sync::Arc;

use tokio::runtime::Handle;

use crate::postgres::config::PostgresConfig;
use crate::postgres::database::address::Address;
use crate::postgres::database::known_server::KnownServer;
use crate::postgres::database::link::Connector;
use crate::postgres::database::opening_places::OpeningPlaces;
use crate::postgres::database::steps::{RELEASED, WITH_TEST_STEP};
use crate::postgres::database::tls;
use crate::postgres::error::PostgresOpenError;
use crate::postgres::figures::Figures;

impl Connector {
    /// Its connections run on the current runtime.
    pub(crate) fn of(config: PostgresConfig) -> Result<Self, PostgresOpenError> {
        let address = Address::of(&config)?;
        let tls = tls::connector(&address.check)?;
        let PostgresConfig { url: _, password: _, durability, limits, node: _, server_file, has_test_step } =
            config;
        let steps = if has_test_step { &WITH_TEST_STEP } else { &RELEASED };
        let places = address.drivers.iter().map(|_| OpeningPlaces::new(limits.openings)).collect();
        let known = Arc::new(KnownServer::new(server_file));
        let (figures, runtime) = (Figures::default(), Handle::current());
        Ok(Self { address, tls, durability, limits, figures, steps, known, places, runtime })
    }
}
