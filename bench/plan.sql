--
-- What bench/batch and bench/busy ask about their statements, which are in the table bench.work.
--

-- The plan that a statement has there.
CREATE FUNCTION bench.plan(work text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
BEGIN
	EXECUTE 'PREPARE shown(bigint[]) AS ' || (SELECT w.statement FROM bench.work w WHERE w.name = work);
	RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) EXECUTE shown(NULL)';
	DEALLOCATE shown;
END
$$;
