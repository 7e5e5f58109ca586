#!/usr/bin/env bash
# paddlepaddle 3.1.1 and 3.3.1: paddle.distributed.save_state_dict of 3.3.1 takes nested dicts, its load_state_dict
# refuses them. And 3.3.1 does not open what 3.1.1 saved: the pickle names a module that has moved
# (paddle.distributed.checkpoint). Whoever updates cannot resume.
# Seen: ValueError for a nested one of 3.3.1; ModuleNotFoundError in 3.3.1 for a flat one of 3.1.1.
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT && cd "$folder"
for version in 3.1.1 3.3.1; do
  "${PYTHON:-python3.11}" -m venv "v$version" && "v$version/bin/pip" install -q "paddlepaddle==$version" setuptools
done
cat > save.py <<'PY'
import sys, warnings
warnings.simplefilter("ignore")
import paddle, paddle.distributed as dist
dist.save_state_dict({"model": {"w": paddle.ones([2, 2])}}, sys.argv[1])
dist.save_state_dict({"w": paddle.ones([2, 2])}, sys.argv[1] + "-flat")
PY
cat > load.py <<'PY'
import sys, warnings
warnings.simplefilter("ignore")
import paddle, paddle.distributed as dist
w = paddle.zeros([2, 2])
try:
    dist.load_state_dict({"w": w} if sys.argv[1].endswith("-flat") else {"model": {"w": w}}, sys.argv[1])
    print("loaded" if float(w.sum()) == 4 else "not loaded")
except Exception as error:
    print(type(error).__name__)
PY
for version in 3.1.1 3.3.1; do "v$version/bin/python" save.py "saved-$version" > /dev/null 2>&1; done
said=""
for pair in "3.3.1 saved-3.3.1" "3.3.1 saved-3.3.1-flat" "3.3.1 saved-3.1.1-flat"; do
  read -r version saved <<< "$pair"
  found=$("v$version/bin/python" load.py "$saved" 2> /dev/null | tail -1)
  echo "$version loads $saved: $found"
  said="$said $found"
done
[ "$said" = " ValueError loaded ModuleNotFoundError" ]
