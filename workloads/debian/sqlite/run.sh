#!/bin/bash
# sqlite3 on a generated data base. See ../README.md for the rules all scripts follow.
set -euo pipefail
rows=${ROWS:-300000}
command -v sqlite3 >/dev/null || { echo "sqlite/run.sh: sqlite3 is missing; install sqlite3" >&2; exit 3; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/queries.sql" <<SQL
PRAGMA page_size = 4096;
PRAGMA cache_size = -262144;
PRAGMA synchronous = OFF;
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, product INTEGER, amount INTEGER, note TEXT);
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, region INTEGER);
WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < $rows)
  INSERT INTO orders SELECT i, (i * 7919) % 20000, (i * 104729) % 997, (i * 31) % 1000, printf('order %08d of the year', i) FROM n;
WITH RECURSIVE n(i) AS (VALUES(0) UNION ALL SELECT i + 1 FROM n WHERE i < 19999)
  INSERT INTO customers SELECT i, printf('customer-%d', i), i % 13 FROM n;
CREATE INDEX by_customer ON orders(customer);
CREATE INDEX by_product ON orders(product, amount);
SELECT region, count(*), sum(amount) FROM orders JOIN customers ON customers.id = orders.customer GROUP BY region ORDER BY region;
SELECT product, sum(amount) AS total FROM orders GROUP BY product ORDER BY total DESC, product LIMIT 10;
SELECT name, max(amount), count(DISTINCT product) FROM customers JOIN orders ON orders.customer = customers.id GROUP BY customers.id ORDER BY 3 DESC, name LIMIT 10;
SELECT count(*), sum(length(note)) FROM orders WHERE note LIKE '%77%';
SELECT group_concat(id, ',') FROM (SELECT id FROM orders ORDER BY amount DESC, note LIMIT 20);
UPDATE orders SET amount = amount + 1 WHERE customer % 3 = 0;
DELETE FROM orders WHERE product % 5 = 0;
SELECT count(*), sum(amount) FROM orders;
PRAGMA integrity_check;
SQL
begin=$(date +%s.%N)
# shellcheck disable=SC2086
${ISOTHERM_WRAP:-} sqlite3 -batch "$folder/data.db" <"$folder/queries.sql"
end=$(date +%s.%N)
awk -v a="$begin" -v b="$end" 'BEGIN { printf "kernel_seconds %.6f\n", b - a }' >&2
