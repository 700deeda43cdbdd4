// Operands as members of Spec; in backward the slopes whose sums are gradients of operands.
#include "compiler/emit/family_printer.h"
#include "compiler/emit/operand_printer.h"

namespace hstujit {

Result<FamilyText> print_attention_family(mlir::ModuleOp module, const OpSpec& spec, Direction direction,
                                          Activation /*activation*/) {
  const auto& attention = static_cast<const AttentionSpec&>(spec);
  return FamilyText{.members = print_operands(attention, direction),
                    .body = direction == Direction::kBackward
                                ? print_slopes(attention, module) + print_sites(attention, module)
                                : ""};
}

}  // namespace hstujit
