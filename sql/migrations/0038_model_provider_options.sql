-- How a provider's server is asked: time limits, calls at once, headers, and what it does not take.
alter table model_providers add column options json not null default '{}';
