#!/usr/bin/env bash
# The same JAX key gives other random numbers since JAX 0.5: keys are split and drawn in a way that can be partitioned.
# A training that is resumed from a saved key continues with other dropout masks and shuffles after an upgrade.
# jax_threefry_partitionable=False gives the old numbers, as long as that switch stays.
# Seen: jax 0.4.35 uniform(key(0), (3,)) = [0.965, 0.315, 0.633]; jax 0.10.2 = [0.948, 0.979, 0.332].
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
for version in 0.4.35 0.10.2; do
  "${PYTHON:-python3.11}" -m venv "$folder/$version"
  "$folder/$version/bin/pip" install -q "jax==$version" "jaxlib==$version"
  for partitionable in 0 1; do
    JAX_PLATFORMS=cpu JAX_THREEFRY_PARTITIONABLE=$partitionable "$folder/$version/bin/python" -c \
      'import jax; print([round(float(x), 4) for x in jax.random.uniform(jax.random.key(0), (3,))])'
  done
  JAX_PLATFORMS=cpu "$folder/$version/bin/python" -c \
    'import jax; print([round(float(x), 4) for x in jax.random.uniform(jax.random.key(0), (3,))])' > "$folder/$version.txt"
  echo "jax $version by default: $(cat "$folder/$version.txt")"
done
! cmp -s "$folder/0.4.35.txt" "$folder/0.10.2.txt" || { echo "both versions draw the same numbers now"; exit 1; }
