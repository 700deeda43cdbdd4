#include "compiler/spec/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace hstujit {

namespace {

// Null where the table has no such operator.
const OperatorReference* find_reference(const OpSpec& spec, Direction direction) {
  if (spec.program(direction) != nullptr) return &program_reference();
  const std::vector<ReferenceEntry>& table = reference_table();
  const auto found = std::ranges::find(table, spec.op(), &ReferenceEntry::op);
  return found == table.end() ? nullptr : &found->reference();
}

const OperatorReference& reference_of(const OpSpec& spec, Direction direction) {
  if (const OperatorReference* const found = find_reference(spec, direction)) return *found;
  throw std::logic_error(fmt::format("compiler/spec/operators/{}/reference.cpp is missing", spec.op()));
}

}  // namespace

std::vector<HostValue> OpSpec::make_inputs(Direction direction, const Lengths& lengths, uint64_t seed) const {
  return reference_of(*this, direction).make_inputs(*this, direction, lengths, seed);
}

void OpSpec::reference(Direction direction, const Lengths& lengths, std::vector<HostValue>& values) const {
  reference_of(*this, direction).compute(*this, direction, lengths, values);
}

std::vector<std::vector<double>> OpSpec::error_variances(Direction direction, const std::vector<HostValue>& inputs,
                                                         const std::vector<bool>& sequences) const {
  const OperatorReference* const found = find_reference(*this, direction);
  if (found == nullptr) return {};
  return found->error_variances(*this, direction, inputs, sequences);
}

}  // namespace hstujit
