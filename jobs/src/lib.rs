pub const MIGRATIONS: &[(&str, &str)] = &[];
