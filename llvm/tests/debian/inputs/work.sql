-- Tables, indexes, joins, windows, recursion, text search and a large sort, in memory.
CREATE TABLE item(id INTEGER PRIMARY KEY, kind TEXT, price REAL, note TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO item SELECT i, 'kind' || (i * 31 % 97), i * 7919 % 10007 / 100.0, hex(i * i) || '-note' FROM n;
CREATE INDEX item_kind ON item(kind, price);
CREATE TABLE sale(item INTEGER REFERENCES item(id), day INTEGER, amount INTEGER);
INSERT INTO sale SELECT id * 13 % 20000 + 1, id % 365, id % 11 FROM item;
SELECT count(*), round(sum(price), 2), min(note), max(note) FROM item;
SELECT kind, count(*), round(avg(price), 3) FROM item GROUP BY kind ORDER BY 2 DESC, 1 LIMIT 10;
SELECT i.kind, sum(s.amount * i.price) AS turnover FROM sale s JOIN item i ON i.id = s.item GROUP BY i.kind ORDER BY turnover DESC LIMIT 5;
SELECT id, note, rank() OVER (PARTITION BY kind ORDER BY price DESC) FROM item WHERE id % 1999 = 0;
SELECT group_concat(note, '') IS NOT NULL, length(group_concat(note, '')) FROM (SELECT note FROM item ORDER BY note DESC);
UPDATE item SET note = replace(note, '-note', printf('-%.3f', price)) WHERE price > 50;
DELETE FROM item WHERE id % 3 = 0;
VACUUM;
SELECT count(*), length(group_concat(note)) FROM item;
PRAGMA integrity_check;
