// Instances of the row family that the tests of several layers go over, and the functions that the passes make of them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/build.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/row_functions.h"
#include "compiler/spec/operators/layer_norm/spec.h"
#include "compiler/spec/operators/rms_norm/spec.h"

namespace hstujit {

struct RowCase {
  std::string name;
  std::shared_ptr<const RowSpec> spec;
};

// Every operator with every set of its options.
inline std::vector<RowCase> row_cases(int64_t width) {
  std::vector<RowCase> cases;
  for (const bool weight : {true, false}) {
    for (const bool other : {true, false}) {
      LayerNormParams layer;
      layer.width = width;
      layer.weight = weight;
      layer.bias = other;
      const std::string of_layer = std::string(weight ? "_weight" : "") + (other ? "_bias" : "");
      cases.push_back({"layer_norm" + of_layer, std::make_shared<LayerNormSpec>(layer)});
      RmsNormParams rms;
      rms.width = width;
      rms.weight = weight;
      rms.silu = other;
      const std::string of_rms = std::string(weight ? "_weight" : "") + (other ? "_silu" : "");
      cases.push_back({"rms_norm" + of_rms, std::make_shared<RmsNormSpec>(rms)});
    }
  }
  return cases;
}

struct RowModule {
  std::unique_ptr<mlir::MLIRContext> context = make_context();
  Module module;
};

inline RowModule build_row(const OpSpec& spec, Direction direction) {
  RowModule row;
  auto built = build_module(*row.context, spec);
  EXPECT_TRUE(built.ok()) << built.status().message();
  if (!built.ok()) return row;
  row.module = std::move(*built);
  const Status status = run_passes(*row.module, direction);
  EXPECT_TRUE(status.ok()) << status.message();
  return row;
}

}  // namespace hstujit
