#include "templates/hstu_attention/sm90_wgmma.h"

#include <fmt/format.h>

namespace hstujit::sm90 {

namespace {

struct Shape {
  const char* dtype;
  int n;
  bool a_in_registers;
  bool transpose_a;
  bool transpose_b;
};

// `adds`: the accumulators are read, where the last argument says so; else they are only written.
std::string print_function(const Shape& shape, bool adds) {
  const int accumulators = shape.n / 2;
  std::string destination, constraints;
  for (int i = 0; i < accumulators; ++i) {
    destination += fmt::format("{}%{}", i == 0 ? "" : (i % 16 == 0 ? ", \"\n        \"" : ", "), i);
    constraints +=
        fmt::format("{}\"{}f\"(d[{}])", i == 0 ? "" : (i % 8 == 0 ? ",\n          " : ", "), adds ? '+' : '=', i);
  }
  const int first = accumulators;  // number of the first operand after the accumulators
  const int b = first + (shape.a_in_registers ? 4 : 1);
  const int a_transposed = shape.transpose_a ? 1 : 0, b_transposed = shape.transpose_b ? 1 : 0;
  return fmt::format(
      "  static __device__ __forceinline__ void {name}(float (&d)[{accumulators}], {parameters}, u64 b{argument}) {{\n"
      "    asm volatile(\n"
      "        \"{{\\n\"\n"
      "        \".reg .pred p;\\n\"\n"
      "        \"setp.ne.b32 p, {accumulate}, 0;\\n\"\n"
      "        \"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{dtype}.{dtype} \"\n"
      "        \"{{{destination}}}, \"\n"
      "        \"{a}, %{b}, p, {flags};\\n\"\n"
      "        \"}}\\n\"\n"
      "        : {constraints}\n"
      "        : {inputs}, \"l\"(b){accumulate_input});\n"
      "  }}\n",
      fmt::arg("name", adds ? "issue" : "begin"), fmt::arg("n", shape.n), fmt::arg("dtype", shape.dtype),
      fmt::arg("accumulators", accumulators),
      fmt::arg("parameters", shape.a_in_registers ? "u32 a0, u32 a1, u32 a2, u32 a3" : "u64 a"),
      fmt::arg("argument", adds ? ", bool accumulate" : ""),
      fmt::arg("accumulate", adds ? fmt::format("%{}", b + 1) : "0"), fmt::arg("destination", destination),
      fmt::arg("a", shape.a_in_registers ? fmt::format("{{%{}, %{}, %{}, %{}}}", first, first + 1, first + 2, first + 3)
                                         : fmt::format("%{}", first)),
      fmt::arg("b", b),
      fmt::arg("flags", shape.a_in_registers ? fmt::format("1, 1, {}", b_transposed)
                                             : fmt::format("1, 1, {}, {}", a_transposed, b_transposed)),
      fmt::arg("constraints", constraints),
      fmt::arg("inputs", shape.a_in_registers ? "\"r\"(a0), \"r\"(a1), \"r\"(a2), \"r\"(a3)" : "\"l\"(a)"),
      fmt::arg("accumulate_input", adds ? ", \"r\"(static_cast<int>(accumulate))" : ""));
}

}  // namespace

std::string print_wgmma(const std::string& name, DataType type, int n, OperandA a, bool transpose_b) {
  const Shape shape{type == DataType::kBf16 ? "bf16" : "f16", n, a == OperandA::kRegisters,
                    a == OperandA::kSharedTransposed, transpose_b};
  return fmt::format(
      "struct {} {{\n"
      "  static constexpr int kN = {};\n"
      "  // wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{}\n"
      "{}{}}};\n",
      name, n, n, shape.dtype, shape.dtype, print_function(shape, false), print_function(shape, true));
}

}  // namespace hstujit::sm90
