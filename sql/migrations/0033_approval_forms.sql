-- The JSON Schema of the answer that an approval takes, as its definition has it; null: any.

alter table approval_subjects add column form json;
