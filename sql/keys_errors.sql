-- What cannot be a key, and how that is said.
\set test test_keys_errors
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude

CREATE TABLE t (a int, b int, c int, d int, e int, f int, g int, h int, i int,
	s smallint, l bigint, u uuid, z timetz, x jsonb, n numeric, v interval, o bool, k "char");
-- at most 16 bytes in at most 8 columns
CREATE INDEX ON t USING gpu_btree (a, b, c, d);
CREATE INDEX ON t USING gpu_btree (l, a, b);
CREATE INDEX ON t USING gpu_btree (u);
CREATE INDEX ON t USING gpu_btree (v, a);
CREATE INDEX ON t USING gpu_btree (o, s, o, s, o, s, o, s);
CREATE INDEX ON t USING gpu_btree (a, b, c, d, s);
CREATE INDEX ON t USING gpu_btree (l, a, l);
CREATE INDEX ON t USING gpu_btree (u, k);
CREATE INDEX ON t USING gpu_btree (z, (l + 1));
CREATE INDEX ON t USING gpu_btree (v, l);
CREATE INDEX ON t USING gpu_btree (o, s, o, s, o, s, o, s, k);
-- types whose order takes more than a fixed number of bytes
CREATE INDEX ON t USING gpu_btree (x);
CREATE INDEX ON t USING gpu_btree (a, n);
-- an operator class of another order
CREATE FUNCTION backwards(int, int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT AS 'SELECT $1 > $2';
CREATE OPERATOR <! (LEFTARG = int, RIGHTARG = int, FUNCTION = backwards);
CREATE OPERATOR CLASS backwards_ops FOR TYPE int USING gpu_btree AS OPERATOR 1 <!, OPERATOR 3 =;
CREATE INDEX ON t USING gpu_btree (a backwards_ops);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'backwards_ops';
CREATE OPERATOR CLASS words_ops FOR TYPE jsonb USING gpu_btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >;
CREATE INDEX ON t USING gpu_btree (x words_ops);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'words_ops' AND opcmethod = (SELECT oid FROM pg_am WHERE amname = 'gpu_btree');
CREATE OPERATOR CLASS too_many_ops FOR TYPE int USING gpu_btree AS OPERATOR 9 <;
CREATE OPERATOR CLASS supported_ops FOR TYPE int USING gpu_btree AS FUNCTION 2 btint4cmp(int, int);
-- gone again: other tests look at all operator classes
DROP OPERATOR FAMILY backwards_ops USING gpu_btree;
DROP OPERATOR FAMILY words_ops USING gpu_btree;
