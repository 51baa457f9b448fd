# packages.sh - Debian packages for a directory of their own, without installing them. Sourced by tools/criu, tools/vm and tools/guest-kernel.
#
# Nothing is installed, upgraded or added to the system's sources, and apt checks the signatures as always. The caller has say()
# and give_up().
# shellcheck shell=bash

suite=trixie
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

packages_possible() { # what is fetched
    [ "$(id -u)" = 0 ] || give_up "only root can fetch $1 (sudo $0)"
    [ "$(uname -m)" = x86_64 ] || give_up "there is none for $(uname -m)"
    local program
    for program in apt-get dpkg-deb flock; do
        command -v $program >/dev/null || give_up "$program is not there"
    done
    [ -r $keyring ] || give_up "the package debian-archive-keyring is not there"
}

# The lock is held to the end of the script: of two at once, the second finds all in place. $tmp is beside the prefix, and goes at the end.
packages_begin() { # prefix
    parent=$(dirname "$1")
    mkdir -p "$parent"
    exec 9<"$parent"
    flock 9
    local name
    name=$(basename "$1")
    rm -rf "$parent/.$name".* # of one that was killed
    tmp=$(mktemp -d "$parent/.$name.XXXXXX")
    trap 'rm -rf "$tmp"' EXIT
}

# An apt of its own: no package is installed, so that every library comes along; one source; nothing of the
# system's is read but the mirror's name, how to reach it (proxy, certificates) and Debian's keys.
packages_apt() { # program, argument…
    "$1" -qq -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$tmp/apt/parts" \
        -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
        -o "Dir::State::status=$tmp/apt/status" -o "Dir::State::lists=$tmp/apt/lists" \
        -o "Dir::State::extended_states=$tmp/apt/extended" -o "Dir::Cache::archives=$tmp/apt/archives" \
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Dir::Log="$tmp/apt" -o APT::Architecture=amd64 \
        -o APT::Architectures::=amd64 -o APT::Sandbox::User=root -o APT::Get::AllowUnauthenticated=false \
        -o Acquire::AllowInsecureRepositories=false -o Acquire::Languages=none -o Acquire::Retries=1 \
        -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 "${@:2}"
}
apt_get() { packages_apt apt-get "$@" >"$tmp/apt/said" 2>&1; }
why() { grep -m1 -E '^[EW]:' "$tmp/apt/said" | cut -c1-160 || tail -n1 "$tmp/apt/said" | cut -c1-160; }

packages_index() {
    local mirror
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' 2>/dev/null |
        awk '$1 == "Debian" && $2 == "main" && $3 !~ /security/ { print $3; exit }') || mirror=
    [ -n "$mirror" ] || give_up "apt knows no Debian mirror (apt-get update?)"
    mkdir -p "$tmp"/apt/{lists/partial,archives/partial,parts} "$tmp/tree"
    : >"$tmp/apt/status"
    echo "deb [arch=amd64 signed-by=$keyring] $mirror $suite main" >"$tmp/apt/parts/cove.list"
    # With --error-on=any an index that did not arrive is an error, not a warning.
    apt_get --error-on=any update || give_up "the package index of '$suite' cannot be fetched ($(why))"
}

# Into $tmp/tree, with all that the packages need.
packages_unpack() { # package…
    local package
    apt_get -y --download-only --no-install-recommends install "$@" || give_up "the packages cannot be fetched ($(why))"
    for package in "$tmp"/apt/archives/*.deb; do
        dpkg-deb -x "$package" "$tmp/tree" || give_up "$(basename "$package") cannot be unpacked"
    done
}

# Renamed into place whole, an old one aside before: what runs from it has its files open.
packages_place() { # tree, prefix
    chmod 0755 "$tmp" "$1"
    [ ! -e "$2" ] || mv -T "$2" "$tmp/old"
    mv -T "$1" "$2"
}
