//! A model provider as it is asked: its row with its keys as they are at this moment.

use super::services::Services;
use crate::failure::Failure;
use crate::model::{Probe, Probed, Provider, ProviderOptions};
use crate::outbound::{Peer, Policy, Timeouts};
use crate::secret::Secret;
use crate::secrets::{SecretRef, Unreadable};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How long one call of a check may take.
const CALL_TIME: Duration = Duration::from_secs(30);

/// What a provider's row says.
#[derive(Debug, Clone, Copy)]
pub struct ProviderRow<'a> {
    /// Its tenant.
    pub tenant_id: Uuid,
    /// Its id.
    pub model_provider_id: Uuid,
    /// Where it is.
    pub base_url: &'a str,
    /// The name of the operator's key that it takes.
    pub api_key_name: Option<&'a str>,
    /// The secret that is its key.
    pub api_key_secret: Option<&'a SecretRef>,
    /// How it is asked.
    pub options: &'a Value,
}

/// A check of a provider.
pub struct ProviderCheck<'a> {
    /// What its row says.
    pub row: ProviderRow<'a>,
    /// The model that is asked.
    pub model: &'a str,
    /// The models that are registered.
    pub registered: &'a [String],
    /// No call begins after this.
    pub time: Duration,
}

impl ProviderCheck<'_> {
    /// Asks a provider's server as an agent does.
    ///
    /// # Errors
    /// Why nothing can be asked, as a sentence.
    pub(super) fn run(&self, services: &Services) -> Result<Probed, String> {
        let until = Instant::now() + self.time;
        let provider = self.row.resolve(services);
        let provider = provider.map_err(|refused| refused.failure.message)?;
        let timeouts = Timeouts {
            connect: services.options.model_timeouts.connect,
            first_byte: CALL_TIME,
            idle: Some(CALL_TIME),
            total: CALL_TIME,
        };
        let policy = Policy::Tenant(services.options.host_access);
        let client = services.outbound.client_through_proxy(policy, timeouts);
        let probe = Probe {
            clock: &services.clock,
            client: &mut client.to(Peer::ModelProvider),
            provider: &provider,
            model: self.model,
            registered: self.registered,
            until,
        };
        Ok(probe.run())
    }
}

/// Why nothing can be asked.
pub(super) struct Refused {
    pub(super) failure: Failure,
    /// Another try may help.
    pub(super) retryable: bool,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            retryable: false,
        }
    }
}

impl ProviderRow<'_> {
    /// Reads its keys.
    pub(super) fn resolve(self, services: &Services) -> Result<Provider, Refused> {
        let options = ProviderOptions::deserialize(self.options)
            .map_err(|_| Failure::of(&[&"The model provider's options cannot be read."]))?;
        let api_key = match (self.api_key_name, self.api_key_secret) {
            (Some(name), _) => Some(self.listed_key(services, name)?),
            (None, Some(at)) => Some(self.secret_key(services, at)?),
            (None, None) => None,
        };
        let headers = options.headers.iter().map(|header| {
            let value = match (&header.value, &header.key_name) {
                (_, Some(name)) => self.listed_key(services, name)?,
                (value, None) => Secret::new(value.clone().unwrap_or_default()),
            };
            Ok((header.name.to_ascii_lowercase(), value))
        });
        Ok(Provider {
            id: self.model_provider_id,
            memory: Arc::clone(&services.quirks),
            base_url: self.base_url.to_owned(),
            api_key,
            headers: headers.collect::<Result<_, Refused>>()?,
            options,
        })
    }

    /// A key that the operator listed.
    fn listed_key(self, services: &Services, name: &str) -> Result<Secret, Refused> {
        let key = services.model_keys.of(name, self.base_url);
        let unusable =
            |said| Failure::quoting(said, "The model provider's API key cannot be used.");
        Ok(key.map_err(unusable)?.clone())
    }

    fn secret_key(self, services: &Services, at: &SecretRef) -> Result<Secret, Refused> {
        let read = services.secrets.resolve(self.tenant_id, at);
        let key = read.map_err(|unreadable| Refused {
            failure: Failure::quoting(
                format!(
                    "The model provider's API key cannot be read: {}",
                    unreadable.sentence(at)
                ),
                "The model provider's API key cannot be read.",
            ),
            retryable: matches!(
                unreadable,
                Unreadable::Unavailable(_) | Unreadable::DatabaseAway(_)
            ),
        })?;
        let fits = key.expose().bytes().all(|byte| byte.is_ascii_graphic());
        if !fits {
            let said = format!(
                "The secret {at} is no API key: one has visible ASCII characters alone, without spaces and line ends."
            );
            let failure = Failure::quoting(said, "The model provider's secret is no API key.");
            return Err(failure.into());
        }
        Ok(key)
    }
}
