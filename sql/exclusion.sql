-- Exclusion constraints with equality.
\set test test_exclusion
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE x (id int, k bigint, CONSTRAINT x_k EXCLUDE USING gpu_btree (k WITH =));
INSERT INTO x SELECT i, i FROM generate_series(1, 1000) i;
INSERT INTO x VALUES (0, 500);
INSERT INTO x VALUES (0, 2000), (0, 2000);
INSERT INTO x VALUES (0, 2000);
INSERT INTO x VALUES (0, NULL), (0, NULL);
UPDATE x SET k = 7 WHERE k = 8;
UPDATE x SET k = 8 WHERE k = 8;
UPDATE x SET id = -1 WHERE k = 8;
SELECT same('SELECT * FROM x WHERE k > 500', 'x_k');
-- an immediate constraint is checked row by row
UPDATE x SET k = k + 1;

-- freed by a delete, by a rolled back savepoint, in the same transaction
BEGIN;
DELETE FROM x WHERE k = 500;
INSERT INTO x VALUES (0, 500);
SAVEPOINT a;
INSERT INTO x VALUES (0, 500);
ROLLBACK TO a;
DELETE FROM x WHERE k = 500;
SAVEPOINT b;
INSERT INTO x VALUES (1, 500);
ROLLBACK TO b;
INSERT INTO x VALUES (2, 500);
COMMIT;
SELECT * FROM x WHERE k = 500;
BEGIN;
INSERT INTO x VALUES (0, 3000);
ROLLBACK;
INSERT INTO x VALUES (1, 3000);

-- ON CONFLICT
INSERT INTO x VALUES (9, 1), (9, 3001), (9, 3001), (9, 3000) ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO x VALUES (9, 1), (9, 3002) ON CONFLICT ON CONSTRAINT x_k DO NOTHING RETURNING *;
INSERT INTO x VALUES (9, 1) ON CONFLICT ON CONSTRAINT x_k DO UPDATE SET id = 9;
INSERT INTO x SELECT 9, i FROM generate_series(1, 5000) i ON CONFLICT DO NOTHING;
SELECT count(*), count(DISTINCT k) FROM x WHERE k IS NOT NULL;
SELECT same('SELECT * FROM x WHERE k > 500', 'x_k');

-- deferred: checked at commit, or when told to
CREATE TABLE d (id int, k int, CONSTRAINT d_k EXCLUDE USING gpu_btree (k WITH =) DEFERRABLE INITIALLY DEFERRED);
INSERT INTO d SELECT i, i FROM generate_series(1, 100) i;
UPDATE d SET k = k + 1;
BEGIN;
INSERT INTO d VALUES (0, 50);
SELECT count(*) FROM d WHERE k = 50;
COMMIT;
BEGIN;
INSERT INTO d VALUES (0, 50);
DELETE FROM d WHERE k = 50 AND id <> 0;
COMMIT;
BEGIN;
INSERT INTO d VALUES (0, 60);
SET CONSTRAINTS d_k IMMEDIATE;
ROLLBACK;
BEGIN;
SET CONSTRAINTS d_k IMMEDIATE;
INSERT INTO d VALUES (0, 60);
ROLLBACK;
INSERT INTO d VALUES (1, 200) ON CONFLICT DO NOTHING;
SELECT same('SELECT * FROM d WHERE k > 0', 'd_k');

-- two columns and a condition
CREATE TABLE two (a int, b date, gone bool DEFAULT false,
	CONSTRAINT two_ab EXCLUDE USING gpu_btree (a WITH =, b WITH =) WHERE (NOT gone));
INSERT INTO two VALUES (1, '2024-01-01'), (1, '2024-01-02'), (2, '2024-01-01');
INSERT INTO two VALUES (1, '2024-01-02');
INSERT INTO two VALUES (1, '2024-01-02', true), (1, '2024-01-02', true), (1, NULL, false), (1, NULL, false);
UPDATE two SET gone = false WHERE a = 1 AND b = '2024-01-02' AND gone;
SELECT * FROM two ORDER BY a, b, gone;

-- added to a table that has rows
CREATE TABLE late (k int);
INSERT INTO late SELECT i % 50 FROM generate_series(1, 51) i;
ALTER TABLE late ADD CONSTRAINT late_k EXCLUDE USING gpu_btree (k WITH =);
DELETE FROM late WHERE k = 1;
ALTER TABLE late ADD CONSTRAINT late_k EXCLUDE USING gpu_btree (k WITH =);
INSERT INTO late VALUES (1), (2);
INSERT INTO late VALUES (1);
VACUUM late;
INSERT INTO late VALUES (1);
INSERT INTO late VALUES (51);
REINDEX TABLE late;
INSERT INTO late VALUES (51);

-- only equality can exclude
-- (PostgreSQL 19 says where)
\set VERBOSITY sqlstate
CREATE TABLE bad (k int, EXCLUDE USING gpu_btree (k WITH <));
CREATE TABLE bad (k int, EXCLUDE USING gpu_btree (k WITH <>));
\set VERBOSITY default
CREATE TABLE bad (j jsonb, EXCLUDE USING gpu_btree (j WITH =));

-- a trigger that looks into the table while rows come
CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	new.id := (SELECT count(*) FROM x WHERE k BETWEEN new.k - 1 AND new.k);
	RETURN new;
END $$;
CREATE TRIGGER look BEFORE INSERT ON x FOR EACH ROW EXECUTE FUNCTION look();
INSERT INTO x SELECT 0, i FROM generate_series(6000, 6004) i RETURNING *;
INSERT INTO x SELECT 0, i FROM generate_series(6004, 6006) i ON CONFLICT DO NOTHING RETURNING *;
