#!/bin/bash
# coreutils, findutils, tar, gzip, grep, sed, awk and diff on generated files, in the current folder.
# No pipefail: head ends some pipes early.
set -eu
export LC_ALL=C TZ=UTC
mkdir -p files/deep/er
awk 'BEGIN { srand(7); for (i = 0; i < 60000; ++i) printf "%d\t%d\tline %d of %d\n", rand() * 100000, i % 977, i, rand() * 1000 }' >files/table
for i in $(seq 40); do head -n "$((i * 50))" files/table >"files/deep/part-$i"; done
seq 200000 >files/deep/er/numbers
find files -exec touch -d 2020-02-02T02:02:02 {} +

sort files/table | md5sum
sort -k2,2n -k1,1nr --parallel=2 -S 1M files/table | md5sum
sort -u -t "$(printf '\t')" -k2,2 files/table | wc
cut -f2 files/table | sort | uniq -c | sort -rn | head -5
join -t "$(printf '\t')" <(sort -k1,1 files/table) <(head -2000 files/table | sort -k1,1) | md5sum
comm -12 <(sort files/deep/part-10) <(sort files/deep/part-20) | wc -l
ls -lR --time-style=full-iso files | awk '{ $2 = $3 = $4 = ""; print }' | sort | md5sum
find files -type f -size +10k -printf '%p %s\n' | sort | tail -3
md5sum files/deep/part-7 && sha256sum files/table && sha512sum files/table | cut -c1-32 && cksum files/table && b2sum files/table | cut -c1-32
split -l 7000 files/table piece- && cat piece-* | cmp - files/table && ls piece-* | wc -l
tar --sort=name --owner=0 --group=0 --mtime=@0 --mode=u=rw,go= -cf all.tar files && md5sum <all.tar
mkdir out && tar -xf all.tar -C out && diff -r files out/files && echo same
gzip -9nk all.tar && gzip -dc all.tar.gz | cmp - all.tar && md5sum <all.tar.gz
tac files/table | rev | tr a-z A-Z | md5sum
paste files/deep/part-1 files/deep/part-2 | expand | fold -w 40 | md5sum
shuf --random-source=files/table files/deep/er/numbers | head -1000 | md5sum
od -A d -t x1 files/deep/part-3 | tail -2
grep -c '7.*7' files/table && sed -E 's/([0-9]+)\t([0-9]+)/\2 \1/' files/table | md5sum
diff files/deep/part-3 files/deep/part-4 | wc -l
factor 600851475143 1234567890123456789
numfmt --to=iec 123456789 && date -d @1e9 +%F 2>/dev/null || echo "date: refused"
base64 files/deep/part-1 | tail -1 && nl files/deep/part-1 | tail -1 && pr -l 20 files/deep/part-1 | md5sum
dd if=files/table bs=4096 count=20 skip=3 status=none | md5sum
ls /no/such/folder 2>&1 || echo "status $?"
yes | head -100000 | md5sum
timeout 0.2 sleep 5 || echo "status $?"
xargs -n 50 -P 4 md5sum <<<"$(find files/deep -type f | sort)" | sort | md5sum
