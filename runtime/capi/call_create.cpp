// Calls as they are made, once for each combination of types, sizes and parameters, and what bindings ask of them.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "compiler/support/text.h"
#include "runtime/capi/boundary.h"
#include "runtime/capi/call.h"
#include "runtime/capi/signature_json.h"
#include "runtime/launch/data_type_name.h"

using namespace hstujit;
using namespace hstujit::capi;

namespace {

constexpr int kMostDimensions = 8;  // no argument has as many; sizes of a rank above are not read

Status read_tensor(const std::string& name, const DLTensor* tensor, GivenCall& to) {
  if (tensor == nullptr) return {};
  if (tensor->ndim < 0 || tensor->ndim > kMostDimensions) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{} has rank {}; allowed: 0 to {}", name, tensor->ndim, kMostDimensions));
  }
  if (tensor->ndim > 0 && tensor->shape == nullptr) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{}.shape is a null pointer; it must hold {} sizes", name, tensor->ndim));
  }
  const std::vector<int64_t> shape(tensor->shape, tensor->shape + tensor->ndim);
  const auto negative = std::ranges::find_if(shape, [](int64_t size) { return size < -1; });
  if (negative != shape.end()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{}.shape[{}] is {}; it must be 0 or more, or -1 where it is not known", name,
                              negative - shape.begin(), *negative));
  }
  to.tensors[name] = {shape, dtype_text(tensor->dtype)};
  return {};
}

Status read_value(const CallFunction& function, const hstujit_given& from, GivenCall& to) {
  const std::string name = as_utf8(from.name);
  const int kind = number_of(from.kind);
  const auto must_be = [&](std::string what) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{}: {} is given with kind {}; it must be {}", function.name(), quote(name), kind, what),
                  {name, fmt::to_string(kind), what, ""});
  };
  if (to.has(name) || to.keywords.contains(name) || to.rows.contains(name))
    return Status(Code::kInvalidArgument, fmt::format("{}: {} is given twice", function.name(), quote(name)));
  const CallArgument* entry = function.interface.find(name);
  if (entry != nullptr && entry->argument.role == ArgumentRole::kInput) {
    if (entry->argument.kind != ArgumentKind::kTensor) {
      if (kind != HSTUJIT_GIVEN_REAL && kind != HSTUJIT_GIVEN_INTEGER)
        return must_be("HSTUJIT_GIVEN_REAL (1) or HSTUJIT_GIVEN_INTEGER (2)");
      to.numbers.insert(name);
      return {};
    }
    return kind == HSTUJIT_GIVEN_TENSOR ? read_tensor(name, from.value.tensor, to)
                                        : must_be("HSTUJIT_GIVEN_TENSOR (0)");
  }
  for (const auto& [symbol, keyword] : function.interface.rows) {
    if (keyword != name) continue;
    if (kind != HSTUJIT_GIVEN_INTEGER) return must_be("HSTUJIT_GIVEN_INTEGER (2)");
    to.rows.insert(name);
    return {};
  }
  switch (kind) {
    case HSTUJIT_GIVEN_REAL:
      to.keywords[name] = from.value.real;
      return {};
    case HSTUJIT_GIVEN_INTEGER:
      to.keywords[name] = from.value.integer;
      return {};
    case HSTUJIT_GIVEN_FLAG:
      to.keywords[name] = from.value.integer != 0;
      return {};
    case HSTUJIT_GIVEN_TEXT:
      if (from.text != nullptr) to.keywords[name] = as_utf8(from.text);
      return {};
    case HSTUJIT_GIVEN_TENSOR:
      if (!is_among(name, function.interface.keywords))
        return read_tensor(name, from.value.tensor, to);  // a text may declare it
      [[fallthrough]];
    default:
      to.keywords[name] = nullptr;  // which no function has; resolve_call says which names there are
      return {};
  }
}

// Values of the alignment's parameter, the largest first.
std::vector<int64_t> alignments_of(const CallFunction& function) {
  const std::string& parameter = function.interface.alignment;
  if (parameter.empty()) return {0};
  std::vector<int64_t> values;
  for (const Json& value : function.properties[parameter]["enum"]) values.push_back(value);
  std::ranges::sort(values, std::greater());
  return values;
}

