// Rows of tensors with and without heads: copied to scratch memory, doubled and written back.
#include "compiler/host/emitter.h"

#include <gtest/gtest.h>

#include <numeric>

#include "compiler/host/jit.h"
#include "compiler/host/packed_arguments.h"
#include "compiler/ir/build.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hstujit {
namespace {

constexpr int64_t kRows = 6, kWidth = 19, kGap = 5;  // no multiple of any number of lanes; elements between rows
constexpr int64_t kFirst = 1, kCopied = 4;
constexpr llvm::StringLiteral kName = "double_rows";

// The function that doubles rows [kFirst, kFirst + kCopied) of the last head; `heads` 0: tensors of rank 2.
Result<JitFunction> compile_double_rows(mlir::MLIRContext& context, int64_t heads, int64_t& scratch_size) {
  prepare_context(context);
  HSTUJIT_ASSIGN_OR_RETURN(HostTarget target, HostTarget::detect());
  mlir::OpBuilder builder(&context);
  const mlir::Location location = builder.getUnknownLoc();
  Module module(mlir::ModuleOp::create(location));
  builder.setInsertionPointToEnd(module->getBody());

  llvm::SmallVector<int64_t> shape(heads > 0 ? 3 : 2, mlir::ShapedType::kDynamic), strides = shape;
  strides.back() = 1;
  const auto layout = mlir::StridedLayoutAttr::get(&context, 0, strides);
  const mlir::Type tensor = mlir::MemRefType::get(shape, builder.getF32Type(), layout);
  llvm::SmallVector<mlir::Type> types = {tensor, tensor};
  types.append(WorkItem::kCoordinates, builder.getIndexType());
  types.push_back(mlir::MemRefType::get({mlir::ShapedType::kDynamic}, builder.getF32Type()));
  auto function = mlir::func::FuncOp::create(builder, location, kName, builder.getFunctionType(types, {}));
  mlir::Block* body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);

  Emitter emit(builder, location, target.register_tile());
  emit.set_scratch(body->getArguments().back());
  const ScratchMatrix matrix = emit.allocate(kCopied, kWidth);
  const mlir::Value head = heads > 0 ? emit.integer(heads - 1) : mlir::Value();
  const auto rows_of = [&](unsigned argument) {
    return TensorRows{body->getArgument(argument), DataType::kFp32, kWidth, emit.integer(kFirst), head};
  };
  const mlir::Value count = emit.integer(kCopied);
  emit.copy_rows(rows_of(0), count, count, matrix);
  emit.write_rows(matrix, [&](mlir::Value) { return emit.real(2); }, rows_of(1), count);
  mlir::func::ReturnOp::create(builder, location);
  scratch_size = emit.scratch_size();
  return JitFunction::compile(*module, kName, target, KeptFiles());
}

Argument tensor_argument(const char* name, int64_t heads) {
  Argument argument;
  argument.name = name;
  argument.dtype = DataType::kFp32;
  argument.shape = {Dimension::of("L")};
  if (heads > 0) argument.shape.push_back(Dimension::constant(heads));
  argument.shape.push_back(Dimension::constant(kWidth));
  return argument;
}

class EmitterRows : public ::testing::TestWithParam<int64_t> {};

TEST_P(EmitterRows, AreCopiedAndWritten) {
  const int64_t heads = GetParam();
  const auto context = make_context();
  int64_t scratch_size = 0;
  const auto function = compile_double_rows(*context, heads, scratch_size);
  ASSERT_TRUE(function.ok()) << function.status().message();

  const int64_t row = std::max<int64_t>(heads, 1) * kWidth + kGap;
  std::vector<float> in(static_cast<size_t>(kRows * row)), out(in.size(), -1),
      scratch(static_cast<size_t>(scratch_size));
  std::iota(in.begin(), in.end(), 1.0F);
  std::vector<int64_t> shape = {kRows, kWidth}, strides = {row, 1};
  if (heads > 0) shape = {kRows, heads, kWidth}, strides = {row, kWidth, 1};
  const int rank = static_cast<int>(shape.size());
  const HstujitHostValue values[] = {{in.data(), shape.data(), strides.data(), rank, 0, 0},
                                     {out.data(), shape.data(), strides.data(), rank, 0, 0}};
  const Signature signature = {tensor_argument("in", heads), tensor_argument("out", heads)};
  const auto arguments = Arguments::bind(signature, values, 2);
  ASSERT_TRUE(arguments.ok()) << arguments.status().message();
  PackedArguments packed(*arguments, scratch, {});
  (*function)(packed.with(WorkItem()));

  const int64_t begin = std::max<int64_t>(heads - 1, 0) * kWidth;
  for (int64_t i = 0; i < kRows * row; ++i) {
    const int64_t column = i % row - begin, r = i / row - kFirst;
    const bool written = column >= 0 && column < kWidth && r >= 0 && r < kCopied;
    const auto index = static_cast<size_t>(i);
    ASSERT_EQ(out[index], written ? 2 * in[index] : -1) << "row " << i / row << ", element " << i % row;
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, EmitterRows, ::testing::Values(0, 1, 3));

}  // namespace
}  // namespace hstujit
