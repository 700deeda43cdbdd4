#include "compiler/spec/operators/stu_layer/params.h"

#include <fmt/format.h>

#include "compiler/spec/mistakes.h"

namespace hstujit {

bool check_stu(const HstuAttentionParams& attention, const StuParams& stu, const std::string& path,
               Mistakes& mistakes) {
  const size_t before = mistakes.count();
  check_stu_types(attention.dtype, stu, path, mistakes);
  if (attention.alignment != GemmSpec::kAlignment) {
    const std::string place = join_path(path, "alignment");
    mistakes.check(place, Status(Code::kInvalidConfig, fmt::format("{} is {}; allowed: {}, as products need it", place,
                                                                   attention.alignment, GemmSpec::kAlignment)));
  }
  return mistakes.count() == before;
}

bool check_stu_types(DataType dtype, const StuParams& stu, const std::string& path, Mistakes& mistakes) {
  const size_t before = mistakes.count();
  if (dtype == DataType::kFp32) {
    const std::string place = join_path(path, "dtype");
    mistakes.check(place, Status(Code::kInvalidConfig,
                                 fmt::format("{} is fp32; allowed: bf16, fp16, as products have them", place)));
  } else if (stu.weight_dtype != DataType::kFp32 && stu.weight_dtype != dtype) {
    const std::string place = join_path(path, "weight_dtype");
    mistakes.check(
        place, Status(Code::kInvalidConfig, fmt::format("{} is {}, but rows are {}; allowed: fp32, or the type of rows",
                                                        place, to_string(stu.weight_dtype), to_string(dtype))));
  }
  return mistakes.count() == before;
}

}  // namespace hstujit
