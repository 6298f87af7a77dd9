"""What a shared server needs: PostgreSQL with Citus, callers and tenants, licences."""
