#!/usr/bin/env bash
# Installs what the build needs on Debian and Ubuntu; as root, or through sudo.
#
#   tools/install-deps.sh               install everything that is missing
#   tools/install-deps.sh --if-missing  the same, and print nothing when all is there
#   tools/install-deps.sh --sanitizers  also clang with its sanitizers and libFuzzer, for `make sanitize` and `make fuzz`
#
# LLVM and MLIR 22 come from apt.llvm.org where the distribution has no such packages. NVRTC 12.4 or newer is taken from
# an installed CUDA toolkit, else from the PyPI wheel nvidia-cuda-nvrtc, which goes to build/nvrtc, where the tests find
# it; for anything else HSTUJIT_NVRTC names the folder. Building needs no NVRTC: without one, what compiles CUDA source
# says what it looked for. nginx and Apache are for tests, which start their own; where systemd runs, the package of nginx
# also starts one on port 80.
set -euo pipefail
cd "$(dirname "$0")/.."

quiet=no
sanitizers=no
for argument in "$@"; do
  case "$argument" in
    --if-missing) quiet=yes ;;
    --sanitizers) sanitizers=yes ;;
    *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done

packages=(g++ cmake ninja-build ccache git ca-certificates
          libfmt-dev nlohmann-json3-dev libcli11-dev libsodium-dev libgtest-dev libgmock-dev
          zlib1g-dev libzstd-dev libcurl4-openssl-dev nginx apache2-bin openmpi-bin clang-format-19 clang-tidy-22
          llvm-22-dev libmlir-22-dev mlir-22-tools lld-22)
if [ "$sanitizers" = yes ]; then packages+=(clang-22 libclang-rt-22-dev); fi

say() { [ "$quiet" = yes ] || echo "$*"; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
# The whole output is read before it is searched: under pipefail a grep that stops early fails its producer.
known() { [[ "$(apt-cache policy "$1" 2>/dev/null)" =~ Candidate:\ [^\(] ]]; }

# Adds the repository of one LLVM release for this distribution's code name.
add_llvm_repository() {
  local release=$1 codename
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:?this distribution has no code name}")
  as_root install -d /etc/apt/keyrings
  curl -fsSL https://apt.llvm.org/llvm-snapshot.gpg.key | as_root tee /etc/apt/keyrings/apt.llvm.org.asc >/dev/null
  echo "deb [signed-by=/etc/apt/keyrings/apt.llvm.org.asc] https://apt.llvm.org/$codename/ llvm-toolchain-$codename-$release main" |
    as_root tee "/etc/apt/sources.list.d/llvm-$release.list" >/dev/null
  as_root apt-get update -qq
}

install_packages() {
  local missing=() package release
  for package in "${packages[@]}"; do installed "$package" || missing+=("$package"); done
  if [ ${#missing[@]} = 0 ]; then say "packages: all installed"; return; fi
  command -v apt-get >/dev/null || { echo "install-deps: only Debian and Ubuntu are known here; needed: ${missing[*]}" >&2; exit 1; }
  echo "packages: installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  as_root apt-get update -qq
  for package in "${missing[@]}"; do
    release=$(grep -oE -- '-(19|22)(-|$)' <<<"$package" | grep -oE '[0-9]+' || true)
    if [ -n "$release" ] && ! known "$package"; then
      command -v curl >/dev/null || as_root apt-get install -y -qq --no-install-recommends curl ca-certificates
      add_llvm_repository "$release"
    fi
  done
  as_root apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# Prints the path of a libnvrtc 12.4 or newer that the library itself would find.
find_nvrtc() {
  local folder file version
  for folder in ${HSTUJIT_NVRTC:+"$HSTUJIT_NVRTC"} ${CUDA_HOME:+"$CUDA_HOME/lib64"} /usr/local/cuda/lib64 \
                /usr/local/cuda-*/lib64 /usr/lib/x86_64-linux-gnu build/nvrtc/nvidia/*/lib; do
    for file in "$folder" "$folder"/libnvrtc.so.1[2-9]; do
      [ -f "$file" ] || continue
      version=$(readlink -f "$file" | grep -oE '[0-9]+\.[0-9]+(\.[0-9]+)?$' || true)
      # A wheel has the major version in its name alone; those for 12 that pip installs today are newer than 12.4.
      if [ -z "$version" ] || [ "$(printf '%s\n12.4\n' "$version" | sort -V | head -n 1)" = 12.4 ] ||
         [[ "$file" == build/nvrtc/* ]]; then
        echo "$file"
        return
      fi
    done
  done
}

install_nvrtc() {
  local file
  file=$(find_nvrtc)
  if [ -z "$file" ] && command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1; then
    echo "nvrtc: no CUDA toolkit 12.4 or newer; installing the wheel nvidia-cuda-nvrtc into build/nvrtc"
    if python3 -m pip install --quiet --disable-pip-version-check --no-deps --target build/nvrtc 'nvidia-cuda-nvrtc>=12.4' ||
       python3 -m pip install --quiet --disable-pip-version-check --no-deps --target build/nvrtc 'nvidia-cuda-nvrtc-cu12>=12.4'; then
      file=$(find_nvrtc)
    fi
  fi
  if [ -z "$file" ]; then
    say "nvrtc: none found (libnvrtc of CUDA 12.4 or newer); everything builds, compiling kernels needs one"
  elif [[ "$file" == build/nvrtc/* ]]; then
    say "nvrtc: export HSTUJIT_NVRTC=$PWD/$(dirname "$file")"
  else
    say "nvrtc: $file"
  fi
}

install_packages
install_nvrtc
