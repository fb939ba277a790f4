--
-- busy.sql: tables and functions of bench/busy
--
-- Variables: rows (of a table), keys (of an array, and rows of the table that is joined with it).
--
-- Row i has the key i * 2654435761 % 4294967291, a permutation without order, so that an
-- index's order and the table's have nothing in common.  Its time is second i of 2020.  The
-- pages have a little room, so that some updates are HOT.  Half of the keys of o are in t.

\ir common.sql

CREATE TABLE bench.keyset (keys bigint[]);
ALTER TABLE bench.keyset ALTER keys SET STORAGE external;
SELECT setseed(0.5);
INSERT INTO bench.keyset
SELECT array_agg(j * (:rows / :keys) * 2654435761 % 4294967291 ORDER BY random()) FROM generate_series(1, :keys::bigint) j;

-- The rows and indexes of a side.  However many rows there are, their times end where those of all would.
CREATE PROCEDURE bench.make(side text, method text, some_rows bigint, some_keys bigint, seconds float8 = 1)
LANGUAGE plpgsql AS
$$
BEGIN
	EXECUTE format('DROP SCHEMA IF EXISTS %1$I CASCADE', side);
	EXECUTE format('CREATE SCHEMA %1$I', side);
	PERFORM set_config('search_path', side || ',public', true);
	CREATE TABLE t (id bigint, k bigint, ts timestamptz, v int, n int) WITH (fillfactor = 98);
	INSERT INTO t SELECT i, i * 2654435761 % 4294967291, '2020-01-01'::timestamptz + i * seconds * interval '1 s', i * 7919 % 100003, 0
	FROM generate_series(1, some_rows) i;
	ALTER TABLE t ADD PRIMARY KEY (id);
	CREATE TABLE o (k bigint, w bigint);
	INSERT INTO o SELECT j * 2 * (some_rows / some_keys) * 2654435761 % 4294967291, j FROM generate_series(1, some_keys) j;
	EXECUTE format('CREATE INDEX t_k ON t USING %I (k)', method);
	EXECUTE format('CREATE INDEX t_ts ON t USING %I (ts) INCLUDE (v)', method);
	-- What the functions of gpuds answer, and what takes their place with btree
	IF method = 'btree' THEN
		CREATE FUNCTION present(bigint[]) RETURNS boolean[] LANGUAGE sql STABLE
		RETURN (SELECT array_agg(EXISTS (SELECT FROM t WHERE t.k = u.k)) FROM unnest($1) u (k));
		CREATE FUNCTION between_keys(bigint, bigint) RETURNS bigint LANGUAGE sql STABLE
		RETURN (SELECT count(*) FROM t WHERE k BETWEEN $1 AND $2);
	ELSE
		EXECUTE format($f$ CREATE FUNCTION present(bigint[]) RETURNS boolean[] LANGUAGE sql STABLE
			AS 'SELECT gpuds_contains(''%I.t_k'', $1)' $f$, side);
		EXECUTE format($f$ CREATE FUNCTION between_keys(bigint, bigint) RETURNS bigint LANGUAGE sql STABLE
			AS 'SELECT gpuds_count(''%I.t_k'', $1, $2)' $f$, side);
	END IF;
END
$$;

-- Updates a row of so many, which look random: the same ones on each side, in the same way.
CREATE PROCEDURE bench.change(side text, round int, parts int) LANGUAGE plpgsql AS
$$
BEGIN
	EXECUTE format($f$
		UPDATE %I.t SET
			n = n + 1,
			v = CASE way WHEN 1 THEN v + 1 ELSE v END,
			k = CASE way WHEN 2 THEN (t.id + 20000003::bigint * ($1 %% 100)) * 2654435761 %% 4294967291 ELSE k END
		FROM (SELECT id, (hashint8extended(id, 0) & 1023) %% 3 AS way FROM %1$I.t WHERE hashint8extended(id, $1 * 100000 + $2) %% $2 = 0) c
		WHERE t.id = c.id $f$, side) USING round, parts;
END
$$;

/*
 * The statements.  $1 is an array of keys.  Tables are found by search_path, so that both sides have the same text.
 * Answers are one number, whatever they have been made of.  All keys lie between 0 and 4294967291.
 */
