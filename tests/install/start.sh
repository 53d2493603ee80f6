# Starts the program that $program names as root, with the Python of `make setup`, in a mount and a network
# namespace of its own. For the scripts beside it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
parts=$("$here/../setup/where")
[ -x "$parts/python/bin/python" ] && [ -d "$parts/lab/root" ] || {
  echo "install: $parts/python or $parts/lab is missing. Run: make setup" >&2
  exit 1
}
become=
if [ "$(id -u)" != 0 ]; then
  sudo -n true 2>/dev/null || {
    echo "install: a system is booted here, which needs root. Run this as root." >&2
    exit 1
  }
  become="sudo -n --preserve-env=PATH,CARGO_TARGET_DIR AGENT_RUNTIME_PARTS=$parts"
fi
exec $become unshare --mount --net --propagation private -- \
  "$parts/python/bin/python" -B -u "$here/$program" "$@"
