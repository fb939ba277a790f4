-- Functions of points in time by every zone that there is, near the changes of its clocks, against core's plan.
\set test test_zones
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

-- One name of zones with the same clocks on some days of each year.
CREATE TABLE zone AS
SELECT row_number() OVER (ORDER BY name)::int AS n, name FROM (
	SELECT min(name) AS name FROM (
		SELECT name, (SELECT string_agg(timezone(name, d)::time::text, ' ' ORDER BY d)
			FROM generate_series(timestamptz '1900-01-01 00:00+00', '2037-12-31', '49 days') d) AS clocks
		FROM pg_timezone_names WHERE name LIKE '%/%' AND name NOT LIKE 'posix/%') z
	GROUP BY clocks) z;

-- Three changes of each, to the minute: between days whose clocks differ, half of the time that is left at a time.
CREATE TABLE change (n int, at timestamptz);
DO $$
DECLARE
	z record;
	lo timestamptz;
	hi timestamptz;
	middle timestamptz;
BEGIN
	FOR z IN SELECT n, name, d, step FROM (
		SELECT n, name, d, step, row_number() OVER (PARTITION BY n ORDER BY hashtextextended(d::text, n)) AS place FROM (
			SELECT n, name, d, timezone(name, d) - timezone(name, d - interval '49 days') <> '49 days' AS step
			FROM zone, generate_series(timestamptz '1910-01-01 00:00+00', '2037-12-31', '49 days') d) x
		WHERE step) y WHERE place <= 3
	LOOP
		lo := z.d - interval '49 days';
		hi := z.d;
		WHILE hi - lo > interval '1 minute' LOOP
			middle := lo + (hi - lo) / 2;
			IF timezone(z.name, middle) - timezone(z.name, lo) = middle - lo THEN
				lo := middle;
			ELSE
				hi := middle;
			END IF;
		END LOOP;
		INSERT INTO change VALUES (z.n, hi);
	END LOOP;
END $$;
CREATE TABLE t (n int, at timestamptz, v int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT n, change.at + d * interval '1 minute', d % 97 FROM change, generate_series(-1586, 1586, 61) d;
INSERT INTO t SELECT n, change.at + d, 1 FROM change, unnest('{0,-1 us,1 us,-1 hour,1 hour}'::interval[]) d;
INSERT INTO t SELECT n, NULL, 1 FROM zone;
CREATE INDEX t_at ON t USING gpu_btree (n, at) INCLUDE (v);
VACUUM ANALYZE t;

\set ECHO none
-- What differs from core's plan, of all zones; and which plans there were.
CREATE FUNCTION differences(expression text, local bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	z record;
	query text;
	answer text;
	wrong text := '';
	plan text;
BEGIN
	SET LOCAL enable_seqscan = off;
	SET LOCAL cpu_operator_cost = 0;
	FOR z IN SELECT n, name FROM zone ORDER BY n LOOP
		query := format('SELECT string_agg(q::text, '','' ORDER BY q) FROM (SELECT %s AS k, count(*) AS c, sum(v) AS s FROM t WHERE n = %s GROUP BY 1) q',
			replace(expression, '{Z}', quote_literal(z.name)), z.n);
		IF local THEN
			PERFORM set_config('timezone', z.name, true);
		END IF;
		SET LOCAL gpuds.enable_aggregate = on;
		EXECUTE query INTO answer;
		IF plan IS NULL THEN
			plan := CASE WHEN plan_of(query) LIKE '%GpudsAggregate%' THEN 'GpudsAggregate' ELSE 'core' END;
		END IF;
		SET LOCAL gpuds.enable_aggregate = off;
		EXECUTE query INTO query;
		IF answer IS DISTINCT FROM query THEN
			wrong := wrong || ' ' || z.name;
		END IF;
	END LOOP;
	RETURN coalesce(nullif(wrong, ''), 'none') || ', ' || plan;
END $$;
\set ECHO all
SELECT count(*) > 250 AS zones, (SELECT count(*) > 600 FROM change) AS changes FROM zone;
SELECT expression, local, differences(expression, local) FROM (VALUES
	('date_trunc(''hour'', at, {Z})', false),
	('date_trunc(''day'', at, {Z})', false),
	('date_trunc(''day'', at AT TIME ZONE {Z})', false),
	('extract(hour FROM at AT TIME ZONE {Z})', false),
	('to_char(at AT TIME ZONE {Z}, ''YYYY-MM-DD Dy'')', false),
	('(at AT TIME ZONE {Z})::date', false),
	('date_trunc(''day'', at)', true),
	('date_trunc(''hour'', at)', true),
	('extract(dow FROM at)', true),
	('extract(minute FROM at)', true),
	('to_char(at, ''YYYY-MM-DD'')', true),
	('at::date', true)) x (expression, local);
RESET timezone;
DROP SCHEMA :test CASCADE;
