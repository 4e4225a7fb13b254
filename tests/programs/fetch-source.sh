#!/bin/bash
# Fetches upstream sources of Debian packages, for their test suites or to be compiled:
#
#     fetch-source.sh redis FOLDER      FOLDER/redis, beside the installed redis-server
#     fetch-source.sh python FOLDER     FOLDER/python/test, for the installed python3
#     fetch-source.sh NAME FOLDER       FOLDER/NAME, the newest source of one of the packages lua5.4, libzstd, sqlite3,
#                                       graphicsmagick, or redis-source: redis with nothing installed beside it
#
# Works on a fresh Debian 12, as any user: apt's source lists and caches are in the folder, so the machine's own
# configuration stays unchanged. Nothing is built. apt checks the files against Debian's signatures.
set -euo pipefail
fail() { echo "fetch-source.sh: $1" >&2; exit 3; }
[ $# = 2 ] || { echo "usage: fetch-source.sh redis|python|lua5.4|libzstd|sqlite3|graphicsmagick|redis-source FOLDER" >&2; exit 2; }
what=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
[ ! -d "$folder/$what" ] || exit 0
case $what in
  redis) binary=redis-server source=redis ;;
  python) binary=python3.11 source=python3.11 ;;
  lua5.4 | libzstd | sqlite3 | graphicsmagick) binary= source=$what ;;
  redis-source) binary= source=redis ;;
  *) fail "there is no source \"$what\"; see the beginning of this file" ;;
esac

if [ -n "$binary" ]; then
  version=$(dpkg-query -W -f='${source:Version}' "$binary" 2>/dev/null) || fail "$binary is not installed; apt-get install $binary"
fi
mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
cat >"$folder/apt/sources.list" <<LIST
deb-src [signed-by=$keyring] http://deb.debian.org/debian bookworm main
deb-src [signed-by=$keyring] http://deb.debian.org/debian bookworm-updates main
deb-src [signed-by=$keyring] http://deb.debian.org/debian-security bookworm-security main
LIST
apt=(apt-get -qq -o "Dir::Etc::sourcelist=$folder/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o "Dir::State::lists=$folder/apt/lists" -o "Dir::Cache::archives=$folder/apt/archives"
  -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User= -o Acquire::Retries=5)
"${apt[@]}" update
revisions=$(apt-cache "${apt[@]:1}" showsrc "$source" | awk '$1 == "Version:" { print $2 }' | sort -uVr)
[ -n "$binary" ] || version=${revisions%%[[:space:]]*}
# Any Debian revision of an upstream version has the same upstream archive, and a mirror may lack the newest.
upstream=${version#*:}
upstream=${upstream%-*}
for revision in $version $revisions; do
  [[ "$revision" == *"$upstream"-* ]] || continue
  (cd "$folder" && "${apt[@]}" source --download-only "$source=$revision" >/dev/null 2>"$folder/apt/errors") && break
done
archive=$(echo "$folder/${source}_$upstream".orig.tar.*z)
[ -f "$archive" ] || fail "no mirror had the source of $source $upstream: $(tail -1 "$folder/apt/errors")"
rm -rf "$folder/new"
mkdir "$folder/new"
if [ -z "$binary" ]; then
  tar -xf "$archive" -C "$folder/new" --strip-components=1
elif [ "$what" = redis ]; then
  tar -xf "$archive" -C "$folder/new" --strip-components=1
  # The suite searches here for the programs that it would have built: the installed ones.
  for program in redis-server redis-cli redis-benchmark redis-check-aof redis-check-rdb; do
    path=$(command -v "$program") || fail "$program is missing; apt-get install redis-server redis-tools"
    ln -sf "$path" "$folder/new/src/$program"
  done
else
  tar -xf "$archive" -C "$folder/new" --strip-components=2 --wildcards '*/Lib/test/*'
fi
mv "$folder/new" "$folder/$what"
