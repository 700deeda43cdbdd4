// Attention backward: how an element of an operand's gradient that is a sum goes to memory.
#pragma once
#include "common/pack.cuh"

namespace operand_gradients {

// Stores the sum that is an element of an operand's gradient, with what it is added to. place(tensor): where the tensor
// has the element. `Operand` says the type, the tensors and whether there is something before (operand_printer.cpp).
template <class Operand, class Params, class Place>
__device__ __forceinline__ void store_gradient(const Params& params, const Place& place, float sum) {
  using Type = typename Operand::Type;
  using Gradient = typename Operand::Gradient;
  if constexpr (Operand::kAdds) {
    using Before = typename Operand::Before;
    const auto before = Before::data(params)[place(Before())];
    if constexpr (Type::kBytes == 4) {
      sum += before;
    } else {
      const u32 word = before;
      sum += Type::get(&word, 0);
    }
  }
  if constexpr (Type::kBytes == 4) {
    Gradient::data(params)[place(Gradient())] = sum;
  } else {
    u32 word;
    Type::put(&word, 0, sum, 0.0f);
    Gradient::data(params)[place(Gradient())] = static_cast<u16>(word);
  }
}

}  // namespace operand_gradients
