--
-- planner.sql: tables and functions of bench/planner
--
-- Variables: tables, outers (lists of numbers of rows, as array literals), shape (of the keys: uniform or skewed).
--
-- t_N has N rows and four indexes: btree and gpu_btree on k, whose values look random, and
-- on id, which ascends with the heap.  o_N_M has M rows; half of their keys are in t_N.
--

\ir keys.sql

SELECT format($$
	CREATE TABLE t_%1$s AS SELECT i AS id, bench.key(bench.number_of_row(i, %1$s, %2$L)) AS k, i AS v, 'some text beside ' || i %% 1000 AS note
		FROM generate_series(1, %1$s::bigint) i;
	CREATE INDEX t_%1$s_k_b ON t_%1$s USING btree (k);
	CREATE INDEX t_%1$s_k_g ON t_%1$s USING gpu_btree (k);
	CREATE INDEX t_%1$s_id_b ON t_%1$s USING btree (id);
	CREATE INDEX t_%1$s_id_g ON t_%1$s USING gpu_btree (id) $$, n, :'shape' = 'skewed'),
	format('VACUUM (ANALYZE, FREEZE) t_%s', n),
	format($$ SELECT gpuds_index_load('t_%1$s_k_g'), gpuds_index_load('t_%1$s_id_g') $$, n)
FROM unnest(:'tables'::bigint[]) n \gexec
-- Every second row asks for a key that the table does not have.
SELECT format($$
	CREATE TABLE o_%1$s_%2$s AS
		SELECT bench.key(bench.number_of_outer(j, %1$s, %3$L)) AS k, j AS w FROM generate_series(2, %2$s::bigint + 1) j $$,
		t, n, :'shape' = 'skewed'),
	format('VACUUM (ANALYZE, FREEZE) o_%s_%s', t, n)
FROM unnest(:'tables'::bigint[]) t, unnest(:'outers'::bigint[]) n \gexec

-- Arrays of the keys that o_N_M asks for
CREATE UNLOGGED TABLE bench.keyset (rows bigint, n bigint, keys bigint[]);
ALTER TABLE bench.keyset ALTER keys SET STORAGE external;
SELECT format('INSERT INTO bench.keyset SELECT %1$s, %2$s, array_agg(k ORDER BY w) FROM o_%1$s_%2$s', t, n)
FROM unnest(:'tables'::bigint[]) t, unnest(:'outers'::bigint[]) n \gexec
CREATE FUNCTION bench.keys(of_table bigint, wanted bigint) RETURNS bigint[] LANGUAGE plpgsql STABLE AS
$$ BEGIN RETURN (SELECT keys FROM bench.keyset WHERE rows = of_table AND n = wanted); END $$;

/*
 * The statements.  {t} and {o} are tables; {low} and {high} are the ends of the part of the
 * values of k that n rows have, {first} and {last} of id.  $1 is an array of n keys, of which
 * the planner does not know how many there are; {keys} is the same array as a constant.
 */
CREATE TABLE bench.shape (place int, name text, statement text, per text, most bigint);
INSERT INTO bench.shape VALUES
	(1, 'one key', 'SELECT v FROM {t} WHERE k = $1[1]', 'keys', 1),
	(2, 'count of = ANY', 'SELECT count(*) FROM {t} WHERE k = ANY ($1)', 'keys', NULL),
	(3, 'rows of = ANY', 'SELECT sum(v) FROM {t} WHERE k = ANY ($1)', 'keys', NULL),
	(4, 'count of = ANY, known array', 'SELECT count(*) FROM {t} WHERE k = ANY (''{keys}'')', 'keys', 10000),
	(5, 'rows of = ANY, known array', 'SELECT sum(v) FROM {t} WHERE k = ANY (''{keys}'')', 'keys', 10000),
	(6, 'count of a range', 'SELECT count(*) FROM {t} WHERE k BETWEEN {low} AND {high}', 'rows', NULL),
	(7, 'rows of a range', 'SELECT sum(v) FROM {t} WHERE k BETWEEN {low} AND {high}', 'rows', NULL),
	(8, 'rows of a range in heap order', 'SELECT sum(v) FROM {t} WHERE id BETWEEN {first} AND {last}', 'rows', NULL),
	(9, 'join', 'SELECT sum(t.v) FROM {o} o JOIN {t} t ON t.k = o.k', 'outer rows', NULL),
	(10, 'left join', 'SELECT count(t.v) FROM {o} o LEFT JOIN {t} t ON t.k = o.k', 'outer rows', NULL),
	(11, 'EXISTS', 'SELECT count(*) FROM {o} o WHERE EXISTS (SELECT FROM {t} t WHERE t.k = o.k)', 'outer rows', NULL),
	(12, 'NOT EXISTS', 'SELECT count(*) FROM {o} o WHERE NOT EXISTS (SELECT FROM {t} t WHERE t.k = o.k)', 'outer rows', NULL),
	(13, 'IN (SELECT)', 'SELECT sum(v) FROM {t} WHERE k IN (SELECT k FROM {o})', 'outer rows', NULL);

