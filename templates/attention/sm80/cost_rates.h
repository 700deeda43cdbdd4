// Figures that the cost models of the sm80 skeletons share. Only these include them, so that a change of a figure
// leaves the keys of kernels as they are.
#pragma once

namespace hstujit::sm80 {

// Work of a multiprocessor in a clock.
struct Rates {
  double tensor_16bit;  // multiply-adds of mma.sync, fp32 accumulation
  double fma;           // fp32 multiply-adds
  double l2_bytes;
  double issue;  // over what the other rates say, where copies and operand loads keep the score waiting
};
Rates rates_of(int capability);

constexpr double kSchedulers = 4;      // of a multiprocessor
constexpr double kMufu = 16;           // transcendentals
constexpr double kAccurateFactor = 8;  // instructions of an accurate score, in units of the approximate one
constexpr double kStartCycles = 5000;  // of a launch
constexpr double kClockKhz = 1.7e6;

}  // namespace hstujit::sm80
