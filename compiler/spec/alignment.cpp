#include "compiler/spec/alignment.h"

#include <fmt/format.h>

#include "compiler/spec/json_place.h"

namespace hstujit {

int64_t row_alignment(int64_t elements, DataType dtype) {
  const int64_t bytes = elements * static_cast<int64_t>(size_of(dtype));
  return bytes & -bytes;
}

bool check_alignment(int64_t alignment, DataType dtype, const std::string& path, Mistakes& mistakes) {
  const auto element = static_cast<int64_t>(size_of(dtype));
  if (alignment >= element) return true;
  const std::string place = join_path(path, "alignment");
  return mistakes.check(place, Status(Code::kInvalidConfig,
                                      fmt::format("{} is {}, but an element of {} has {} bytes; allowed: a power of "
                                                  "two from {} to 16",
                                                  place, alignment, to_string(dtype), element, element)));
}

}  // namespace hstujit
