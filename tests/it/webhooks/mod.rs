//! Webhooks from the end of a run to the receiver, over real sockets. What each kind of failure is called
//! is in `attempts`; which endpoints are told of what in
//! `events`; secrets in `signing`; unregistering, sending again and what is left in the tables in `ends`;
//! what one receiver costs the others in `fairness`; what is told of a flow's run in `flows`. Process kills are in `tests/crash`.

mod attempts;
mod begins;
mod canaries;
mod ends;
mod events;
mod failing;
mod fairness;
mod flows;
mod private_networks;
mod signing;
mod tls;
mod world;
