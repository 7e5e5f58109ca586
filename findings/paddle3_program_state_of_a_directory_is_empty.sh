#!/usr/bin/env bash
# paddlepaddle 3.3.1 (Python 3.11): paddle.static.load_program_state of a directory of variables, which save_vars
# wrote, is {} without an error or a warning; a script that fills its program from it trains from initial values.
# With the environment variable FLAGS_enable_pir_api=0 the same call returns the variables, as 2.6.2 does.
# Seen: 3.3.1 gives [] by default, ['b', 'w'] with FLAGS_enable_pir_api=0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check paddlepaddle==3.3.1 setuptools==80.9.0
cat > "$folder/save.py" <<'PY'
import sys
import paddle

paddle.enable_static()
main, startup = paddle.static.Program(), paddle.static.Program()
with paddle.static.program_guard(main, startup):
    for name in ("w", "b"):
        paddle.static.create_parameter([2], "float32", name=name)
exe = paddle.static.Executor()
exe.run(startup)
paddle.static.io.save_vars(exe, sys.argv[1], main, predicate=lambda var: var.persistable)
PY
cat > "$folder/load.py" <<'PY'
import sys
import paddle

paddle.enable_static()
print(sorted(paddle.static.load_program_state(sys.argv[1])))
PY
export GLOG_minloglevel=3
FLAGS_enable_pir_api=0 "$folder/venv/bin/python" -W ignore "$folder/save.py" "$folder/variables" 2> /dev/null
ls "$folder/variables"
new=$("$folder/venv/bin/python" -W ignore "$folder/load.py" "$folder/variables" 2> /dev/null | tail -1)
old=$(FLAGS_enable_pir_api=0 "$folder/venv/bin/python" -W ignore "$folder/load.py" "$folder/variables" 2> /dev/null | tail -1)
echo "default: $new"
echo "FLAGS_enable_pir_api=0: $old"
[ "$new" = "[]" ] && [ "$old" = "['b', 'w']" ]
