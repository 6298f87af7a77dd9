-- What is asked of the catalogue, by name. `?` is a parameter.

-- lock_waits: of this database. The builder of an index that waits for older transactions keeps nobody waiting.
SELECT count(*), coalesce(max(extract(epoch FROM clock_timestamp() - l.waitstart)), 0)::float8
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE NOT l.granted AND l.locktype <> 'virtualxid' AND a.datname = current_database()

-- size: of all tables with their indexes
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c
WHERE c.relkind = 'r' AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())

-- own_tables: that may be vacuumed
SELECT quote_ident(tablename) FROM pg_tables
WHERE schemaname = current_schema() AND tableowner = current_user ORDER BY tablename

-- valid_indexes: those that are complete
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indisvalid AND c.relnamespace = current_schema()::regnamespace

-- fault: indexes are not valid; REINDEX them
SELECT count(*) FROM pg_index WHERE NOT indisvalid AND indrelid IN (
    SELECT c.oid FROM pg_class c
    WHERE c.relkind = 'r' AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()))

-- fault: pages failed their checksum
SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()

-- fault: parts belong to no memory
SELECT count(*) FROM chunk c WHERE NOT EXISTS (SELECT 1 FROM memory m WHERE m.space = c.space AND m.num = c.num)

-- fault: entries of the text index belong to no memory
SELECT count(*) FROM memory_text t WHERE NOT EXISTS (SELECT 1 FROM memory m WHERE m.space = t.space AND m.num = t.num)

-- fault: memories are missing in the text index; run cortex reindex
SELECT count(*) FROM memory m WHERE m.status <> 'tombstoned'
AND NOT EXISTS (SELECT 1 FROM memory_text t WHERE t.space = m.space AND t.num = m.num)

-- role: the role of callers, as the fields of `CallerRole` need it
SELECT n.name, quote_ident(current_user), quote_ident(current_schema()), r.oid IS NOT NULL,
    coalesce(pg_has_role(current_user, r.oid, 'SET'), false), me.rolsuper OR me.rolcreaterole,
    coalesce(r.rolsuper OR r.rolbypassrls OR pg_has_role(r.oid, t.relowner, 'MEMBER'), false),
    row_security_active(t.oid), t.relrowsecurity, coalesce(r.rolcanlogin, false)
FROM (SELECT 'cortex_caller_' || substr(md5(quote_ident(current_database()::text) || '.' ||
    quote_ident(current_schema()::text)), 1, 20) AS name) n
JOIN pg_roles me ON me.rolname = current_user
JOIN pg_class t ON t.oid = to_regclass(quote_ident(current_schema()) || '.memory')
LEFT JOIN pg_roles r ON r.rolname = n.name

-- held_rights: of all roles of callers here: of this store, and of a database it was copied from
SELECT a.grantee::regrole::text, o.name || ' ' || a.privilege_type || o.part FROM (
    SELECT 'schema' AS name, '' AS part, nspacl AS acl FROM pg_namespace WHERE nspname = current_schema()
    UNION ALL SELECT relname, '', relacl FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'S')
    UNION ALL SELECT c.relname, ' (' || t.attname || ')', t.attacl FROM pg_attribute t
        JOIN pg_class c ON c.oid = t.attrelid
        WHERE c.relnamespace = current_schema()::regnamespace AND t.attacl IS NOT NULL
    UNION ALL SELECT proname, '', proacl FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
) o CROSS JOIN aclexplode(o.acl) a JOIN pg_roles r ON r.oid = a.grantee AND starts_with(r.rolname, 'cortex_caller_')

-- protected_tables: those with policies for callers
SELECT c.relname FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
WHERE c.relnamespace = current_schema()::regnamespace AND p.polname = 'caller_rows'

-- citus: whether it is there
SELECT count(*) FROM pg_extension WHERE extname = 'citus'

-- workers: of a Citus cluster
SELECT nodename || ':' || nodeport FROM pg_dist_node
WHERE noderole = 'primary' AND shouldhaveshards AND isactive ORDER BY nodeid

-- distributed_tables: of this store
SELECT c.relname FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
WHERE c.relnamespace = current_schema()::regnamespace AND p.partmethod = 'h'

-- size_on_workers: of each distributed table with its indexes
SELECT citus_total_relation_size(p.logicalrelid) FROM pg_dist_partition p
JOIN pg_class c ON c.oid = p.logicalrelid WHERE c.relnamespace = current_schema()::regnamespace

-- spaces_by_worker: how many each has
SELECT s.nodename || ':' || s.nodeport, sum(r.result::bigint)::bigint
FROM run_command_on_shards('space_change', 'SELECT count(*) FROM %s') r
JOIN citus_shards s ON s.shardid = r.shardid WHERE r.success GROUP BY 1 ORDER BY 1

-- other_processes: of Cortex in this database
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
AND application_name LIKE 'cortex%' AND pid <> ALL (?::int[]) AND pid <> pg_backend_pid()
