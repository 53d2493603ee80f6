//! Webhook endpoints of a tenant, as access is checked on them. An endpoint that was unregistered is
//! not found.

use super::{Find, Sql};
use crate::error::Result;
use crate::proof::{Kind, Place};
use crate::sql;
use uuid::Uuid;

/// A webhook endpoint.
#[derive(Debug, Clone)]
pub struct WebhookEndpoint {
    /// Its id.
    pub endpoint_id: Uuid,
}

impl Kind for WebhookEndpoint {
    const NAME: &'static str = "webhook-endpoint";
    fn id(&self) -> Uuid {
        self.endpoint_id
    }
    fn place(&self) -> Place {
        Place::OnTenant
    }
}

impl Find for WebhookEndpoint {
    fn find(sql: &mut impl Sql, tenant_id: Uuid, id: Uuid) -> Result<Option<Self>> {
        let row = sql.query_opt(sql!("webhook_endpoints/find"), &[&tenant_id, &id])?;
        Ok(row.map(|row| Self {
            endpoint_id: row.get(0),
        }))
    }
}
