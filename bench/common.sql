--
-- common.sql: what the functions of bench/run, bench/batch and bench/mixed are made with
--

-- One measured value.
CREATE UNLOGGED TABLE bench.raw (section text, item text, side text, round int, value float8, unit text);

-- Lets the planner use the index in one way only, or choose (auto); one plan for all arguments.
CREATE FUNCTION bench.allow(way text) RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
	PERFORM set_config('enable_seqscan', 'off', false), set_config('plan_cache_mode', 'force_generic_plan', false),
		set_config('enable_indexscan', (way <> 'bitmap')::text, false),
		set_config('enable_indexonlyscan', (way <> 'bitmap')::text, false),
		set_config('enable_bitmapscan', (way <> 'index')::text, false);
	-- gpuds's own nodes are the planner's choice; former commits have not all of them.
	PERFORM set_config(name, (way = 'auto')::text, false) FROM pg_settings WHERE name LIKE 'gpuds.enable%';
END
$$;

-- A node's time within EXPLAIN ANALYZE.
CREATE FUNCTION bench.node_ms(plan jsonb, node text) RETURNS float8 LANGUAGE sql AS
$$
	SELECT sum((n->>'Actual Total Time')::float8)
	FROM jsonb_path_query(plan, 'strict $.**?(@."Node Type" == $node)', jsonb_build_object('node', node)) n
$$;
