#include "templates/common/sm90/wgmma_printer.h"

#include <fmt/format.h>

#include "templates/common/sm90/machine.h"

namespace hstujit::sm90 {

namespace {

constexpr int64_t kStep = 16;          // k of one instruction
constexpr int64_t kOffsetUnit = 16;    // bytes, of a descriptor's addresses
constexpr int64_t kStepWords = 4;      // of A in registers
constexpr int64_t kWordsPerLine = 16;  // of printed source

// From the first step of an operand to another, in units of a descriptor. With k contiguous, four steps lie side by
// side in a tile of `rows` rows of 128 bytes; else each one is 16 such rows.
int64_t step_offset(int64_t step, bool k_contiguous, int64_t rows) {
  constexpr int64_t kRowUnits = kSwizzleBytes / kOffsetUnit, kStepsPerTile = kTileColumns / kStep;
  if (!k_contiguous) return step * kStep * kRowUnits;
  return step / kStepsPerTile * rows * kRowUnits + step % kStepsPerTile * (kStep * 2 / kOffsetUnit);
}

// The rows that put a step's descriptor into register `name`; its upper word says how far apart groups of 8 rows are,
// 1024 bytes, and which swizzle.
std::string print_descriptor(char name, int64_t operand, int64_t offset) {
  return fmt::format(
      "        \"add.u32 low, %{}, {};\\n\"\n"
      "        \"mov.b64 {}, {{low, 0x40000040}};\\n\"\n",
      operand, offset, name);
}

// "%first, ..., %last", over several literals where there are many.
std::string print_registers(int64_t first, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += fmt::format("{}%{}", i == 0 ? "" : (i % kWordsPerLine == 0 ? ", \"\n        \"" : ", "), first + i);
  return text;
}

std::string print_constraints(const char* constraint, const char* array, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += fmt::format("{}\"{}\"({}[{}])", i == 0 ? "" : (i % 8 == 0 ? ",\n          " : ", "), constraint, array, i);
  return text;
}

}  // namespace

std::string print_wgmma(const std::string& name, const WgmmaProduct& product) {
  const bool registers = product.a == OperandA::kRegisters;
  const bool a_transposed = product.a == OperandA::kSharedTransposed;
  const bool argument = product.accumulate == Accumulate::kArgument;
  const int64_t steps = (product.k + kStep - 1) / kStep, accumulators = product.n / 2;
  const int64_t a = accumulators, b = a + (registers ? kStepWords * steps : 1);  // numbers of operands
  const char* dtype = product.dtype == DataType::kBf16 ? "bf16" : "f16";
  const std::string instruction =
      fmt::format("wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{}", product.n, dtype, dtype);

  std::string text;
  for (int64_t step = 0; step < steps; ++step) {
    if (!registers) text += print_descriptor('a', a, step_offset(step, !a_transposed, product.a_rows));
    text += print_descriptor('b', b, step_offset(step, !product.transpose_b, product.b_rows));
    text += fmt::format(
        "        \"{} \"\n"
        "        \"{{{}}}, \"\n"
        "        \"{}, b, {}, 1, 1{}, {};\\n\"\n",
        instruction, print_registers(0, accumulators),
        registers ? fmt::format("{{{}}}", print_registers(a + kStepWords * step, kStepWords)) : "a",
        step == 0 ? "first" : "more", registers ? "" : (a_transposed ? ", 1" : ", 0"), product.transpose_b ? 1 : 0);
  }
  return fmt::format(
      "struct {name} {{\n"
      "  // {steps} x {instruction}\n"
      "  static __device__ __forceinline__ void issue(float (&d)[{accumulators}], {parameter}, u32 b{flag}) {{\n"
      "    asm volatile(\n"
      "        \"{{\\n\"\n"
      "        \".reg .pred first, more;\\n\"\n"
      "        \".reg .b32 low;\\n\"\n"
      "        \".reg .b64 {descriptors};\\n\"\n"
      "        \"setp.ne.b32 first, {accumulate}, 0;\\n\"\n"
      "        \"setp.ne.b32 more, 1, 0;\\n\"\n"
      "{text}"
      "        \"}}\\n\"\n"
      "        : {outputs}\n"
      "        : {inputs}, \"r\"(b){flag_input});\n"
      "  }}\n"
      "}};\n",
      fmt::arg("name", name), fmt::arg("steps", steps), fmt::arg("instruction", instruction),
      fmt::arg("accumulators", accumulators),
      fmt::arg("parameter", registers ? fmt::format("const u32 (&a)[{}]", kStepWords * steps) : "u32 a"),
      fmt::arg("flag", argument ? ", bool accumulate" : ""), fmt::arg("descriptors", registers ? "b" : "a, b"),
      fmt::arg("accumulate",
               argument ? fmt::format("%{}", b + 1) : (product.accumulate == Accumulate::kAlways ? "1" : "0")),
      fmt::arg("text", text),
      fmt::arg("outputs", print_constraints(product.accumulate == Accumulate::kFresh ? "=f" : "+f", "d", accumulators)),
      fmt::arg("inputs", registers ? print_constraints("r", "a", kStepWords * steps) : "\"r\"(a)"),
      fmt::arg("flag_input", argument ? ", \"r\"(static_cast<int>(accumulate))" : ""));
}

std::string print_backward_products(const HstuAttentionParams& params, const AttentionConfig& config, Accumulate scores,
                                    Accumulate gradients) {
  const auto lines_product = [&](const char* name, int64_t width, Accumulate accumulate) {
    return print_wgmma(name, {.dtype = params.dtype,
                              .n = config.block_n,
                              .k = width,
                              .a = OperandA::kShared,
                              .a_rows = config.block_m,
                              .transpose_b = false,
                              .b_rows = config.block_n,
                              .accumulate = accumulate});
  };
  const auto sum = [&](const char* name, int64_t width) {
    return print_wgmma(name, {.dtype = params.dtype, .n = width, .k = config.block_n, .a = OperandA::kRegisters});
  };
  const std::string gradient_product = params.hidden_dim == params.attn_dim && scores == gradients
                                           ? "using GradientProduct = ScoreProduct;\n"
                                           : lines_product("GradientProduct", params.hidden_dim, gradients);
  return lines_product("ScoreProduct", params.attn_dim, scores) + "\n" + gradient_product + "\n" +
         sum("FirstSum", params.attn_dim) + "\n" + sum("SecondSum", params.hidden_dim);
}

}  // namespace hstujit::sm90
