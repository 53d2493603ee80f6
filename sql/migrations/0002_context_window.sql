alter table models add column context_window integer
  constraint models_context_window_check check (context_window between 256 and 100000000);
