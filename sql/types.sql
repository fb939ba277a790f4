-- Every type and every pair of types that compare: operators, arrays, NULLs,
-- order, in all directions, at the edges of the types.
\set test test_types
\getenv srcdir PG_ABS_SRCDIR
\set prelude :srcdir '/sql/include/prelude.inc'
\i :prelude
\set keys :srcdir '/sql/include/keys.inc'
\i :keys

-- The operator classes are valid, and complete where btree's families are.
SELECT opcname, amvalidate(c.oid) FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod
WHERE amname = 'gpu_btree' AND NOT amvalidate(c.oid);
CREATE VIEW operators AS
SELECT amname, opfname, amoplefttype, amoprighttype, amopstrategy, amopopr
FROM pg_amop JOIN pg_opfamily f ON f.oid = amopfamily JOIN pg_am a ON a.oid = opfmethod;
SELECT amoplefttype::regtype, amoprighttype::regtype, amopstrategy, amopopr::regoperator
FROM (SELECT opfname, amoplefttype, amoprighttype, amopstrategy, amopopr FROM operators
	  WHERE amname = 'btree' AND opfname IN (SELECT opfname FROM operators WHERE amname = 'gpu_btree')
	  EXCEPT SELECT opfname, amoplefttype, amoprighttype, amopstrategy, amopopr FROM operators
	  WHERE amname = 'gpu_btree') missing
ORDER BY 1, 2, 3;
SELECT opfname, count(*) FROM operators WHERE amname = 'gpu_btree' GROUP BY opfname ORDER BY opfname COLLATE "C";

INSERT INTO edge SELECT 'int2', unnest('{-32768,-32767,-1,0,1,42,32766,32767}'::text[]);
INSERT INTO edge SELECT 'int4', unnest('{-2147483648,-2147483647,-32769,-32768,-32767,-1,0,1,42,32766,32767,32768,65535,65578,2147483646,2147483647}'::text[]);
INSERT INTO edge SELECT 'int8', unnest('{-9223372036854775808,-9223372036854775807,-2147483649,-2147483648,-2147483647,-32769,-32768,-1,0,1,42,32767,32768,65578,2147483647,2147483648,4294967295,4294967338,9223372036854775806,9223372036854775807}'::text[]);
SELECT * FROM check_type('int2', '{int2,int4,int8}');
SELECT * FROM check_type('int4', '{int2,int4,int8}');
SELECT * FROM check_type('int8', '{int2,int4,int8}');

INSERT INTO edge SELECT 'float4', unnest('{-Infinity,-3.4028235e38,-1.5,-0.1,-1.17549435e-38,-1e-45,-0,0,1e-45,1.17549435e-38,0.1,0.5,1,1.0000001,1.5,16777216,3.4028233e38,3.4028235e38,Infinity,NaN}'::text[]);
INSERT INTO edge SELECT 'float8', unnest('{-Infinity,-1.7976931348623157e308,-3.5e38,-3.4028235677973366e38,-3.4028234663852886e38,-1.5,-0.1,-0.10000000149011612,-1e-45,-1e-46,-5e-324,-0,0,5e-324,1e-46,7e-46,1e-45,1.401298464324817e-45,0.1,0.10000000149011612,0.5,1,1.00000005,1.0000001192092896,1.5,16777216,16777217,3.4028234663852886e38,3.4028235677973366e38,3.5e38,1.7976931348623157e308,Infinity,NaN}'::text[]);
SELECT * FROM check_type('float4', '{float4,float8}');
SELECT * FROM check_type('float8', '{float4,float8}');

