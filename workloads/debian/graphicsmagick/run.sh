#!/bin/bash
# GraphicsMagick on a large generated picture. See ../README.md for the rules all scripts follow.
set -euo pipefail
width=${WIDTH:-6000}
height=${HEIGHT:-4500}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}
command -v gm >/dev/null || { echo "graphicsmagick/run.sh: gm is missing; install graphicsmagick" >&2; exit 3; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Smooth waves with noise on top, from a seed.
/usr/bin/python3 - "$width" "$height" >"$folder/in.ppm" <<'PYTHON'
import random, sys
width, height = int(sys.argv[1]), int(sys.argv[2])
noise = random.Random(1)
sys.stdout.buffer.write(b"P6\n%d %d\n255\n" % (width, height))
for row in range(height):
    wave = bytes((row * 3 + column) & 255 for column in range(256)) * (3 * width // 256 + 1)
    mask = noise.randbytes(3 * width)
    mixed = int.from_bytes(wave[: 3 * width], "little") ^ (int.from_bytes(mask, "little") & int.from_bytes(b"\x1f" * (3 * width), "little"))
    sys.stdout.buffer.write(mixed.to_bytes(3 * width, "little"))
PYTHON
begin=$(date +%s.%N)
# shellcheck disable=SC2086
${ISOTHERM_WRAP:-} gm convert "$folder/in.ppm" -blur 0x2 -equalize -rotate 90 -resize 60% -unsharp 0x1 -depth 8 "$folder/out.ppm"
end=$(date +%s.%N)
echo "graphicsmagick: $(md5sum <"$folder/out.ppm" | cut -d' ' -f1) $(stat -c %s "$folder/out.ppm") bytes"
awk -v a="$begin" -v b="$end" 'BEGIN { printf "kernel_seconds %.6f\n", b - a }' >&2
