// Operators over sequences on the host where offsets, counts, times and integers make no sense, and tables have one
// row: nothing outside the tensors is touched.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>

#include "compiler/spec/rounding.h"
#include "tests/host/guarded_bytes.h"
#include "tests/row/row_cases.h"

namespace hstujit {
namespace {

constexpr Direction kDirections[] = {Direction::kForward, Direction::kBackward};
constexpr int64_t kHuge = std::numeric_limits<int64_t>::max(), kTiny = std::numeric_limits<int64_t>::min();

std::vector<std::string> tensors_of(const Signature& signature) {
  std::vector<std::string> names;
  for (const Argument& argument : signature) {
    if (argument.kind == ArgumentKind::kTensor) names.push_back(argument.name);
  }
  return names;
}

// Calls visit(case, direction) for all that have a kernel.
template <class Visitor>
void for_each_kernel(const Visitor& visit) {
  for (const RowCase& row : sequence_cases({{"width", 24}})) {
    for (const Direction direction : kDirections) {
      if (row.spec->program(direction) != nullptr) continue;
      SCOPED_TRACE(row.name + " " + std::string(to_string(direction)));
      visit(row, direction);
    }
  }
}

// Integers of a launch that are no size of a tensor.
bool is_free(const Argument& argument) {
  return argument.kind == ArgumentKind::kInt && !argument.name.starts_with("max_len");
}

TEST(HostSequences, SenselessIntegers) {
  // Offsets of three sequences: some that decrease, are negative, pass the last row, or say that a sequence is very
  // long.
  const std::vector<std::vector<int64_t>> offsets = {{0, 500, 20, 90}, {-7, kTiny, kHuge, 3}, {kHuge, 0, 0, 0},
                                                     {5, 5, 90, 80},   {0, 90, 10, 90},       {0, 20, 50, 91},
                                                     {90, 50, 20, 0},  {kTiny, 0, 0, kHuge},  {0, 0, kHuge, kHuge}};
  const std::vector<std::vector<int64_t>> counts = {{21, 31, 41}, {kHuge, -3, kTiny}};
  for_each_kernel([&](const RowCase& row, Direction direction) {
    const Signature signature = row.spec->signature(direction);
    const HostHandle handle(*row.spec, 2, direction);
    ASSERT_NE(handle.get(), nullptr) << handle.error();
    for (size_t turn = 0; turn < 2 * offsets.size(); ++turn) {
      SCOPED_TRACE(turn);
      HostCall call(row.spec, sequence_lengths(*row.spec, {20, 30, 40}), 5, 0, direction);
      size_t axis = 0;
      for (size_t i = 0; i < signature.size(); ++i) {
        std::vector<int64_t>& integers = call.inputs()[i].tensor.integers;
        const bool times = signature[i].semantic == Semantic::kData && is_integer(signature[i].dtype);
        // The other side's are the next ones.
        if (signature[i].semantic == Semantic::kOffsets) integers = offsets[(turn + axis++) % offsets.size()];
        if (signature[i].semantic == Semantic::kCounts) integers = counts[turn % 2];
        if (times && signature[i].kind == ArgumentKind::kTensor && signature[i].role == ArgumentRole::kInput) {
          for (size_t time = 0; time < integers.size(); ++time) integers[time] = time % 2 == turn % 2 ? kHuge : kTiny;
        }
        if (is_free(signature[i])) call.inputs()[i].scalar = turn % 2 == 0 ? 0 : static_cast<double>(signature[i].max);
      }
      expect_launch_within_bounds(call, handle, tensors_of(signature));
    }
  });
}

// A table of one row, whatever the positions, ages and sequences are.
TEST(HostSequences, TablesOfOneRow) {
  for_each_kernel([](const RowCase& row, Direction direction) {
    const RowInterface interface = row.spec->interface(direction);
    const HostHandle handle(*row.spec, 2, direction);
    ASSERT_NE(handle.get(), nullptr) << handle.error();
    HostCall call(row.spec, sequence_lengths(*row.spec, {7, 0, 30}), 5, 0, direction);
    const Signature signature = row.spec->signature(direction);
    bool any = false;
    for (const RowOperand& input : interface.inputs) {
      if (input.kind != RowOperandKind::kTable || to_string(*input.rows) == "B") continue;
      HostTensor& table = call.inputs()[static_cast<size_t>(find_argument(signature, input.name))].tensor;
      table.shape[0] = 1;
      table.reals.resize(static_cast<size_t>(interface.width));
      any = true;
    }
    if (!any) return;
    expect_launch_within_bounds(call, handle, tensors_of(signature));
    call.pack_inputs();
    ASSERT_EQ(call.launch(handle), 0) << call.error();
    EXPECT_EQ(call.mistakes(), "");
  });
}

// Their one row is then the sum over all rows.
TEST(HostSequences, GradientsOfTablesOfOneRow) {
  for_each_kernel([](const RowCase& row, Direction direction) {
    const RowInterface interface = row.spec->interface(direction);
    const HostHandle handle(*row.spec, 2, direction);
    ASSERT_NE(handle.get(), nullptr) << handle.error();
    const Signature signature = row.spec->signature(direction);
    for (const bool at_end : {true, false}) {
      HostCall call(row.spec, sequence_lengths(*row.spec, {7, 0, 30}), 5, 0, direction);
      call.pack_inputs();
      const int64_t shape[] = {1, interface.width}, strides[] = {interface.width, 1};
      std::vector<std::unique_ptr<GuardedBytes>> tables;
      std::vector<DataType> types;
      for (const RowOperand& sum : interface.outputs) {
        if (sum.kind != RowOperandKind::kTableSum || to_string(*sum.rows) == "B") continue;
        const std::vector<std::byte> bytes(static_cast<size_t>(interface.width) * size_of(sum.dtype));
        tables.push_back(std::make_unique<GuardedBytes>(bytes, at_end));
        types.push_back(sum.dtype);
        HstujitHostValue& value = call.value(sum.name);
        value.data = tables.back()->data();
        value.shape = shape;
        value.strides = strides;
      }
      if (tables.empty()) return;
      ASSERT_EQ(call.launch(handle), 0) << call.error();
      const std::vector<double>& dout =
          call.inputs()[static_cast<size_t>(find_argument(signature, "dout"))].tensor.reals;
      for (size_t i = 0; i < tables.size(); ++i) {
        const auto* data = static_cast<const std::byte*>(tables[i]->data());
        const std::span bytes(data, static_cast<size_t>(interface.width) * size_of(types[i]));
        const std::vector<double> sums = unpack(bytes, types[i], {1, interface.width}).reals;
        for (size_t column = 0; column < sums.size(); ++column) {
          double expected = 0;
          for (size_t at = column; at < dout.size(); at += sums.size()) expected += dout[at];
          EXPECT_NEAR(sums[column], expected, 1e-5 + std::abs(expected) / 250) << i << " " << column;
        }
      }
    }
  });
}

}  // namespace
}  // namespace hstujit
