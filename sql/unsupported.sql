-- What gpu_btree refuses, and in which words.
\set test test_unsupported
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (id int, k bigint, s text COLLATE "und-x-icu", n numeric, j jsonb, u uuid, v varchar(10) COLLATE "und-x-icu", i interval, tz timestamptz, a int[]);
INSERT INTO t (id, k) SELECT i, i FROM generate_series(1, 10) i;

-- uniqueness
CREATE INDEX t_k ON t USING gpu_btree (k);
ALTER TABLE t ADD CONSTRAINT t_pk PRIMARY KEY USING INDEX t_k;
ALTER TABLE t REPLICA IDENTITY USING INDEX t_k;
INSERT INTO t (id, k) VALUES (1, 1) ON CONFLICT (k) DO NOTHING;

-- included columns

-- types without an exact order in 16 bytes
CREATE INDEX t_s ON t USING gpu_btree (s);
CREATE INDEX t_n ON t USING gpu_btree (n);
CREATE INDEX t_j ON t USING gpu_btree (j);
CREATE INDEX t_v ON t USING gpu_btree (v);
CREATE INDEX t_a ON t USING gpu_btree (a);
CREATE INDEX t_e ON t USING gpu_btree (lower(s));
-- nor do operator classes of btree come along
CREATE INDEX t_o ON t USING gpu_btree (s text_pattern_ops);
CREATE INDEX t_o ON t USING gpu_btree (k text_ops);

-- too wide: 16 bytes of codes are the limit, and eight columns
CREATE INDEX t_w ON t USING gpu_btree (u, id);
CREATE INDEX t_w ON t USING gpu_btree (k, tz, id);
CREATE INDEX t_w ON t USING gpu_btree (k, id, u);
CREATE INDEX t_w ON t USING gpu_btree ((id % 2 = 0), (id % 3 = 0), (id % 5 = 0), (id % 7 = 0), (id % 11 = 0),
	(id % 13 = 0), (id % 17 = 0), (id % 19 = 0), (id % 23 = 0));
-- exactly the limit
CREATE INDEX t_uuid ON t USING gpu_btree (u);
CREATE INDEX t_two ON t USING gpu_btree (k, tz DESC);
CREATE INDEX t_four ON t USING gpu_btree (id, (id + 1), (id + 2), (id + 3));
CREATE INDEX t_eight ON t USING gpu_btree ((id % 2 = 0), (id % 3 = 0), (id % 5 = 0), (id % 7 = 0), (id % 11 = 0),
	(id % 13 = 0), (id % 17 = 0), (id % 19 = 0));

-- collations and system columns are core's to refuse
-- (PostgreSQL 19 says where)
\set VERBOSITY sqlstate
CREATE INDEX t_c ON t USING gpu_btree (k COLLATE "C");
\set VERBOSITY default
CREATE INDEX t_c ON t USING gpu_btree (ctid);

-- a failed CREATE INDEX leaves nothing
SELECT relname FROM pg_class WHERE relnamespace = 'test_unsupported'::regnamespace AND relkind = 'i' ORDER BY relname;

-- capabilities, as far as SQL can ask
SELECT name, pg_indexam_has_property(oid, name)
FROM pg_am, unnest('{can_order,can_multi_col,can_exclude,can_include}'::text[]) name
WHERE amname = 'gpu_btree';
SELECT name, pg_index_has_property('t_k'::regclass, name)
FROM unnest('{clusterable,index_scan,bitmap_scan,backward_scan}'::text[]) name;
SELECT name, pg_index_column_has_property('t_two'::regclass, 2, name)
FROM unnest('{asc,desc,nulls_first,nulls_last,orderable,distance_orderable,returnable,search_array,search_nulls}'::text[]) name;
