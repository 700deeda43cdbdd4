#include "compiler/spec/operators/stu_layer/params.h"

#include <fmt/format.h>

#include "compiler/spec/mistakes.h"

namespace hstujit {

bool check_weight_dtype(DataType dtype, const StuParams& stu, const std::string& path, Mistakes& mistakes) {
  if (stu.weight_dtype == DataType::kFp32 || stu.weight_dtype == dtype) return true;
  const std::string place = join_path(path, "weight_dtype");
  mistakes.check(
      place, Status(Code::kInvalidConfig, fmt::format("{} is {}, but rows are {}; allowed: fp32, or the type of rows",
                                                      place, to_string(stu.weight_dtype), to_string(dtype))));
  return false;
}

}  // namespace hstujit
