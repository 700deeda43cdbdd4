// Writes docs/environment.md from the table of environment variables; run by the target `docs`.
#include <cstdio>

#include "compiler/support/env.h"
#include "compiler/support/files.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: render_environment FILE\n");
    return 2;
  }
  const hstujit::Status status = hstujit::write_file_atomically(argv[1], hstujit::environment_page());
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
