#!/bin/bash
# git in a repository of its own, in the current folder: dates and names fixed, so hashes are too.
set -euo pipefail
export LC_ALL=C TZ=UTC HOME=$PWD GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org
git init -q -b trunk repository && cd repository
for i in $(seq 25); do
  export GIT_AUTHOR_DATE="2020-01-01T00:00:$(printf %02d "$i")Z" GIT_COMMITTER_DATE="2020-01-01T00:00:$(printf %02d "$i")Z"
  mkdir -p "folder-$((i % 5))"
  seq "$i" "$((i * 400))" >"folder-$((i % 5))/file-$i"
  seq "$((i * 3))" >changing
  git add -A && git commit -qm "Change $i"
done
git log --format='%H %s' | md5sum
git log --stat --no-color | md5sum
git diff --no-color HEAD~10 HEAD | md5sum
git checkout -qb side HEAD~5 && echo other >side-file && git add -A && git commit -qm Side
git checkout -q trunk && git merge -q -m Merge side && git rev-parse HEAD
git blame changing | md5sum
git grep -c 77 | sort | md5sum
git fsck --full --strict 2>/dev/null && echo "fsck fine"
git -c gc.threads=2 -c pack.threads=2 gc -q --prune=now && git fsck --full 2>/dev/null && git count-objects -v | grep -E '^(count|in-pack|packs|garbage)'
git archive --format=tar HEAD | md5sum
git rebase -q --onto HEAD~3 HEAD~1 && git rev-parse HEAD
git bundle create -q all.bundle --all && git clone -q all.bundle ../copy && git -C ../copy rev-parse HEAD
git stash list | wc -l
git cat-file --batch-all-objects --batch-check | sort | md5sum
git show no-such-name 2>&1 || echo "status $?"
