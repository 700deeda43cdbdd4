#include "runtime/tuning/strided_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace hstujit {

namespace {

int64_t gap_of(const Argument& argument) {
  return std::max<int64_t>(1, argument.alignment / static_cast<int64_t>(size_of(argument.dtype)));
}

// Calls visit(offset in the packed image, offset in the strided one, bytes) for each innermost row.
void for_each_piece(const ProblemData& problem, size_t index,
                    const std::function<void(size_t, size_t, size_t)>& visit) {
  const std::vector<int64_t>& shape = problem.shapes[index];
  const std::vector<int64_t>& strides = problem.strides[index];
  const size_t element = size_of(problem.signature[index].dtype);
  const size_t piece = static_cast<size_t>(shape.back()) * element;
  int64_t pieces = 1;
  for (size_t d = 0; d + 1 < shape.size(); ++d) pieces *= shape[d];
  for (int64_t p = 0; p < pieces; ++p) {
    int64_t rest = p, offset = 0;
    for (size_t d = shape.size() - 1; d-- > 0;) {
      offset += rest % shape[d] * strides[d];
      rest /= shape[d];
    }
    visit(static_cast<size_t>(p) * piece, problem.offsets[index] + static_cast<size_t>(offset) * element, piece);
  }
}

}  // namespace

ProblemData spread(const ProblemData& problem) {
  ProblemData result = problem;
  result.strides.resize(problem.signature.size());
  result.offsets.resize(problem.signature.size(), 0);
  for (size_t i = 0; i < problem.signature.size(); ++i) {
    const Argument& argument = problem.signature[i];
    const std::vector<int64_t>& shape = problem.shapes[i];
    if (!has_rows(argument) || shape.size() < 2) continue;
    const int64_t gap = gap_of(argument);
    std::vector<int64_t>& strides = result.strides[i];
    strides.assign(shape.size(), 1);
    int64_t width = shape.back() + gap;
    for (size_t d = shape.size() - 1; d-- > 0;) {
      strides[d] = width;
      width = width * shape[d] + gap;
    }
    const size_t element = size_of(argument.dtype);
    result.offsets[i] = static_cast<size_t>(gap) * element;
    std::vector<std::byte> image(result.offsets[i] + static_cast<size_t>(width) * element, std::byte{kPoison});
    for_each_piece(result, i, [&](size_t packed, size_t strided, size_t bytes) {
      std::copy_n(problem.images[i].begin() + static_cast<std::ptrdiff_t>(packed), bytes,
                  image.begin() + static_cast<std::ptrdiff_t>(strided));
    });
    result.images[i] = std::move(image);
  }
  return result;
}

Result<std::vector<std::vector<std::byte>>> gather(const ProblemData& problem,
                                                   const std::vector<std::vector<std::byte>>& outputs) {
  std::vector<std::vector<std::byte>> result = outputs;
  for (size_t i = 0; i < problem.signature.size(); ++i) {
    const Argument& argument = problem.signature[i];
    if (argument.role != ArgumentRole::kOutput || problem.strides[i].empty()) continue;
    std::vector<std::byte> rest = outputs[i];
    std::vector<std::byte> packed;
    for_each_piece(problem, i, [&](size_t, size_t strided, size_t bytes) {
      const auto begin = rest.begin() + static_cast<std::ptrdiff_t>(strided);
      packed.insert(packed.end(), begin, begin + static_cast<std::ptrdiff_t>(bytes));
      std::fill_n(begin, bytes, std::byte{kPoison});
    });
    if (std::any_of(rest.begin(), rest.end(), [](std::byte byte) { return byte != std::byte{kPoison}; })) {
      return Status(Code::kCheckFailed, fmt::format("{} was written outside of its strided rows", argument.name));
    }
    result[i] = std::move(packed);
  }
  return result;
}

}  // namespace hstujit
