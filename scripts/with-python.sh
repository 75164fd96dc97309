# Find a Python that is new enough and hand over to scripts/bootstrap.py.
# Sourced by scripts/dev and scripts/test, which set `here` first; arguments are passed on.
# shellcheck shell=sh

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

describe() {
    "$1" -c 'import sys; print("Python %d.%d.%d" % sys.version_info[:3])' 2>/dev/null
}

# Set `python` to the first candidate that is fit, and note the others in `found`.
try_candidates() {
    for candidate in "$@"; do
        # A name on the path proves nothing (version managers put stand-ins there): it has to run.
        if new_enough "$candidate"; then
            python=$candidate
            return
        fi
        if version=$(describe "$candidate"); then
            found="$found
  $candidate is $version"
        fi
    done
}

python=
found=
if [ -n "${PYTHON:-}" ]; then
    try_candidates "$PYTHON"
else
    try_candidates python3 python3.14 python3.13 python3.12 python3.11 python
fi
if [ -n "$python" ]; then
    exec "$python" "$here/bootstrap.py" "$@"
fi

{
    echo "Notify Queue needs Python 3.11 or newer, and none was found."
    if [ -n "${PYTHON:-}" ]; then
        echo "Only PYTHON=$PYTHON was tried, because it is set."
    fi
    echo "Found:${found:- no Python that runs}"
    echo "Install one, or name it: PYTHON=/path/to/python3.11 $0"
} >&2
exit 1
