#include "templates/hstu_attention/sm90_wgmma.h"

#include <fmt/format.h>

namespace hstujit::sm90 {

std::string print_wgmma(const std::string& name, DataType type, int n, OperandA a, bool transpose_b) {
  const int accumulators = n / 2;
  const char* dtype = type == DataType::kBf16 ? "bf16" : "f16";
  const bool registers = a == OperandA::kRegisters;

  std::string destination, constraints;
  for (int i = 0; i < accumulators; ++i) {
    destination += fmt::format("{}%{}", i == 0 ? "" : (i % 16 == 0 ? ", \"\n        \"" : ", "), i);
    constraints += fmt::format("{}\"+f\"(d[{}])", i == 0 ? "" : (i % 8 == 0 ? ",\n          " : ", "), i);
  }
  const int first = accumulators;  // number of the first operand after the accumulators
  const std::string a_text = registers ? fmt::format("{{%{}, %{}, %{}, %{}}}", first, first + 1, first + 2, first + 3)
                                       : fmt::format("%{}", first);
  const int b = first + (registers ? 4 : 1);
  const std::string flags =
      registers ? fmt::format("1, 1, {}", transpose_b ? 1 : 0) : fmt::format("1, 1, 0, {}", transpose_b ? 1 : 0);

  return fmt::format(
      "struct {name} {{\n"
      "  static constexpr int kN = {n};\n"
      "  // wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{dtype}.{dtype}\n"
      "  static __device__ __forceinline__ void issue(float (&d)[{accumulators}], {parameters}, u64 b, bool "
      "accumulate) {{\n"
      "    asm volatile(\n"
      "        \"{{\\n\"\n"
      "        \".reg .pred p;\\n\"\n"
      "        \"setp.ne.b32 p, %{p}, 0;\\n\"\n"
      "        \"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{dtype}.{dtype} \"\n"
      "        \"{{{destination}}}, \"\n"
      "        \"{a_text}, %{b}, p, {flags};\\n\"\n"
      "        \"}}\\n\"\n"
      "        : {constraints}\n"
      "        : {inputs}, \"l\"(b), \"r\"(static_cast<int>(accumulate)));\n"
      "  }}\n"
      "}};\n",
      fmt::arg("name", name), fmt::arg("n", n), fmt::arg("dtype", dtype), fmt::arg("accumulators", accumulators),
      fmt::arg("parameters", registers ? "u32 a0, u32 a1, u32 a2, u32 a3" : "u64 a"), fmt::arg("p", b + 1),
      fmt::arg("destination", destination), fmt::arg("a_text", a_text), fmt::arg("b", b), fmt::arg("flags", flags),
      fmt::arg("constraints", constraints),
      fmt::arg("inputs", registers ? "\"r\"(a0), \"r\"(a1), \"r\"(a2), \"r\"(a3)" : "\"l\"(a)"));
}

}  // namespace hstujit::sm90