-- Ways to narrow the planner's choice: settings that are off, and an access method whose indexes are not there.
CREATE TABLE bench.way (place int, settings_off text[], hidden text);
INSERT INTO bench.way
SELECT row_number() OVER (), CASE WHEN nodes THEN s ELSE s || '{gpuds.enable_scan,gpuds.enable_aggregate,gpuds.enable_join}'::text[] END, h
FROM (VALUES
	(true, '{}'::text[], '{-}'::text[]),
	(true, '{enable_hashjoin,enable_mergejoin,enable_nestloop,enable_seqscan,enable_bitmapscan}', '{btree}'),
	(true, '{enable_hashjoin,enable_mergejoin,enable_nestloop,enable_seqscan,enable_indexscan,enable_indexonlyscan}', '{btree}'),
	(false, '{}', '{btree,gpu_btree}'),
	(false, '{enable_seqscan,enable_bitmapscan,enable_hashjoin,enable_mergejoin}', '{btree,gpu_btree}'),
	(false, '{enable_seqscan,enable_indexscan,enable_indexonlyscan}', '{btree,gpu_btree}'),
	(false, '{enable_indexscan,enable_indexonlyscan,enable_bitmapscan,enable_nestloop,enable_mergejoin}', '{-}'),
	(false, '{enable_hashjoin,enable_nestloop}', '{gpu_btree}')) w (nodes, s, hs), unnest(hs) h;

CREATE FUNCTION bench.go(way bench.way, workers int) RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	setting text;
BEGIN
	FOR setting IN SELECT DISTINCT unnest(settings_off) FROM bench.way LOOP
		PERFORM set_config(setting, CASE WHEN setting = ANY (way.settings_off) THEN 'off' ELSE 'on' END, false);
	END LOOP;
	PERFORM set_config('max_parallel_workers_per_gather', workers::text, false);
	UPDATE pg_index x SET indisvalid = NOT x.indisvalid
	FROM pg_class i JOIN pg_am a ON a.oid = i.relam
	WHERE i.oid = x.indexrelid AND i.relname ~ '^t_\d+_' AND x.indisvalid = (a.amname = way.hidden);
END
$$;

