-- Enums are keys as long as their labels sort by their OIDs.
\set test test_keys_enum
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN my_mood AS mood;
CREATE TABLE t (id int, m mood, d my_mood);
INSERT INTO t SELECT i, (enum_range(NULL::mood))[1 + i % 3], (enum_range(NULL::mood))[1 + i % 2] FROM generate_series(1, 300) i;
INSERT INTO t VALUES (301, NULL, NULL);
CREATE INDEX t_m ON t USING gpu_btree (m);
ANALYZE t;
SELECT same('SELECT * FROM t WHERE m >= ''ok''', 't_m');
SELECT same('SELECT * FROM t WHERE m = ANY (''{happy,sad,NULL}'')', 't_m');
SELECT same('SELECT m FROM t ORDER BY m DESC', 't_m', true);

-- A label at the end sorts, one inside does not.
ALTER TYPE mood ADD VALUE 'ecstatic';
INSERT INTO t VALUES (302, 'ecstatic');
SELECT same('SELECT * FROM t WHERE m > ''ok''', 't_m');
ALTER TYPE mood ADD VALUE 'content' BEFORE 'happy';
ALTER TYPE mood ADD VALUE IF NOT EXISTS 'happy' BEFORE 'sad';
ALTER TYPE mood RENAME VALUE 'ok' TO 'fine';
SELECT enum_range(NULL::mood);
-- through a domain
DROP INDEX t_m;
CREATE INDEX t_d ON t USING gpu_btree (id, d);
ALTER TYPE mood ADD VALUE 'content' BEFORE 'happy';
DROP INDEX t_d;
-- in a partitioned table that has no partitions yet
CREATE TABLE p (m mood) PARTITION BY LIST (m);
CREATE INDEX p_m ON p USING gpu_btree (m);
ALTER TYPE mood ADD VALUE 'content' BEFORE 'happy';
DROP TABLE p;
-- an index of another kind does not mind
CREATE INDEX t_b ON t (m);
ALTER TYPE mood ADD VALUE 'content' BEFORE 'happy';
ALTER TYPE mood ADD VALUE 'dead';

-- Types with such labels are refused, used or not.  (Servers from 17 on empty
-- search_path while they make an index.)
CREATE TABLE e (m mood);
SET search_path = public;
CREATE INDEX t_m ON test_keys_enum.t USING gpu_btree (m);
CREATE INDEX t_d ON test_keys_enum.t USING gpu_btree (d);
CREATE INDEX CONCURRENTLY e_m ON test_keys_enum.e USING gpu_btree (m);
SET search_path = test_keys_enum, public;
DROP TABLE e;
DROP INDEX t_b;
-- Casting to text and back to a new type is the way out.
CREATE TYPE mood2 AS ENUM ('sad', 'fine', 'content', 'happy', 'ecstatic', 'dead');
ALTER TABLE t ALTER m TYPE mood2 USING m::text::mood2;
CREATE INDEX t_m ON t USING gpu_btree (m);
INSERT INTO t VALUES (303, 'content');
ANALYZE t;
SELECT same('SELECT * FROM t WHERE m > ''fine''', 't_m');

-- An index made in the transaction that adds the label.
CREATE TYPE color AS ENUM ('red', 'green');
CREATE TABLE c (v color);
BEGIN;
CREATE INDEX c_v ON c USING gpu_btree (v);
ALTER TYPE color ADD VALUE 'yellow' BEFORE 'green';
ROLLBACK;
BEGIN;
ALTER TYPE color ADD VALUE 'yellow' BEFORE 'green';
SET LOCAL search_path = public;
CREATE INDEX c_v ON test_keys_enum.c USING gpu_btree (v);
ROLLBACK;
