//! The life of tenants' stores at the authorization server.
