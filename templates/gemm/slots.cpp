#include "templates/gemm/slots.h"

#include <fmt/format.h>

#include "compiler/plan/device_types.h"

namespace hstujit::gemm {

namespace {

constexpr int kLine = 64;  // elements of 16 bits in a line of the swizzle

void add_tensor(const Signature& signature, const std::string& name, const std::string& member, const char* constant,
                std::vector<ParamSlot>& slots) {
  const Argument& argument = signature[static_cast<size_t>(find_argument(signature, name))];
  slots.push_back(argument_slot(signature, member, ParamSlot::Kind::kPointer, name));
  slots.back().type = fmt::format("{}{}*", constant, pointed_at(argument.dtype));
  if (argument.shape.size() == 2)
    slots.push_back(argument_slot(signature, member + "_stride", ParamSlot::Kind::kStride, name));
}

}  // namespace

ParamSlot map_slot(const GemmSpec& spec, std::string name, const std::string& argument, int64_t box) {
  ParamSlot result =
      argument_slot(spec.signature(Direction::kForward), std::move(name), ParamSlot::Kind::kTensorMap, argument);
  result.map = {{{1, kLine}, {0, static_cast<int>(box)}}, 2 * kLine};
  return result;
}

std::vector<ParamSlot> factor_slots(const GemmSpec& spec) {
  const Signature signature = spec.signature(Direction::kForward);
  std::vector<ParamSlot> slots;
  add_tensor(signature, spec.interface().a.name, "a", "const ", slots);
  add_tensor(signature, spec.interface().b.name, "b", "const ", slots);
  return slots;
}

std::vector<ParamSlot> operand_slots(const GemmSpec& spec, bool out_address) {
  const GemmInterface& gemm = spec.interface();
  const Signature signature = spec.signature(Direction::kForward);
  std::vector<ParamSlot> slots;
  for (const GemmOperand& operand : gemm.operands) {
    if (operand.kind == GemmOperandKind::kScalar) {
      slots.push_back(argument_slot(signature, operand.name, ParamSlot::Kind::kFloat, operand.name));
    } else {
      add_tensor(signature, operand.name, operand.name, "const ", slots);
    }
  }
  if (out_address) add_tensor(signature, "out", "out", "", slots);
  slots.push_back(argument_slot(signature, "rows", ParamSlot::Kind::kSize, "out"));
  slots.push_back(argument_slot(signature, "depth", ParamSlot::Kind::kSize, gemm.a.name));
  slots.back().dimension = gemm.a.transposed ? 0 : 1;
  return slots;
}

void add_constants(const GemmSpec& spec, Constants& constants) {
  const GemmInterface& gemm = spec.interface();
  constants.emplace_back("columns", gemm.n);
  constants.emplace_back("a_transposed", gemm.a.transposed ? 1 : 0);
  constants.emplace_back("b_transposed", gemm.b.transposed ? 1 : 0);
}

}  // namespace hstujit::gemm