CREATE TABLE bench.work (place int, name text, statement text);
INSERT INTO bench.work VALUES
	(1, 'days', $$
	 SELECT sum(hashint8extended(c, hashint8extended(s, extract(epoch FROM d)::bigint)))
	 FROM (SELECT date_trunc('day', ts) AS d, count(*) AS c, sum(v) AS s FROM t GROUP BY 1) q $$),
	(2, 'days_10', format($$
	 SELECT sum(hashint8extended(c, hashint8extended(s, extract(epoch FROM d)::bigint)))
	 FROM (SELECT date_trunc('day', ts) AS d, count(*) AS c, sum(v) AS s FROM t
		   WHERE ts >= %L AND ts < %L GROUP BY 1) q $$,
		'2020-01-01'::timestamptz + :rows * 0.3 * interval '1 s', '2020-01-01'::timestamptz + :rows * 0.4 * interval '1 s')),
	(3, 'count_10', 'SELECT count(*) FROM t WHERE k BETWEEN 1288490187 AND 1717986916'),
	(4, 'any', 'SELECT count(*) FROM t WHERE k = ANY ($1)'),
	(5, 'semi', 'SELECT count(*) FROM o WHERE EXISTS (SELECT FROM t WHERE t.k = o.k)'),
	(6, 'contains', 'SELECT cardinality(array_remove(present($1), false))'),
	(7, 'between', 'SELECT between_keys(1288490187, 1717986916)');

-- Each statement as a function, so that its plan is made once in a session.  What counts the keys that
-- are found is not part of the time.
DO
$$
DECLARE
	work bench.work;
BEGIN
	FOR work IN SELECT * FROM bench.work LOOP
		EXECUTE format($f$
			CREATE FUNCTION bench.work_%s(bigint[], OUT ms float8, OUT answer numeric) LANGUAGE plpgsql AS
			$_$
			DECLARE
				started timestamptz := clock_timestamp();
				reply %s;
			BEGIN
				reply := (%s);
				ms := extract(epoch FROM clock_timestamp() - started) * 1000;
				answer := %s;
			END
			$_$ $f$, work.name, CASE work.name WHEN 'contains' THEN 'boolean[]' ELSE 'numeric' END,
			CASE work.name WHEN 'contains' THEN 'present($1)' ELSE work.statement END,
			CASE work.name WHEN 'contains' THEN 'cardinality(array_remove(reply, false))' ELSE 'reply' END);
	END LOOP;
END
$$;

-- A run of a work
CREATE FUNCTION bench.once(work text, OUT ms float8, OUT answer numeric) LANGUAGE plpgsql AS
$$
DECLARE
	wanted bigint[] := (SELECT keys FROM bench.keyset);
BEGIN
	EXECUTE format('SELECT * FROM bench.work_%s($1)', work) INTO ms, answer USING wanted;
END
$$;

--
-- The section "answers": one table with both kinds of indexes
--

-- What has been compared in a transaction
CREATE TABLE bench.compared (times int, wrong int, remark text);

/*
 * The btree indexes beside the others.  They have expressions, so that a statement's condition says which kind of index
 * it means: there is no setting for that, and indexes cannot be hidden from some sessions only.
 */
CREATE PROCEDURE bench.add_btree() LANGUAGE plpgsql AS
$$
BEGIN
	CREATE INDEX t_k_b ON one.t USING btree ((k + 0)) INCLUDE (k);
	CREATE INDEX t_ts_b ON one.t USING btree ((ts AT TIME ZONE 'UTC')) INCLUDE (ts, v);
END
$$;

/*
 * Narrows the planner's choice to nodes of gpuds (gpuds), index-only scans of btree (btree), or sequential scans (seq).
 * Nodes of gpuds are made of core's index paths, so these stay on with them.
 */
CREATE FUNCTION bench.go(way text) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	PERFORM set_config(s, (s = ANY (CASE way
			WHEN 'gpuds' THEN '{enable_indexscan,enable_indexonlyscan,gpuds.enable_aggregate,gpuds.enable_join}'::text[]
			WHEN 'btree' THEN '{enable_indexscan,enable_indexonlyscan,enable_nestloop}'
			ELSE '{enable_seqscan,enable_hashjoin}' END))::text, true)
	FROM unnest('{enable_seqscan,enable_indexscan,enable_indexonlyscan,enable_bitmapscan,
				  enable_hashjoin,enable_mergejoin,enable_nestloop,
				  gpuds.enable_scan,gpuds.enable_aggregate,gpuds.enable_join}'::text[]) s;
