-- The JSON Schema that the answer of a turn fits; null: an answer is text.
alter table agent_versions add column output_schema json;
