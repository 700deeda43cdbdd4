// Sources that decide the CUDA source of each skeleton and each operator, as digests over a source tree. Run at build
// time (digest_program.cpp); tests run it over trees with edits.
//
// Files are found by following includes, so that no list has to be kept:
//   - of a skeleton, which is a kernel.cuh below templates/ with its kernel.cpp: both, and the shared part of the
//     generator, compiler/passes and compiler/emit;
//   - of an operator, which is a folder of compiler/spec/operators with a spec.cpp: its .cpp files, and its builder,
//     compiler/ir/operators/<operator>.cpp;
//   - every file that one of these includes, and beside a header x.h also x.cpp and x.td.
// Of compiler/plan's configs a skeleton has that of its family. A .cpp that decides nothing of a source is left out by
// name, with a reason (kLeftOut in the .cpp): cost models, references, messages. What one header declares and another
// file than its own defines is not found in this way; the test digest_symbols follows the symbols of the
// object files and fails where one leads out of the digest.
//
// Paths are not hashed, and neither are comments, layout and the lines that include files of the tree, so that moving a
// file changes no digest.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/support/status.h"

namespace hstujit {

struct SkeletonSources {
  std::string entry;               // relative to templates/: "attention/sm90_forward/kernel.cuh"
  std::string device;              // digest of the templates as flattened for it
  std::string source;              // digest of all that decides its source, but for the operator's part
  std::string estimates;           // digest of what decides its space and its estimates, templates apart
  std::vector<std::string> files;  // of `source`, relative to the root, sorted
};

struct OperatorSources {
  std::string op;
  std::string source;
  std::vector<std::string> files;
};

struct GeneratorSources {
  std::vector<SkeletonSources> skeletons;  // in order of entry
  std::vector<OperatorSources> operators;  // in order of name
  std::string digest;                      // of all `source` above
};

// A file without comments; a .td as it is.
struct SourceFile {
  std::vector<std::string> includes;  // as written
  std::string own_lines;              // of a template: those that flattening keeps
  std::string digest;
};

// Parsed files, by type and text: a caller that asks for several trees parses only files that differ.
using ParsedSources = std::unordered_map<std::string, SourceFile>;

// Digests are 64 hexadecimal digits. `llvm_version`: MLIR's passes decide what is printed, too. kInternal where a file
// includes one that is not there, or where nothing is left of what is to be left out.
Result<GeneratorSources> digest_sources(const std::filesystem::path& root, std::string_view llvm_version,
                                        ParsedSources* parsed = nullptr);

}  // namespace hstujit
