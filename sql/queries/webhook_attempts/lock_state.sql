-- Until the end of the transaction nobody else turns this endpoint from working to failing, or back.
select pg_advisory_xact_lock(hashtextextended('webhook endpoint ' || $1::uuid, 0))
