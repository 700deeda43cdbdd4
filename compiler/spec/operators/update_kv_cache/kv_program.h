// Common base of update_kv_cache and construct_full_kv: parameters, and that they are programs of one step for k and
// one for v.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "compiler/spec/fields_json.h"
#include "compiler/spec/program_spec.h"

namespace hstujit {

struct KvParams {
  int64_t heads = 1;
  int64_t attn_dim = 0;    // per head
  int64_t hidden_dim = 0;  // per head
  DataType dtype = DataType::kBf16;
  DataType offsets_dtype = DataType::kInt64;
  int64_t alignment = 16;

  static constexpr auto fields() {
    using P = KvParams;
    return std::make_tuple(
        field("heads", &P::heads, "number of attention heads H", 1, 1024),
        field("attn_dim", &P::attn_dim, "head dimension of k", 1, 256),
        field("hidden_dim", &P::hidden_dim, "head dimension of v", 1, 256),
        field("dtype", &P::dtype, "data type of k and v").one_of("bf16 fp16 fp32"),
        field("offsets_dtype", &P::offsets_dtype, "type of offsets").one_of("int32 int64"),
        field("alignment", &P::alignment, "bytes that data pointers and strides are multiples of").one_of("2 4 8 16"));
  }
};

class KvSpec final : public ProgramSpec {
 public:
  KvSpec(std::string_view op, KvParams params, Program program)
      : ProgramSpec(std::move(program)), op_(op), params_(params) {}

  std::string_view op() const override { return op_; }
  Json to_json() const override { return operator_json(op_, params_); }

 private:
  const std::string_view op_;
  const KvParams params_;
};

// Arguments of a step by the names that they have in the program of `side`, which is "k" or "v".
using KvOperands = std::map<std::string, ProgramValue> (*)(const std::string& side);

// `step`: the operator of both steps, and its parameters besides those that KvParams decide.
OpSpecPtr parse_kv_program(std::string_view op, const Json& json, const std::string& path, Mistakes& mistakes,
                           const Json& step, KvOperands operands);

}  // namespace hstujit
