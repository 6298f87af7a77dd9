#!/usr/bin/env bash
# A server that follows CORTEX_PRIMARY; the first start copies its data.
set -euo pipefail
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    pg_basebackup -h "$CORTEX_PRIMARY" -U replicator -D "$PGDATA" -c fast -X stream -R
fi
exec postgres
