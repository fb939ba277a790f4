-- Joins that a device counts, if it has both indexes: compared with core's, for rows of all sorts.
\set test test_device_join
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
DO $$ BEGIN PERFORM set_config(name, 'off', false) FROM pg_settings WHERE name = 'enable_eager_aggregate'; END $$;

CREATE TABLE a (i2 int2, i4 int4, i8 int8, u uuid, v int) WITH (autovacuum_enabled = off);
CREATE TABLE b (i2 int2, i4 int4, i8 int8, u uuid, v int) WITH (autovacuum_enabled = off);
CREATE FUNCTION fill(t text, lo int, hi int, step int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	-- numbers that narrower columns have no code for, duplicates, and NULLs
	EXECUTE format('INSERT INTO %I SELECT nullif(k %% 40, 7), nullif(k, 13), CASE WHEN k %% 11 = 0 THEN k + 10000000000 ELSE nullif(k, 17) END,
		CASE WHEN k %% 9 > 0 THEN md5(k::text)::uuid END, k %% 5
		FROM (SELECT i %% (%s) - 50 AS k FROM generate_series(%s, %s, %s) i) s', t, 200 + step * 31, lo, hi, step);
END $$;
SELECT fill('a', 1, 9000, 2), fill('b', 1, 9000, 3);
CREATE INDEX a_i2 ON a USING gpu_btree (i2);
CREATE INDEX a_i4 ON a USING gpu_btree (i4, i2);
CREATE INDEX a_i8 ON a USING gpu_skiplist (i8);
CREATE INDEX a_u ON a USING gpu_btree (u);
CREATE INDEX a_vi ON a USING gpu_btree (v, i4);
CREATE INDEX b_i2 ON b USING gpu_skiplist (i2);
CREATE INDEX b_i4 ON b USING gpu_btree (i4, i2, v);
CREATE INDEX b_i8 ON b USING gpu_btree (i8, v);
CREATE INDEX b_u ON b USING gpu_skiplist (u);
VACUUM ANALYZE a;
VACUUM ANALYZE b;

\set ECHO none
-- Joins that do not agree with core's are shown; the last row says whether some were a device's, if it is a GPU.
CREATE FUNCTION compare(OUT query text, OUT answer text) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
	right_answer text;
	by_device int := 0;
	switches text[] := ARRAY['enable_seqscan', 'enable_bitmapscan', 'enable_hashjoin', 'enable_mergejoin', 'enable_nestloop', 'enable_sort'];
BEGIN
	FOR query IN
		SELECT format(shape, condition, filter)
		FROM unnest(ARRAY['a.i4 = b.i4', 'a.i8 = b.i4', 'a.i4 = b.i8', 'a.i8 = b.i8', 'a.i2 = b.i8', 'a.i8 = b.i2', 'a.u = b.u', 'a.i4 = b.i4 AND a.i2 = b.i2']) condition,
			unnest(ARRAY['SELECT count(*) FROM a JOIN b ON %s WHERE %s', 'SELECT count(*) FROM a LEFT JOIN b ON %s WHERE %s',
				'SELECT count(*) FROM a WHERE EXISTS (SELECT FROM b WHERE %s) AND %s', 'SELECT count(*) FROM a WHERE NOT EXISTS (SELECT FROM b WHERE %s) AND %s']) shape,
			unnest(ARRAY['true']) filter
		UNION ALL
		SELECT 'SELECT count(*) FROM a WHERE a.v = 3 AND NOT EXISTS (SELECT FROM b WHERE a.i4 = b.i4)'
		UNION ALL
		SELECT 'SELECT count(*) FROM a JOIN b USING (i4) WHERE a.i4 BETWEEN 20 AND 90 OR a.i4 IS NULL'
		UNION ALL
		SELECT 'SELECT count(*) FROM b LEFT JOIN a USING (i4) WHERE b.i4 IN (3, 5, 8, 13, 100)'
	LOOP
		right_answer := right_digest_of(query, false);
		PERFORM set_config(name, 'off', true) FROM unnest(switches) name;
		SET LOCAL gpuds.enable_aggregate = on;
		by_device := by_device + (node_of(query) LIKE '%Keys Left by Device%')::int;
		answer := digest_of(query, false);
		SET LOCAL gpuds.enable_aggregate = off;
		PERFORM set_config(name, 'on', true) FROM unnest(switches) name;
		IF answer <> right_answer THEN
			answer := answer || ', right: ' || right_answer;
			RETURN NEXT;
		END IF;
	END LOOP;
	query := '';
	answer := CASE WHEN (by_device > 20) = (current_setting('gpuds.device') = 'cuda') THEN 'where it should' ELSE by_device::text END;
	RETURN NEXT;
END $$;
\set ECHO all
SELECT * FROM compare();
-- rows that the visibility map says nothing of, dead ones, entries of the memtable, and own changes
DELETE FROM a WHERE v = 1;
UPDATE b SET i4 = i4 + 1 WHERE i8 % 7 = 0;
SELECT * FROM compare();
VACUUM a;
BEGIN;
SELECT fill('b', 9000, 9500, 1);
SAVEPOINT s;
DELETE FROM a WHERE v = 2;
SELECT fill('a', 9000, 9500, 1);
SELECT * FROM compare();
ROLLBACK TO s;
SELECT * FROM compare();
COMMIT;
VACUUM b;
SELECT * FROM compare();
DELETE FROM b WHERE v < 4;
VACUUM b;
SELECT * FROM compare();
TRUNCATE b;
SELECT * FROM compare();

SET client_min_messages = warning;
DROP SCHEMA :test CASCADE;
