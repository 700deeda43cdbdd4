// hstu_attention backward on Ampere and Ada: shared memory of a CTA, and the shapes that follow from Spec and Config.
#pragma once
#include "attention/sm80/shared.cuh"

namespace sm80 {

// A matrix of kWidth columns that is multiplied twice: a stationary tile with the moving tiles, transposed, into
// scores or their gradients, then those with the same moving tiles into sums. The members are those of Shape that
// products and stores use.
template <class Spec, class Config, int kWidth>
struct Operand {
  using Base = Shape<Spec, Config>;
  static constexpr Product kProduct = Base::kProduct;
  static constexpr int kQkBytes = kWidth * Base::kElementBytes;  // of a row in global memory
  static constexpr int kQkSteps = ceil_div(kQkBytes, kPieceStepBytes);
  static constexpr bool kQueryInRegisters = Config::kQueryInRegisters;
  static constexpr int kRowTiles = Base::kRowTiles;
  static constexpr int kScoreTiles = Base::kScoreTiles;
  static constexpr int kOutputColumns = kWidth;
  static constexpr int kOutputTiles = ceil_div(kOutputColumns, 8);

  using QkTile = Tile<kQkSteps * kPieceStepBytes, false>;
  using VTile = QkTile;
  using Scores = typename Base::Scores;
  using Outputs = float[kRowTiles][kOutputTiles][4];
};

template <class Spec, class Config>
using AttnOperand = Operand<Spec, Config, Spec::kAttnDim>;
template <class Spec, class Config>
using HiddenOperand = Operand<Spec, Config, Spec::kHiddenDim>;

// Rows of kRows from a pair of tensors, q and dout or k and v, which end with zeros up to a whole step.
template <class Spec, class Config, int kRows>
struct RowPair {
  static constexpr int kHiddenOffset = kRows * AttnOperand<Spec, Config>::QkTile::kRowBytes;
  unsigned char attn[kRows * AttnOperand<Spec, Config>::QkTile::kRowBytes];
  unsigned char hidden[kRows * HiddenOperand<Spec, Config>::QkTile::kRowBytes];
};

template <class Spec, class Config>
struct BackwardShared {
  RowPair<Spec, Config, Config::kBlockM> own;
  RowPair<Spec, Config, Config::kBlockN> stage[Config::kStages];
};

}  // namespace sm80
