#include "compiler/spec/operators/hstu_attention/bound_mask.h"

#include <type_traits>

#include "compiler/expression/bind.h"
#include "compiler/expression/kernel_form.h"
#include "compiler/spec/operators/hstu_attention/mask_expression.h"

namespace hstujit {

namespace {

// Flags and numbers; others are no part of a mask.
SymbolValues numbers_of(const HstuAttentionParams& params) {
  SymbolValues values;
  for_each_field(params, [&](const auto& field, const auto& value) {
    if constexpr (std::is_integral_v<std::decay_t<decltype(value)>>) values.emplace_back(field.name, value);
  });
  return values;
}

}  // namespace

Expression bound_mask(const HstuAttentionParams& params) { return bind_symbols(mask_of(params), numbers_of(params)); }

Expression kernel_mask(const HstuAttentionParams& params) { return kernel_form(mask_of(params), numbers_of(params)); }

Expression bound_mask(const HstuAttentionParams& params, int64_t n, int64_t t, int64_t c) {
  SymbolValues values = numbers_of(params);
  values.emplace_back("n", n);
  values.emplace_back("t", t);
  values.emplace_back("c", c);
  return bind_symbols(mask_of(params), values);
}

}  // namespace hstujit
