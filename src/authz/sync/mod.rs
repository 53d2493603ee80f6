//! Each tenant's permissions: checked in OpenFGA, and kept equal to PostgreSQL there.
//!
//! Start in `permissions`. `reconciler` is the thread; `tenant` synchronizes one store, `write` one
//! object; `compare` finds differences; `stores` makes stores and their models. `state` is what
//! they share, `status` what is known of each tenant.

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