-- A plan in a few words: the node that finds the rows, by which index, with how many workers
CREATE FUNCTION bench.words(plan text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$
	SELECT concat_ws(', ',
		(regexp_match(plan, 'GpudsAggregate|GpudsJoin|GpudsScan|(?:Hash|Merge) (?:\w+ )*Join|Nested Loop(?: \w+ Join)?|Index Only Scan|Index Scan|Bitmap Heap Scan|Seq Scan'))[1],
		CASE WHEN plan ~ 't_\d+_(k|id)_g' THEN 'gpu_btree' WHEN plan ~ 't_\d+_(k|id)_b' THEN 'btree' END,
		(regexp_match(plan, 'Workers Planned: (\d+)'))[1] || ' workers')
$$;

CREATE TABLE bench.result (place int, shape text, rows bigint, n bigint, workers int, plan text, words text, ms float8, chosen boolean);

-- Milliseconds of a run of the prepared statement "cell".
CREATE FUNCTION bench.time(of_rows bigint, n bigint, INOUT answer text, OUT ms float8) LANGUAGE plpgsql AS
$$
DECLARE
	started timestamptz := clock_timestamp();
	found_answer text;
BEGIN
	EXECUTE format('EXECUTE cell(bench.keys(%s, %s))', of_rows, n) INTO found_answer;
	ms := extract(epoch FROM clock_timestamp() - started) * 1000;
	IF answer <> found_answer THEN
		RAISE EXCEPTION '% instead of %', found_answer, answer;
	END IF;
	answer := found_answer;
END
$$;

-- Measures the plans that the planner chooses in all ways for a statement.  Plans that take three times as long as the
-- best one, and not because they run for the first time, are run once; those that look through a large array for each
-- row are not run at all.
CREATE FUNCTION bench.cell(of_shape bench.shape, of_rows bigint, number bigint, most_workers int) RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	keys_end numeric := 2147483647::numeric * 2147483629;
	statement text := replace(replace(replace(replace(replace(replace(of_shape.statement,
		'{t}', 't_' || of_rows), '{o}', 'o_' || of_rows || '_' || number),
		'{low}', (keys_end / 3 * greatest(1 - number::numeric / of_rows, 0))::bigint::text),
		'{high}', least(keys_end / 3 * (1 - number::numeric / of_rows) + keys_end * number / of_rows, keys_end)::bigint::text),
		'{first}', ((of_rows - number) / 2 + 1)::text), '{last}', ((of_rows - number) / 2 + number)::text);
	way bench.way;
	some_workers int;
	line text;
	found_plan text;
	found_answer text;
	run record;
	times float8[];
	spent float8;
	best float8;
BEGIN
	-- so that the plan is made once, and its making is not in the times
	PERFORM set_config('plan_cache_mode', 'force_generic_plan', false);
	IF statement LIKE '%{keys}%' THEN
		statement := replace(statement, '{keys}', bench.keys(of_rows, number)::text);
	END IF;
	FOR way IN SELECT * FROM bench.way ORDER BY place LOOP
		FOR some_workers IN SELECT DISTINCT w FROM unnest(ARRAY[most_workers, 0]) w ORDER BY w DESC LOOP
			PERFORM bench.go(way, some_workers);
			EXECUTE 'PREPARE cell(bigint[]) AS ' || statement;
			found_plan := '';
			FOR line IN EXECUTE format('EXPLAIN (COSTS OFF) EXECUTE cell(bench.keys(%s, %s))', of_rows, number) LOOP
				found_plan := found_plan || regexp_replace(line, '\{[^}]*\}', '{}') || E'\n';
			END LOOP;
			IF NOT EXISTS (SELECT FROM bench.result r WHERE r.place = of_shape.place AND r.rows = of_rows AND r.n = number
				AND r.workers = most_workers AND r.plan = found_plan)
				AND NOT (found_plan ~ 'Filter: .* = ANY' AND way.place > 1 AND number * of_rows > 10000000) THEN
				times := '{}';
				spent := 0;
				FOR i IN 0 .. 6 LOOP
					run := bench.time(of_rows, number, found_answer);
					found_answer := run.answer;
					times := CASE i WHEN 1 THEN ARRAY[run.ms] ELSE times || run.ms END;
					spent := spent + run.ms;
					EXIT WHEN spent > 300 AND i > 1 OR run.ms > best * 3 AND (i > 1 OR run.ms > 100);
				END LOOP;
				SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY t) INTO spent FROM unnest(times) t;
				best := least(best, spent);
				INSERT INTO bench.result VALUES (of_shape.place, of_shape.name, of_rows, number, most_workers, found_plan, bench.words(found_plan), spent,
					way.place = 1 AND some_workers = most_workers);
			END IF;
			DEALLOCATE cell;
		END LOOP;
	END LOOP;
	PERFORM bench.go((SELECT w FROM bench.way w WHERE place = 1), 0);
END
$$;
