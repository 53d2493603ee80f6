-- Why the provider did not name somebody's groups at their newest sign-in. Null: it named them, or was not asked to. The two
-- columns that providers had for it (0029) are written by programs before this one alone; a later release drops them.
alter table identities
  add column groups_fault text check (groups_fault in ('groups-absent', 'groups-left-out'));