Json symbol_json(const Signature& signature, const SizeSymbol& symbol) {
  using Source = SizeSymbol::Source;
  Json json = {{"symbol", symbol.name}};
  const auto add_parts = [&](const char* name) {
    for (const SizePart& part : symbol.parts) json[name].push_back(to_string(part.size));
  };
  switch (symbol.source) {
    case Source::kAxis:
      json["axis"] = symbol.axis;
      json["of"] = signature[static_cast<size_t>(symbol.argument)].name;
      json["factor"] = symbol.factor;
      json["bias"] = symbol.bias;
      break;
    case Source::kSum:
      add_parts("sum");
      break;
    case Source::kRest:
      add_parts("rest");
      break;
    case Source::kKeyword:
      json["keyword"] = symbol.keyword;
      break;
    case Source::kLast:
      json["last"] = signature[static_cast<size_t>(symbol.argument)].name;
      break;
  }
  return json;
}

Status no_such_place(const char* name, int index, size_t count) {
  return Status(Code::kInvalidArgument, count == 0 ? fmt::format("{} is {}; there is none", name, index)
                                                   : fmt::format("{} is {}; allowed: 0 to {}", name, index, count - 1));
}

}  // namespace

Result<const AlignedOp*> hstujit::capi::make_aligned_op(hstujit_call& call, size_t place) {
  Json instance = call.resolved.instance;
  if (call.alignments[place] != 0) instance[call.function.interface.alignment] = call.alignments[place];
  OpOptions options;
  options.direction = call.function.direction;
  options.backend = call.backend;
  options.restriction = call.restriction;
  options.length_mode = call.engine->length_mode();
  HSTUJIT_ASSIGN_OR_RETURN(options.instance, read_instance(std::move(instance), &options.listed));
  const std::string key =
      fmt::format("{} {} {} {}", dump_json(options.instance.spec->to_json()), to_string(options.direction),
                  static_cast<int>(options.backend), options.restriction.deterministic);
  auto made = std::make_unique<AlignedOp>();
  HSTUJIT_ASSIGN_OR_RETURN(made->op, call.ops->get(key, call.engine, std::move(options)));
  for (const Argument& argument : made->op->op->signature())
    made->masks.push_back(argument.kind == ArgumentKind::kTensor ? static_cast<uint64_t>(argument.alignment) - 1 : 0);
  const std::lock_guard lock(call.making);
  if (const AlignedOp* found = call.aligned[place].load(std::memory_order_acquire)) return found;
  call.aligned[place].store(made.get(), std::memory_order_release);
  return made.release();
}

extern "C" {

hstujit_status hstujit_call_create(hstujit_context* context, const char* op, const hstujit_op_options* options,
                                   const hstujit_given* given, size_t count, hstujit_call** out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(context, "a handle of hstujit_context_create");
    HSTUJIT_REQUIRE(op, "the name of an operator");
    HSTUJIT_REQUIRE(options, "a hstujit_op_options");
    HSTUJIT_REQUIRE(given, "the arguments of the call");
    HSTUJIT_REQUIRE(out, "where the handle goes");
    HSTUJIT_ASSIGN_OR_RETURN(const auto known, read_struct("hstujit_op_options", options, kFirstOpOptions));
    HSTUJIT_ASSIGN_OR_RETURN(const Direction direction, read_direction(known.direction));
    HSTUJIT_ASSIGN_OR_RETURN(const Backend backend, read_backend(known.backend));
    HSTUJIT_ASSIGN_OR_RETURN(const Restriction restriction, read_restriction(*context->engine, known.deterministic));
    HSTUJIT_ASSIGN_OR_RETURN(const CallFunction* const function, call_function(op, direction));
    GivenCall arguments;
    for (size_t at = 0; at < count; ++at) {
      if (given[at].name == nullptr) return null_pointer("given.name", "the name of an argument");
      HSTUJIT_RETURN_IF_ERROR(read_value(*function, given[at], arguments));
    }
    HSTUJIT_ASSIGN_OR_RETURN(ResolvedCall resolved, resolve_call(*function, arguments));
    HSTUJIT_ASSIGN_OR_RETURN(OutputSizes sizes, OutputSizes::make(*function, resolved.signature, arguments));
    std::unique_ptr<hstujit_call> call(new hstujit_call{*function,
                                                        context->engine,
                                                        context->ops,
                                                        backend,
                                                        restriction,
                                                        std::move(resolved),
                                                        std::move(sizes),
                                                        {},
                                                        {},
                                                        {},
                                                        {}});
    call->rows = call->sizes.given();
    call->alignments = alignments_of(*function);
    call->aligned = std::make_unique<std::atomic<AlignedOp*>[]>(call->alignments.size());
    *out = call.release();
    return {};
  });
}