END
$$;

-- A work's statement in a way: gpuds's functions have statements in their place in the others.
CREATE FUNCTION bench.statement(work bench.work, way text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
	statement text := CASE WHEN way = 'gpuds' THEN work.statement
		WHEN work.name = 'contains' THEN 'SELECT count(*) FROM unnest($1) u (k) WHERE EXISTS (SELECT FROM t WHERE t.k = u.k)'
		WHEN work.name = 'between' THEN 'SELECT count(*) FROM t WHERE k BETWEEN 1288490187 AND 1717986916'
		ELSE work.statement END;
BEGIN
	IF way = 'btree' THEN
		statement := regexp_replace(statement, '\mk (=|BETWEEN)', 'k + 0 \1', 'g');
		statement := regexp_replace(statement, '\mts (>=|<)', '(ts AT TIME ZONE ''UTC'') \1', 'g');
	END IF;
	RETURN statement;
END
$$;

-- Fails unless each way leads to the plans that it is meant to.  For a query of all rows, an index-only scan is as good
-- as another, because only core's node asks the visibility map there.
CREATE FUNCTION bench.check_ways() RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	work bench.work;
	way text;
	line text;
	plan text;
BEGIN
	PERFORM set_config('search_path', 'one,public', true);
	FOREACH way IN ARRAY '{gpuds,btree,seq}'::text[] LOOP
		PERFORM bench.go(way);
		FOR work IN SELECT * FROM bench.work LOOP
			plan := '';
			FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || bench.statement(work, way) USING '{1,2,3}'::bigint[] LOOP
				plan := plan || line || E'\n';
			END LOOP;
			IF NOT (CASE way WHEN 'gpuds' THEN plan ~ 'Gpuds' OR work.name IN ('contains', 'between')
					WHEN 'btree' THEN plan ~ (CASE work.name WHEN 'days' THEN 'Only Scan using' ELSE 'Only Scan using t_\w+_b' END) ELSE plan ~ 'Seq Scan on t' END)
				OR way <> 'gpuds' AND plan ~ 'Gpuds' THEN
				RAISE EXCEPTION E'% is not answered by %:\n%', work.name, way, plan;
			END IF;
		END LOOP;
	END LOOP;
END
$$;

/*
 * Compares the answers of all works in one snapshot: by the index, in another way, and by the index once more, which is
 * then asked for a snapshot older than some of what there is.  own: after changes of the transaction, to rows that nobody
 * else changes.
 */
CREATE FUNCTION bench.compare(client int, own boolean, some_rows bigint) RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
	-- Some of the keys, and some that no row has at first
	wanted bigint[] := (SELECT keys[1:5000] || ARRAY[-1, 1, 4294967290] FROM bench.keyset);
	other text := CASE WHEN random() < 0.25 THEN 'seq' ELSE 'btree' END;
	way text;
	work bench.work;
	found_answer numeric;
	first numeric[];
	times int := 0;
	wrong int := 0;
	remark text;
BEGIN
	IF own THEN
		UPDATE t SET v = v + 1, k = CASE WHEN id % 2 = 0 THEN random() * 4294967290 ELSE k END
		WHERE id BETWEEN some_rows - 20 * (client + 1) + 1 AND some_rows - 20 * client;
	END IF;
	FOREACH way IN ARRAY ARRAY['gpuds', other, 'gpuds'] LOOP
		PERFORM bench.go(way);
		FOR work IN SELECT * FROM bench.work ORDER BY place LOOP
			EXECUTE bench.statement(work, way) INTO found_answer USING wanted;
			IF first[work.place] IS NULL THEN
				first[work.place] := found_answer;
				CONTINUE;
			END IF;
			times := times + 1;
			IF found_answer IS DISTINCT FROM first[work.place] THEN
				wrong := wrong + 1;
				remark := format('%s, own changes %s: by the index %s, then by %s %s', work.name, own, first[work.place], way, found_answer);
			END IF;
		END LOOP;
	END LOOP;
	INSERT INTO bench.compared VALUES (times, wrong, remark);
END
$$;
