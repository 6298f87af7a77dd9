#!/usr/bin/env bash
# Lets a replica follow this server: a role for it, and its entry in pg_hba.conf. Run once, as the user of the server.
set -euo pipefail
psql -v ON_ERROR_STOP=1 -q -U "$POSTGRES_USER" -d "$POSTGRES_DB" -v password="$POSTGRES_PASSWORD" <<'SQL'
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'password';
SQL
echo "host replication replicator samenet scram-sha-256" >> "$PGDATA/pg_hba.conf"
psql -v ON_ERROR_STOP=1 -q -U "$POSTGRES_USER" -d "$POSTGRES_DB" -o /dev/null -c "SELECT pg_reload_conf()"