-- Clocks go forward on 2021-03-14 at 02:00 and back on 2021-11-07 at 02:00 in New York.
INSERT INTO edge SELECT 'date', unnest('{-infinity,4713-11-24 BC,4713-11-25 BC,1999-12-31,2000-01-01,2000-01-02,2011-12-29,2011-12-30,2011-12-31,2021-03-13,2021-03-14,2021-03-15,2021-11-06,2021-11-07,2021-11-08,294276-12-31,294277-01-01,5874897-12-31,infinity}'::text[]);
INSERT INTO edge SELECT 'timestamp', unnest('{-infinity,4713-11-24 00:00 BC,4713-11-24 00:00:00.000001 BC,1999-12-31 23:59:59.999999,2000-01-01,2000-01-01 00:00:00.000001,2011-12-29 23:59:59,2011-12-30,2011-12-30 12:00,2011-12-31,2021-03-14,2021-03-14 01:59:59.999999,2021-03-14 02:00,2021-03-14 02:30,2021-03-14 03:00,2021-03-14 03:30,2021-11-07,2021-11-07 00:59,2021-11-07 01:00,2021-11-07 01:30,2021-11-07 01:59,2021-11-07 02:00,2021-11-07 02:30,294276-12-31,294276-12-31 23:59:59.999999,infinity}'::text[]);
INSERT INTO edge SELECT 'timestamptz', unnest('{-infinity,4713-11-24 00:00+00 BC,4713-11-24 20:00+00 BC,1999-12-31 23:59:59.999999+00,2000-01-01 00:00+00,2000-01-01 00:00-05,2011-12-29 10:00+00,2011-12-30 00:00+00,2011-12-30 10:00+00,2021-03-14 05:00+00,2021-03-14 06:59:59.999999+00,2021-03-14 07:00+00,2021-03-14 07:30+00,2021-11-07 04:00+00,2021-11-07 05:00+00,2021-11-07 05:30+00,2021-11-07 06:00+00,2021-11-07 06:30+00,2021-11-07 07:00+00,294276-12-31 00:00+00,294276-12-31 23:59:59.999999+00,infinity}'::text[]);
SELECT * FROM check_type('date', '{date,timestamp,timestamptz}');
SELECT * FROM check_type('timestamp', '{date,timestamp,timestamptz}');
SELECT * FROM check_type('timestamptz', '{date,timestamp,timestamptz}');
-- a day that was not, and the farthest zones there are
SET TimeZone = 'Pacific/Apia';
SELECT * FROM check_type('date', '{timestamptz}');
SELECT * FROM check_type('timestamp', '{timestamptz}');
SET TimeZone = '<+150>-150';
SELECT * FROM check_type('date', '{timestamptz}');
SELECT * FROM check_type('timestamp', '{timestamptz}');
SELECT * FROM check_type('timestamptz', '{date,timestamp}');
SET TimeZone = '<-150>150';
SELECT * FROM check_type('date', '{timestamptz}');
SELECT * FROM check_type('timestamp', '{timestamptz}');
SELECT * FROM check_type('timestamptz', '{date,timestamp}');
SET TimeZone = 'America/New_York';

INSERT INTO edge SELECT 'time', unnest('{00:00,00:00:00.000001,12:00,23:59:59.999999,24:00}'::text[]);
INSERT INTO edge SELECT 'timetz', unnest('{00:00+15:59:59,00:00+00,00:00-15:59:59,12:00+00,13:00+01,11:00-01,12:00+01,12:00:00.000001+01,23:59:59.999999-15:59:59,24:00+00,24:00-15:59:59,24:00+15:59:59}'::text[]);
INSERT INTO edge SELECT 'interval', unnest('{-178000000 years,-2147483648 months,-1 month,-30 days,-720 hours,-1 microsecond,0,1 microsecond,23:59:59.999999,24:00,1 day,29 days 23:59:59.999999,30 days,1 month,1 month -1 day,29 days,12 months,360 days,1 year,365 days,2147483647 months,2147483647 days,2562047788:00:54.775807,178000000 years 2147483647 days 2562047788:00:54.775807}'::text[]);
SELECT * FROM check_type('time', '{time}');
SELECT * FROM check_type('timetz', '{timetz}');
SELECT * FROM check_type('interval', '{interval}');

