# Shared by the scripts beside it: where parts go, and how a system package is installed.

set -eu

# Outside the repository, and for root outside its home: root's Postgres runs as another user, who
# must reach the second version's binaries.
if [ -n "${AGENT_RUNTIME_PARTS:-}" ]; then
  PARTS=$AGENT_RUNTIME_PARTS
elif [ "$(id -u)" = 0 ]; then
  PARTS=/var/cache/agent-runtime-parts
else
  PARTS=${XDG_CACHE_HOME:-$HOME/.cache}/agent-runtime-parts
fi

say() { printf 'setup: %s\n' "$*"; }

fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# lock NAME: waits for whoever makes the same part at this time, and keeps others waiting until the shell ends or
# locks another.
lock() {
  mkdir -p "$PARTS"
  exec 9>"$PARTS/.lock-$1"
  if have flock; then flock 9; fi
}

# install_package NEED APT DNF BREW: installs the system package, or says how and ends. One at a time, and in a shell
# of its own, whose end lets the next one in.
install_package() (
  need=$1
  mkdir -p "$PARTS"
  exec 8>"$PARTS/.lock-system"
  if have flock; then flock 8; fi
  if have apt-get; then
    line="apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $2"
  elif have dnf; then
    line="dnf install -y $3"
  elif have brew; then
    say "installing $need: brew install $4"
    brew install "$4"
    exit
  else
    fail "$need is missing, and neither apt-get, dnf nor brew is here. Install $need and run this again."
  fi
  if [ "$(id -u)" = 0 ]; then
    as_root=""
  elif have sudo && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
  else
    fail "$need is missing. Install it with: sudo $line"
  fi
  say "installing $need: $line"
  # A fresh image has no package lists yet.
  if have apt-get; then
    $as_root env DEBIAN_FRONTEND=noninteractive $line </dev/null >/dev/null 2>&1 && exit
    $as_root apt-get update </dev/null >/dev/null
    line="env DEBIAN_FRONTEND=noninteractive $line"
  fi
  $as_root $line </dev/null || fail "$need could not be installed. Try it by hand: $line"
)

# From 1.21 on, Go fetches the newer one of itself that a module asks for.
knows_newer_ones() {
  is=$("$1" env GOVERSION 2>/dev/null | sed -n 's/.*go1\.\([0-9]*\).*/\1/p')
  [ "${is:-0}" -ge 21 ]
}

find_go() {
  for go in go /usr/local/go/bin/go /usr/lib/go/bin/go /usr/lib/go-*/bin/go; do
    have "$go" && knows_newer_ones "$go" && command -v "$go" && return
  done
  # None will do, so that what is wrong with the first one is said.
  command -v go || return 0
}

# need_go: sets `go` to a Go that is new enough, or installs one.
need_go() {
  go=$(find_go)
  [ -n "$go" ] || install_package Go golang-go golang go
  go=$(find_go)
  [ -n "$go" ] || fail "Go was installed, but is in no known place. Put its bin directory on PATH."
  knows_newer_ones "$go" ||
    fail "$go is older than Go 1.21 and cannot fetch the newer one that is needed. Install Go 1.21 or later: on Debian 12 golang-go from bookworm-backports, elsewhere the Go project's own archive in /usr/local/go; then run this again."
}

stands() { [ "$(cat "$PARTS/$1/.version" 2>/dev/null)" = "$2" ]; }

# finished NAME VERSION: whether this version of a part stands complete in the cache. Where it does not, nobody
# else makes it from here on.
finished() {
  stands "$1" "$2" && return
  lock "$1"
  stands "$1" "$2"
}

# begin NAME: an empty directory to build a part in; finish NAME VERSION puts it into its place.
begin() {
  mkdir -p "$PARTS"
  rm -rf "$PARTS/$1.new"
  mkdir "$PARTS/$1.new"
}

finish() {
  printf '%s\n' "$2" >"$PARTS/$1.new/.version"
  rm -rf "${PARTS:?}/$1"
  mv "$PARTS/$1.new" "$PARTS/$1"
}

# cargo_tool NAME VERSION FEATURES…: a cargo subcommand in a directory of its own. With little optimisation, since each
# runs for seconds. One target directory for all, which whoever calls this removes.
cargo_tool() {
  name=$1 version=$2
  shift 2
  if ! finished "$name" "$version"; then
    begin "$name"
    say "building $name $version, once"
    CARGO_TARGET_DIR="$PARTS/cargo-tools.build" CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
      CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
      cargo install --locked --quiet --no-track --root "$PARTS/$name.new" "$@" "$name@$version" </dev/null
    finish "$name" "$version"
  fi
  say "$name: $version in $PARTS/$name/bin"
}

# install_python_part NAME: a virtual environment with what NAME.txt beside this file lists.
install_python_part() {
  list=$(dirname "$0")/$1.txt
  wanted=$(cat "$list")
  have python3 || install_package Python python3 python3 python3
  if ! finished "$1" "$wanted" || ! "$PARTS/$1/bin/python" -c '' 2>/dev/null; then
    # No begin and finish: a virtual environment knows its own path and cannot be moved.
    lock "$1"
    rm -rf "${PARTS:?}/$1"
    if ! python3 -m venv "$PARTS/$1" >/dev/null 2>&1; then
      install_package "Python's venv" python3-venv python3 python3
      rm -rf "${PARTS:?}/$1"
      python3 -m venv "$PARTS/$1"
    fi
    say "installing into $PARTS/$1: $(printf '%s' "$wanted" | tr '\n' ' ')"
    "$PARTS/$1/bin/python" -m pip install -q --no-input --disable-pip-version-check \
      --no-deps -r "$list" </dev/null
    "$PARTS/$1/bin/python" -m pip check >/dev/null ||
      fail "$list does not list everything that its packages need."
    printf '%s\n' "$wanted" >"$PARTS/$1/.version"
  fi
  say "$1: $PARTS/$1/bin/python with $(printf '%s' "$wanted" | tr '\n' ' ')"
}
