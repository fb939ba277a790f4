-- Last in the alphabet: every index that the other tests left behind is whole.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS gpuds;
RESET client_min_messages;
DO $$
DECLARE
	index regclass;
BEGIN
	FOR index IN
		SELECT c.oid FROM pg_class c JOIN pg_am a ON a.oid = c.relam
		WHERE amname = 'gpu_btree' AND relkind = 'i' AND relpersistence <> 't' ORDER BY c.oid
	LOOP
		BEGIN
			PERFORM gpuds_index_check(index, true);
		EXCEPTION WHEN OTHERS THEN
			RAISE WARNING '%: %', index, sqlerrm;
		END;
	END LOOP;
END $$;