INSERT INTO edge SELECT 'bool', unnest('{false,true}'::text[]);
INSERT INTO edge SELECT '"char"', unnest(ARRAY['', E'\\001', '0', 'A', 'a', E'\\177', E'\\200', E'\\377']);
INSERT INTO edge SELECT 'oid', unnest('{0,1,2147483647,2147483648,4294967295}'::text[]);
INSERT INTO edge SELECT 'xid8', unnest('{0,1,4294967295,4294967296,9223372036854775808,18446744073709551615}'::text[]);
INSERT INTO edge SELECT 'pg_lsn', unnest('{0/0,0/1,0/FFFFFFFF,1/0,7FFFFFFF/FFFFFFFF,80000000/0,FFFFFFFF/FFFFFFFF}'::text[]);
INSERT INTO edge SELECT 'money', unnest('{-92233720368547758.08,-0.01,0,0.01,1000,92233720368547758.07}'::text[]);
INSERT INTO edge SELECT 'uuid', unnest('{00000000-0000-0000-0000-000000000000,00000000-0000-0000-0000-000000000001,00000000-0000-0000-8000-000000000000,00000000-0000-0001-0000-000000000000,7fffffff-ffff-ffff-ffff-ffffffffffff,80000000-0000-0000-0000-000000000000,ffffffff-ffff-ffff-ffff-fffffffffffe,ffffffff-ffff-ffff-ffff-ffffffffffff}'::text[]);
INSERT INTO edge SELECT 'macaddr', unnest('{00:00:00:00:00:00,00:00:00:00:00:01,00:00:00:ff:ff:ff,00:00:01:00:00:00,7f:ff:ff:ff:ff:ff,80:00:00:00:00:00,ff:ff:ff:ff:ff:ff}'::text[]);
INSERT INTO edge SELECT 'macaddr8', unnest('{00:00:00:00:00:00:00:00,00:00:00:00:00:00:00:01,00:00:00:00:ff:ff:ff:ff,00:00:00:01:00:00:00:00,7f:ff:ff:ff:ff:ff:ff:ff,80:00:00:00:00:00:00:00,ff:ff:ff:ff:ff:ff:ff:ff}'::text[]);
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'angry', 'z', 'a');
INSERT INTO edge SELECT 'mood', unnest(enum_range(NULL::mood))::text;
SELECT * FROM check_type('bool', '{bool}');
SELECT * FROM check_type('"char"', '{"\"char\""}');
SELECT * FROM check_type('oid', '{oid}');
SELECT * FROM check_type('xid8', '{xid8}');
SELECT * FROM check_type('pg_lsn', '{pg_lsn}');
SELECT * FROM check_type('money', '{money}');
SELECT * FROM check_type('uuid', '{uuid}');
SELECT * FROM check_type('macaddr', '{macaddr}');
SELECT * FROM check_type('macaddr8', '{macaddr8}');
SELECT * FROM check_type('mood', '{mood}');

-- Domains are what is below them.
CREATE DOMAIN small AS int2;
CREATE DOMAIN smaller AS small CHECK (VALUE < 32767);
CREATE DOMAIN my_mood AS mood;
INSERT INTO edge SELECT 'smaller', val FROM edge WHERE typ = 'int2' AND val <> '32767';
INSERT INTO edge SELECT 'my_mood', val FROM edge WHERE typ = 'mood';
SELECT * FROM check_type('smaller', '{smaller,int4}');
SELECT * FROM check_type('my_mood', '{mood}', 'k::mood');

-- Infinite intervals, where the server has them.
CREATE FUNCTION check_infinite_intervals() RETURNS TABLE (wrong text) LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO edge SELECT 'interval', unnest('{-infinity,infinity}'::text[]::interval[])::text;
	RETURN QUERY SELECT result FROM check_type('interval', '{interval}') WHERE result NOT LIKE 'interval: % queries';
EXCEPTION WHEN invalid_datetime_format THEN
END $$;
SELECT * FROM check_infinite_intervals();
