# Starts the show that $story names, with the Python of `make setup`. For the scripts beside it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$("$here/../setup/where")/python/bin/python
[ -x "$python" ] || {
  echo "show: $python is missing. Run: make setup" >&2
  exit 1
}
exec "$python" -B -u "$here/$story" "$@"
