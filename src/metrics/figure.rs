//! Counts as Prometheus has them.

#[expect(
    clippy::cast_precision_loss,
    reason = "Prometheus's figures are doubles"
)]
pub(super) fn figure(count: u64) -> f64 {
    count as f64
}
