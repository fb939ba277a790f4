-- Keys of several columns: any mixture of conditions, directions and widths.
\set test test_keys_multi
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
\set keys :srcdir '/sql/include/keys.inc'
\i :keys

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'angry');
INSERT INTO edge SELECT 'bool', unnest('{false,true}'::text[]);
INSERT INTO edge SELECT '"char"', unnest('{a,b,c}'::text[]);
INSERT INTO edge SELECT 'int2', unnest('{-32768,-1,0,1,32767}'::text[]);
INSERT INTO edge SELECT 'int4', unnest('{-2147483648,-1,0,1,7,2147483647}'::text[]);
INSERT INTO edge SELECT 'int8', unnest('{-9223372036854775808,-1,0,1,9223372036854775807}'::text[]);
INSERT INTO edge SELECT 'float4', unnest('{-Infinity,-1,0,1.5,NaN}'::text[]);
INSERT INTO edge SELECT 'float8', unnest('{-Infinity,-1,0,1.5,NaN}'::text[]);
INSERT INTO edge SELECT 'date', unnest('{-infinity,2000-01-01,2020-02-29,infinity}'::text[]);
INSERT INTO edge SELECT 'timestamptz', unnest('{-infinity,2000-01-01,2020-02-29 12:00,infinity}'::text[]);
INSERT INTO edge SELECT 'timetz', unnest('{00:00+00,12:00+01,12:00-15:59:59,24:00+15:59:59}'::text[]);
INSERT INTO edge SELECT 'interval', unnest('{-178000000 years,-1 day,0,1 day,178000000 years}'::text[]);
INSERT INTO edge SELECT 'uuid', unnest('{00000000-0000-0000-0000-000000000000,7fffffff-ffff-ffff-ffff-ffffffffffff,80000000-0000-0000-0000-000000000000,ffffffff-ffff-ffff-ffff-ffffffffffff}'::text[]);
INSERT INTO edge SELECT 'macaddr', unnest('{00:00:00:00:00:00,08:00:2b:01:02:03,ff:ff:ff:ff:ff:ff}'::text[]);
INSERT INTO edge SELECT 'mood', unnest(enum_range(NULL::mood))::text;

-- one word and its spill, exactly or with room, columns across its end
SELECT * FROM check_columns('{int4,int4}', '{ASC,ASC}');
SELECT * FROM check_columns('{int4,int4}', '{DESC,ASC}');
SELECT * FROM check_columns('{int4,int4}', '{ASC NULLS FIRST,DESC NULLS LAST}');
SELECT * FROM check_columns('{int2,int2}', '{ASC,DESC}');
SELECT * FROM check_columns('{bool,int2,"\"char\""}', '{ASC,DESC,ASC NULLS FIRST}');
SELECT * FROM check_columns('{int4,int2,int2}', '{ASC,DESC NULLS LAST,DESC}');
SELECT * FROM check_columns('{bool,int8}', '{DESC,ASC}');
SELECT * FROM check_columns('{int8,bool}', '{ASC,DESC}');
SELECT * FROM check_columns('{bool,bool,int8}', '{ASC,ASC,ASC}');
SELECT * FROM check_columns('{int8,bool,bool,bool}', '{ASC,DESC,ASC,DESC}');
SELECT * FROM check_columns('{int8,"\"char\""}', '{ASC,ASC}');
-- two words
SELECT * FROM check_columns('{int8,int8}', '{ASC,ASC}');
SELECT * FROM check_columns('{int8,int8}', '{DESC NULLS LAST,ASC NULLS FIRST}');
SELECT * FROM check_columns('{int4,timestamptz}', '{ASC,DESC}');
SELECT * FROM check_columns('{date,float8,mood}', '{ASC,ASC NULLS FIRST,DESC}');
SELECT * FROM check_columns('{int4,int4,int4,int4}', '{ASC,DESC,ASC NULLS FIRST,DESC NULLS LAST}');
SELECT * FROM check_columns('{int2,int2,int2,int2,int2,int2,int2,int2}', '{ASC,DESC,ASC,DESC,ASC,DESC,ASC,DESC}');
SELECT * FROM check_columns('{uuid}', '{DESC}');
SELECT * FROM check_columns('{uuid,bool}', '{ASC,ASC}');
SELECT * FROM check_columns('{bool,uuid}', '{DESC,DESC}');
SELECT * FROM check_columns('{bool,bool,bool,uuid}', '{ASC,DESC,ASC,ASC}');
SELECT * FROM check_columns('{timetz,int4}', '{ASC,DESC}');
SELECT * FROM check_columns('{float4,timetz}', '{DESC,ASC NULLS FIRST}');
SELECT * FROM check_columns('{interval,int4}', '{ASC,ASC}');
SELECT * FROM check_columns('{int8,macaddr,int2}', '{ASC,DESC,ASC}');

-- arrays on several columns multiply, up to a limit
CREATE TABLE g (a int, b int, c int);
INSERT INTO g SELECT i % 100, i / 100 % 100, i % 7 FROM generate_series(0, 9999) i;
CREATE INDEX g_abc ON g USING gpu_btree (a, b DESC, c);
ANALYZE g;
SELECT array_agg(i * 3) AS multiples FROM generate_series(-2000, 2000) i \gset
SELECT differs(format('SELECT sum(a * 10000 + b * 100 + c) || '' '' || count(*) FROM g WHERE a = ANY (%L) AND b = ANY (%L)',
					  :'multiples', :'multiples')) AS wrong;
SELECT differs(format('SELECT sum(a * 10000 + b * 100 + c) || '' '' || count(*) FROM g WHERE a = ANY (%L) AND b = 5 AND c = ANY (%L)',
					  :'multiples', :'multiples')) AS wrong;
SELECT differs(format('SELECT sum(a * 10000 + b * 100 + c) || '' '' || count(*) FROM g WHERE a = 7 AND b = ANY (%L) AND c = ANY (%L) AND c > 2',
					  :'multiples', :'multiples')) AS wrong;

-- Several keys on one column: all of them hold.
SELECT differs('SELECT array_agg(b ORDER BY b) FROM g WHERE a > 3 AND a >= 5 AND a < 90 AND a <= 7 AND a = ANY (''{1,5,6,7,8}'') AND a = ANY (''{8,7,6}'')') AS wrong;
SELECT differs('SELECT count(*) FROM g WHERE a = ANY (''{3,5}'') AND a = 4::int8') AS wrong;
SELECT differs('SELECT count(*) FROM g WHERE a > 3 AND a IS NULL') AS wrong;
SELECT differs('SELECT count(*) FROM g WHERE a IS NOT NULL AND a IS NULL') AS wrong;
SELECT differs('SELECT count(*) FROM g WHERE a = ANY (''{1,2}'') AND a IS NULL') AS wrong;
SELECT differs('SELECT count(*) FROM g WHERE a = (SELECT NULL::int) AND b = 3') AS wrong;
SELECT differs('SELECT count(*) FROM g WHERE a = ANY ((SELECT NULL::int[])::int[]) AND b = 3') AS wrong;
