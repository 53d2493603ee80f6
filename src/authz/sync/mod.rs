//! Each tenant's permissions: asked of OpenFGA, and kept there as Postgres has them.
//!
//! Start in `permissions`. `reconciler` is the thread; `tenant` brings one store in step with
//! Postgres, `write` one object, `compare` finds what differs, `stores` makes stores and their
//! models. `state` is what they share, `status` what is known of each tenant.

mod compare;
pub mod desired_tuples;
mod error;
pub mod health;
pub mod permissions;
mod reconciler;
pub mod report;
mod state;
mod status;
mod stores;
mod tenant;
mod write;
