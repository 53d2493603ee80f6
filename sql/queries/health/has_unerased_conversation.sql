select exists (select from conversations where erasure_requested_at < $1 and erased_at is null)
