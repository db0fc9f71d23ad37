# Shared by .ci/run and .ci/nightly, which set work to a folder of their own.

# packages installs those of Debian's packages in $@ that are missing.
packages() {
  local p missing=()
  for p in "$@"; do dpkg -s "$p" >/dev/null 2>&1 || missing+=("$p"); done
  [ ${#missing[@]} -eq 0 ] && return
  apt-get update -q >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" >/dev/null
}

# failures prints what each failed test of a -v log printed, its last 20 kB, and panics.
failures() {
  LC_ALL=C awk '
    /^=== (RUN|NAME|CONT|PAUSE)/ { now = $3; next }
    /^ *--- FAIL:/ { failed[++n] = $3 }
    /^(ok|FAIL)[ \t]/ { print; now = "" }
    { said[now] = substr(said[now] $0 "\n", length(said[now]) > 20000 ? length($0) : 1) }
    END { for (i = 1; i <= n; i++) printf "\n-- %s\n%s", failed[i], said[failed[i]] }' "$1"
  grep -aE -A60 '^panic:|^fatal error:' "$1" | head -200 || true
}

# tested runs go test with the given arguments. A skip fails it, but for tests with names as in $1.
tested() {
  local may=$1 log
  log=$(mktemp -p "$work")
  shift
  go test -v -count=1 "$@" >"$log" 2>&1 || { failures "$log"; return 1; }
  grep -aE '^ok' "$log" | grep -v 'no tests to run' || true
  grep -aE '^ *--- PASS.*\(([0-9]{2,})\.[0-9]+s\)' "$log" || true # where the time goes: 10 s and more
  grep -a 'measured again' "$log" || true
  if grep -aE -- '^ *--- SKIP' "$log" | grep -vE -- "$may"; then
    echo "these tests were skipped"
    return 1
  fi
}

# clocked runs the tests of the clock that $1 names, one after the other, in the given packages.
clocked() {
  local names=$1
  shift
  # A processor that sleeps wakes late, a virtual one by milliseconds. Held for as long as this script lives.
  if [ -z "${awake:-}" ]; then
    { exec {awake}<>/dev/cpu_dma_latency && printf '\0\0\0\0' >&"$awake"; } 2>/dev/null || true
  fi
  PELT_CLOCK=1 tested '^$' -p 1 -parallel 1 -timeout 60m -run "$names" "$@"
}

# folders lists the packages whose files, of the names in $1, have a line that matches $2.
folders() { grep -rlE --include="$1" "$2" . | xargs -n1 dirname | sort -u; }

# racy lists the packages that start goroutines. What starts the program has it in another process.
racy() { folders '*.go' '^\s+go [a-z]|\.Go\(func' | grep -vE '^\./test'; }

others() { go list ./... | sed 's,^pelt,.,' | grep -vxF "$(racy)" | grep -vxE '\./test(/faults)?'; }

# drawn keeps the packages with tests of drawn cases; fixed keeps the others.
drawn() { grep -xF "$(folders '*_test.go' '"pgregory.net/rapid"')"; }
fixed() { grep -vxF "$(folders '*_test.go' '"pgregory.net/rapid"')"; }

# installed installs the Debian package in dist/ into an empty root, runs pelt "$@" and removes it: nothing is left.
installed() {
  local root=$work/root
  mkdir -p "$root"/var/lib/dpkg/{info,updates}
  touch "$root"/var/lib/dpkg/{status,available}
  dpkg --root="$root" --install dist/pelt-0.0.1-linux-amd64.deb >/dev/null || return 1
  "$root/usr/bin/pelt" version | grep '^pelt 0.0.1' || return 1
  (cd "$work" && PELT_DATA=$work/data "$root/usr/bin/pelt" "$@") || return 1
  dpkg --root="$root" --purge pelt >/dev/null || return 1
  ! find "$root" -path "$root/var" -prune -o -type f -print | grep .
}
