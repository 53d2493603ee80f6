//! Everything that the tenants have, as text: to see that nothing changed, and to put back what did.

use postgres::Client;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// A row of a table. Of a token without when it was used: that is written beside the requests.
fn row_of(table: &str) -> &'static str {
    match table {
        "tokens" => "to_jsonb(r) - 'last_used_at'",
        _ => "to_jsonb(r)",
    }
}

/// The rows, by table, and how often each object's permissions were marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rows {
    rows: BTreeSet<(String, String)>,
    marked: BTreeMap<(Uuid, String), i64>,
}

/// Rows that went and rows that came.
#[derive(Debug)]
pub(crate) struct Difference {
    went: Vec<(String, String)>,
    came: Vec<(String, String)>,
}

impl Difference {
    pub(crate) fn is_empty(&self) -> bool {
        self.went.is_empty() && self.came.is_empty()
    }

    /// The rows of one tenant among them.
    pub(crate) fn of_tenant(&self, tenant_id: Uuid) -> Vec<&(String, String)> {
        let own = format!("\"tenant_id\": \"{tenant_id}\"");
        let all = self.went.iter().chain(&self.came);
        all.filter(|(_, row)| row.contains(&own)).collect()
    }
}

/// One statement that reads every table of tenants' rows but those of the audit and of what
/// OpenFGA was told.
fn statement(client: &mut Client) -> String {
    let tables = client
        .query(
            "select c.relname::text from pg_class c
             join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'public'
             join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
             where c.relkind in ('r', 'p') and not c.relispartition
               and c.relname not like 'audit\\_%' and c.relname not like 'authz\\_%'
               and c.relname not in ('run_deltas', 'run_reasoning')
             order by 1",
            &[],
        )
        .unwrap();
    assert!(tables.len() > 20, "the tables of tenants: {tables:?}");
    let each = tables.iter().map(|row| {
        let table: String = row.get(0);
        let row = row_of(&table);
        format!("select '{table}' as t, ({row})::text from {table} r")
    });
    each.collect::<Vec<_>>().join(" union all ")
}

impl Rows {
    /// All of it, as it is now.
    pub(crate) fn read(client: &mut Client) -> Self {
        let statement = statement(client);
        let rows = client.query(&statement, &[]).unwrap();
        let marked = client
            .query("select tenant_id, object, desired from authz_objects", &[])
            .unwrap();
        Self {
            rows: rows.iter().map(|row| (row.get(0), row.get(1))).collect(),
            marked: marked
                .iter()
                .map(|row| ((row.get(0), row.get(1)), row.get(2)))
                .collect(),
        }
    }

    pub(crate) fn difference(&self, after: &Self) -> Difference {
        Difference {
            went: self.rows.difference(&after.rows).cloned().collect(),
            came: after.rows.difference(&self.rows).cloned().collect(),
        }
    }

    /// Puts the rows back, and marks what was marked since, so that it is told again.
    pub(crate) fn restore(&mut self, client: &mut Client, after: &Self) {
        let difference = self.difference(after);
        let mut tx = client.transaction().unwrap();
        // Rows go and come in any order.
        tx.batch_execute("set local session_replication_role = replica")
            .unwrap();
        for (table, row) in &difference.came {
            let row_text = row_of(table);
            let delete = format!("delete from {table} r where ({row_text})::text = $1");
            tx.execute(&delete, &[row]).unwrap();
        }
        for (table, row) in &difference.went {
            let insert = format!(
                "insert into {table} select * from jsonb_populate_record(null::{table}, $1::text::jsonb)"
            );
            tx.execute(&insert, &[row]).unwrap();
        }
        // What is gone and told so has no row any more.
        let gone = self
            .marked
            .keys()
            .filter(|key| !after.marked.contains_key(*key));
        let moved = after.marked.iter();
        let moved = moved.filter(|(key, desired)| self.marked.get(*key) != Some(*desired));
        for (tenant_id, object) in gone.chain(moved.map(|(key, _)| key)) {
            tx.execute(
                "insert into authz_objects (tenant_id, object) values ($1, $2)
                 on conflict (tenant_id, object) do update set desired = authz_objects.desired + 1",
                &[tenant_id, object],
            )
            .unwrap();
        }
        tx.commit().unwrap();
        let now = Self::read(client);
        assert!(self.difference(&now).is_empty(), "it was not put back");
        self.marked = now.marked;
    }
}
