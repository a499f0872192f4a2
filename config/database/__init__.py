"""Django's Postgres with connections that are shared: an engine, as Django looks for one."""
