//! Expressions as their users see them.

mod faults;
