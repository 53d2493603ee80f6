-- An enrolment code that the operator makes on the host has no maker, and ends with no token.
alter table enrolments alter column created_by drop not null, alter column created_with drop not null;
alter table enrolments add check ((created_by is null) = (created_with is null));