void hstujit_call_destroy(hstujit_call* call) { delete call; }

hstujit_status hstujit_call_describe(const hstujit_call* call, hstujit_text* out) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(call, kCallHandle);
    HSTUJIT_REQUIRE(out, "where the text goes");
    Json json = {{"instance", call->resolved.instance}, {"signature", signature_json(call->signature())}};
    json["row_elements"] = Json::array();
    for (const Argument& argument : call->signature()) {
      if (argument.role == ArgumentRole::kOutput)
        json["row_elements"].push_back(row_elements(call->function, argument));
    }
    json["symbols"] = Json::array();
    for (const SizeSymbol& symbol : call->sizes.symbols())
      json["symbols"].push_back(symbol_json(call->signature(), symbol));
    return give_text(dump_json(json), out);
  });
}

int hstujit_call_argument_count(const hstujit_call* call) {
  return call == nullptr ? 0 : static_cast<int>(call->signature().size());
}

hstujit_status hstujit_call_argument_at(const hstujit_call* call, int position, hstujit_call_argument* argument) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(call, kCallHandle);
    HSTUJIT_REQUIRE(argument, "a hstujit_call_argument");
    const Signature& signature = call->signature();
    if (position < 0 || position >= static_cast<int>(signature.size()))
      return no_such_place("position", position, signature.size());
    const Argument& described = signature[static_cast<size_t>(position)];
    auto known = HSTUJIT_INIT(hstujit_call_argument);
    known.name = described.name.c_str();
    known.kind = kind_of(described);
    known.output = described.role == ArgumentRole::kOutput ? 1 : 0;
    known.rank = static_cast<int>(described.shape.size());
    known.row_elements = known.output == 1 ? static_cast<int>(row_elements(call->function, described)) : 1;
    if (described.kind == ArgumentKind::kTensor) {
      known.dtype = dlpack_type(described.dtype);
      // Operators with a choice of alignments have a kernel for rows that begin at any element.
      const auto element = static_cast<int>(size_of(described.dtype));
      known.alignment = call->alignments.size() > 1 ? element : std::max(described.alignment, element);
    }
    known.max_rows = position == find_argument(signature, Semantic::kMaxRows, kSequenceAxis) ? 1 : 0;
    return write_struct("hstujit_call_argument", known, kFirstCallArgument, argument);
  });
}

int hstujit_call_rows_count(const hstujit_call* call) {
  return call == nullptr ? 0 : static_cast<int>(call->rows.size());
}

hstujit_status hstujit_call_rows_at(const hstujit_call* call, int index, hstujit_call_rows* rows) {
  return guarded([&]() -> Status {
    HSTUJIT_REQUIRE(call, kCallHandle);
    HSTUJIT_REQUIRE(rows, "a hstujit_call_rows");
    if (index < 0 || index >= static_cast<int>(call->rows.size()))
      return no_such_place("index", index, call->rows.size());
    const SizeSymbol& symbol = *call->rows[static_cast<size_t>(index)];
    auto known = HSTUJIT_INIT(hstujit_call_rows);
    known.keyword = symbol.source == SizeSymbol::Source::kKeyword ? symbol.keyword.c_str() : nullptr;
    known.offsets = symbol.argument;
    return write_struct("hstujit_call_rows", known, kFirstCallRows, rows);
  });
}

}  // extern "C"
