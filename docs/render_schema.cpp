// Writes hstujit.schema.json, the JSON Schema of the config, for editors; run by the target `docs`.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "compiler/spec/schema.h"
#include "compiler/support/files.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: render_schema FILE\n");
    return 2;
  }
  const hstujit::Status status = hstujit::write_file_atomically(argv[1], hstujit::config_schema().dump(2) + "\n");
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
