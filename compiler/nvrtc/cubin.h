// The few things this project reads from a cubin, which is an ELF file of 64 bits, little-endian. Every offset is
// checked, so that output of an NVRTC this project does not know is an error and no crash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/status.h"

namespace hstujit {

struct CubinSection {
  std::string name;
  uint32_t type = 0;
  uint64_t size = 0;
  std::string_view bytes;  // empty for sections without content in the file
};

struct CubinKernel {
  std::string name;
  uint32_t symbol = 0;  // its index in the symbol table, which .nv.info uses as the kernel's name
};

struct Cubin {
  std::vector<CubinSection> sections;
  std::vector<CubinKernel> kernels;

  const CubinSection* find_section(std::string_view name) const;
};

// Views refer to `bytes`, which must outlive the result. kCompileFailed when the bytes are no cubin.
Result<Cubin> parse_cubin(std::string_view bytes);

}  // namespace hstujit
