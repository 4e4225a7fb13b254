#!/bin/bash
# redis-server under redis-benchmark. See ../README.md for the rules all scripts follow.
set -euo pipefail
keys=${KEYS:-200000}
requests=${REQUESTS:-600000}
value_bytes=${VALUE_BYTES:-512}

for tool in redis-server redis-cli redis-benchmark; do
  command -v "$tool" >/dev/null || { echo "redis/run.sh: $tool is missing; install redis-server and redis-tools" >&2; exit 3; }
done
folder=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT

# A free port, from the range that Linux does not give to outgoing connections.
port=
for _ in $(seq 100); do
  candidate=$((10000 + RANDOM % 20000))
  if ! (exec 3<>"/dev/tcp/127.0.0.1/$candidate") 2>/dev/null; then port=$candidate; break; fi
done
[ -n "$port" ] || { echo "redis/run.sh: no free port between 10000 and 29999 in 100 tries" >&2; exit 1; }

# ISOTHERM_WRAP is split into words on purpose: it is a command prefix.
# shellcheck disable=SC2086
${ISOTHERM_WRAP:-} redis-server --bind 127.0.0.1 --port "$port" --save '' --appendonly no --dir "$folder" \
  --enable-debug-command yes --logfile "$folder/log" --daemonize no >"$folder/out" 2>"$folder/err" &
server=$!
cli() { redis-cli -h 127.0.0.1 -p "$port" "$@"; }
for _ in $(seq 300); do
  [ "$(cli ping 2>/dev/null)" = PONG ] && break
  kill -0 "$server" 2>/dev/null || { cat "$folder/err" "$folder/log" >&2; echo "redis/run.sh: the server ended before it answered" >&2; exit 1; }
  sleep 0.1
done

benchmark() {
  redis-benchmark -h 127.0.0.1 -p "$port" -d "$value_bytes" -c 20 -P 16 "$@"
}
# Loads the value that redis-benchmark itself writes (always the same for one size), under the names
# it uses, so that its random writes leave the data base as it was.
benchmark -t set -n 1 >/dev/null
value=$(cli get key:__rand_int__)
cli flushall >/dev/null
value=$value awk -v keys="$keys" -v bytes="$value_bytes" 'BEGIN {
  for (i = 0; i < keys; ++i) printf "*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$%d\r\n%s\r\n", i, bytes, ENVIRON["value"]
}' | cli --pipe >/dev/null
measure() {
  benchmark -t "$1" -n "$requests" -r "$keys" --csv |
    awk -F'"' -v n="$requests" -v name="$1" 'NR > 1 { printf "%s_per_second %s\n", name, $4 >"/dev/stderr"; print n / $4 }'
}
set_seconds=$(measure set)
get_seconds=$(measure get)
echo "redis: keys $(cli dbsize) digest $(cli debug digest)"
cli shutdown nosave
status=0
wait "$server" || status=$?
server=
cat "$folder/err" >&2
awk -v a="$set_seconds" -v b="$get_seconds" 'BEGIN { printf "kernel_seconds %.6f\n", a + b }' >&2
exit "$status"
