// Writes the files that are rendered from tables in the code, below the folder that it is given; run by the target
// `docs`.
#include <cstdio>
#include <filesystem>

#include "compiler/spec/operators_header.h"
#include "compiler/spec/parameters_page.h"
#include "compiler/spec/schema.h"
#include "compiler/support/env.h"
#include "compiler/support/files.h"
#include "compiler/support/json.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: render FOLDER\n");
    return 2;
  }
  const struct {
    const char* file;
    std::string text;
  } pages[] = {{"docs/environment.md", hstujit::environment_page()},
               {"docs/parameters.md", hstujit::parameters_page()},
               {"include/hstujit/operators.hpp", hstujit::operators_header()},
               {"hstujit.schema.json", hstujit::config_schema().dump(2) + "\n"}};
  for (const auto& page : pages) {
    const hstujit::Status status =
        hstujit::write_file_atomically(std::filesystem::path(argv[1]) / page.file, page.text);
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  return 0;
}
