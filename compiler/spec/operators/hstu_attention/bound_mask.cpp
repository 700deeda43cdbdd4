#include "compiler/spec/operators/hstu_attention/bound_mask.h"

#include <array>
#include <map>
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

// Estimates of many configs ask for the same sequences of one instance, so that each thread keeps those of the last
// one: a mask that is bound takes longer than the tiles that are counted by it.
Expression bound_mask(const HstuAttentionParams& params, int64_t n, int64_t t, int64_t c) {
  constexpr size_t kMostKept = 256;
  struct Kept {
    HstuAttentionParams params;
    std::map<std::array<int64_t, 3>, Expression> masks;
  };
  thread_local Kept kept;
  if (kept.masks.size() == kMostKept || !(kept.params == params)) kept = {params, {}};
  const auto [place, is_new] = kept.masks.try_emplace({n, t, c});
  if (is_new) {
    SymbolValues values = numbers_of(params);
    values.emplace_back("n", n);
    values.emplace_back("t", t);
    values.emplace_back("c", c);
    place->second = bind_symbols(mask_of(params), values);
  }
  return place->second;
}

}  // namespace hstujit
