//! People and service accounts of a tenant, written straight into the database, as a test about
//! access begins with them.

use super::App;
use agent_runtime::authn::bearer;
use agent_runtime::secret::Secret;
use sha2::{Digest, Sha256};
use uuid::Uuid;

impl App {
    fn user(&self, kind: &str, display_name: &str, email: Option<&str>) -> Uuid {
        let (tenant_id, user_id) = (self.seeds.tenant_id, self.clock.new_id());
        let key = email.map(str::to_lowercase);
        let mut client = self.database.client();
        let mut transaction = client.transaction().unwrap();
        transaction
            .execute(
                "insert into users (tenant_id, user_id, display_name, created_at, kind, email,
                 email_key, tenant_role) values ($1, $2, $3, now(), $4, $5, $6, 'member')",
                &[&tenant_id, &user_id, &display_name, &kind, &email, &key],
            )
            .unwrap();
        transaction
            .execute(
                "insert into authz_objects (tenant_id, object) values ($1, $2)
                 on conflict (tenant_id, object) do update set desired = authz_objects.desired + 1",
                &[&tenant_id, &format!("tenant:{tenant_id}")],
            )
            .unwrap();
        transaction.commit().unwrap();
        user_id
    }

    /// A member of the tenant.
    pub(crate) fn person(&self, display_name: &str, email: &str) -> Uuid {
        self.user("person", display_name, Some(email))
    }

    /// A service account of the tenant.
    pub(crate) fn service_account(&self, display_name: &str) -> Uuid {
        self.user("service-account", display_name, None)
    }

    /// Says in SQL what no route says, such as what an older version left behind.
    pub(crate) fn sql(&self, statement: &str) {
        self.database.client().batch_execute(statement).unwrap();
    }

    /// As [`App::sql`], where permissions of an object change with it.
    pub(crate) fn marked_sql(&self, object: &str, statement: &str) {
        self.sql(&format!(
            "begin; {statement};
             insert into authz_objects (tenant_id, object) values ('{}', '{object}')
               on conflict (tenant_id, object) do update set desired = authz_objects.desired + 1;
             commit",
            self.seeds.tenant_id
        ));
    }

    /// A client of this user's, with a key that may do whatever they may.
    pub(crate) fn as_user(&self, user_id: Uuid) -> super::Client {
        let token: Secret = bearer::mint().unwrap();
        let digest = Sha256::digest(token.expose()).to_vec();
        self.database
            .client()
            .execute(
                "insert into tokens (tenant_id, token_id, user_id, name, digest, last_four,
                 created_at) values ($1, $2, $3, 'key', $4, 'last', now())",
                &[
                    &self.seeds.tenant_id,
                    &self.clock.new_id(),
                    &user_id,
                    &digest,
                ],
            )
            .unwrap();
        self.with_token(Some(token.expose()))
    }

    /// Deactivates a user, without what the route ends with them.
    pub(crate) fn deactivate(&self, user_id: Uuid) {
        self.sql(&format!(
            "update users set deactivated_at = now() where user_id = '{user_id}'"
        ));
    }
}
