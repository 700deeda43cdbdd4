#include "compiler/spec/operators/update_kv_cache/kv_program.h"

#include <fmt/format.h>

#include "compiler/spec/read_params.h"
#include "compiler/spec/row_spec.h"

namespace hstujit {

OpSpecPtr parse_kv_program(std::string_view op, const Json& json, const std::string& path, Mistakes& mistakes,
                           const Json& step, KvOperands operands) {
  const auto read = read_params<KvParams>(json, path, mistakes);
  if (!read) return nullptr;
  const KvParams& params = *read;
  ProgramBuilder program;
  for (const auto& [side, head_dim] : {std::pair("k", params.attn_dim), std::pair("v", params.hidden_dim)}) {
    const int64_t width = params.heads * head_dim;
    if (width > RowParams::kMaxWidth) {
      const std::string place = join_path(path, "heads");
      mistakes.check(place, Status(Code::kInvalidConfig,
                                   fmt::format("{} is {}, so rows of {} have {} elements; allowed: at most {}", place,
                                               params.heads, side, width, RowParams::kMaxWidth)));
      return nullptr;
    }
    Json own = step;
    own["width"] = width;
    own["dtype"] = to_string(params.dtype);
    own["alignment"] = params.alignment;
    own["offsets_dtype"] = to_string(params.offsets_dtype);
    OpSpecPtr spec = parse_op_spec(own, path, mistakes);
    if (spec == nullptr) return nullptr;
    program.step(std::move(spec), Direction::kForward, operands(side));
  }
  return std::make_shared<KvSpec>(op, params, program.finish());
}

}  // namespace hstujit
