// Rows whose mean is large beside what their elements differ by, and rows of equal elements: what norms make of them.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "tests/host/host_call.h"

namespace hstujit {

// Every operator that subtracts a mean.
inline std::vector<nlohmann::ordered_json> centered_norms(int64_t width, const char* dtype) {
  using Json = nlohmann::ordered_json;
  const Json common = {{"width", width}, {"dtype", dtype}};
  std::vector<Json> norms = {{{"op", "layer_norm"}},
                             {{"op", "layer_norm"}, {"weight", false}, {"bias", false}},
                             {{"op", "swish_layer_norm"}},
                             {{"op", "hstu_norm_mul_dropout"}}};
  if (width % 2 == 0) norms.push_back({{"op", "hstu_norm_mul_dropout"}, {"group_norm", true}, {"heads", 2}});
  for (Json& norm : norms) norm.update(common);
  return norms;
}

using Launch = std::function<void(HostCall&)>;

inline std::vector<double>& reals_of(const OpSpec& spec, Direction direction, HostCall& call, const char* name) {
  const Signature signature = spec.signature(direction);
  return call.inputs()[static_cast<size_t>(find_argument(signature, name))].tensor.reals;
}

// The error of an output beside the reference, over the size of both, as norms.
inline double error_beside_reference(const OpSpec& spec, Direction direction, const Lengths& lengths, HostCall& call,
                                     const std::string& name) {
  std::vector<HostValue> expected = call.inputs();
  spec.reference(direction, lengths, expected);
  const HostTensor out = call.read(name);
  const std::vector<double>& reference =
      expected[static_cast<size_t>(find_argument(spec.signature(direction), name))].tensor.reals;
  double error = 0, size = 0;
  for (size_t at = 0; at < out.reals.size(); ++at) {
    error += std::pow(out.reals[at] - reference[at], 2);
    size += std::pow(reference[at], 2);
  }
  return std::sqrt(error / size);
}

// fp32 rows of mean 1000 and spread 1: outputs are within some units of 1e-6 of the reference on the same rounded rows.
inline void check_large_mean(const OpSpecPtr& spec, Direction direction, int64_t rows, const Launch& launch) {
  const Lengths lengths{{rows}, {}, rows, {}};
  HostCall call(spec, lengths, 7, 0, direction);
  std::vector<double>& x = reals_of(*spec, direction, call, "x");
  for (double& element : x) element = static_cast<float>(1000 + element);
  launch(call);
  for (const Argument& argument : spec->signature(direction)) {
    if (argument.role != ArgumentRole::kOutput) continue;
    EXPECT_LE(error_beside_reference(*spec, direction, lengths, call, argument.name), 1e-6) << argument.name;
  }
}

// Rows that differ from each other, each of equal elements: the norm is 0, so that what is left is the bias, which is 0
// here, and x times sigmoid(0) of swish_layer_norm. What rounding leaves of larger elements has a square that fp32 does
// not hold.
inline void check_constant_rows(const OpSpecPtr& spec, int64_t rows, const Launch& launch) {
  HostCall call(spec, {{rows}, {}, rows, {}}, 7, 0, Direction::kForward);
  std::vector<double>& x = reals_of(*spec, Direction::kForward, call, "x");
  const size_t width = x.size() / static_cast<size_t>(rows);
  constexpr double kConstants[] = {1e4, -6e4, 3.1, 1e-3, 0, 12345.678, 1e20};
  for (size_t i = 0; i < x.size(); ++i)
    x[i] =
        static_cast<float>(kConstants[i / width % std::size(kConstants)] * (1 + 0.37 * static_cast<double>(i / width)));
  const Signature signature = spec->signature(Direction::kForward);
  if (find_argument(signature, "bias") >= 0) {
    std::vector<double>& bias = reals_of(*spec, Direction::kForward, call, "bias");
    std::fill(bias.begin(), bias.end(), 0.0);
  }
  const std::vector<double> rounded = x;
  launch(call);
  const HostTensor out = call.read("out");
  const bool swish = spec->op() == "swish_layer_norm";
  for (size_t i = 0; i < out.reals.size(); ++i)
    ASSERT_EQ(out.reals[i], swish ? rounded[i] / 2 : 0) << fmt::format("row {} of {}", i / width, rounded[i]);
}

}  // namespace hstujit
