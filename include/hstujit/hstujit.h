/* hstu-jit: C API (C99).
 *
 * context -> config or op -> prepare -> workspace_size -> launch. Every handle may be used from any thread. None may
 * be inside a call when the process calls exit: that destroys static data of NVRTC and LLVM, and a compile may crash.
 * Nor when it forks, if the child is to compile: locks of NVRTC that another thread held then stay held in the child.
 * A handle that was destroyed, or one of another type, is undefined behaviour in every function: nothing checks it.
 * Nothing throws or prints. Every function that can fail returns a hstujit_status; the sentence that says what was
 * wrong is hstujit_last_error(), per thread, valid until the next failing call on that thread.
 * Structs begin with their size, so that newer libraries accept older callers: set it with HSTUJIT_INIT(type).
 * Reports are JSON text in a hstujit_text, released with hstujit_text_free; their fields are described in
 * docs/reports.md.
 */
#ifndef HSTUJIT_HSTUJIT_H
#define HSTUJIT_HSTUJIT_H

#include <stddef.h>
#include <stdint.h>

#include "hstujit/dlpack.h" /* DLTensor */

#ifdef __cplusplus
extern "C" {
#endif

#define HSTUJIT_API __attribute__((visibility("default")))
#define HSTUJIT_ABI_VERSION 2
#ifdef __cplusplus
#define HSTUJIT_INIT(type)     \
  ([] {                        \
    type value{};              \
    value.size = sizeof(type); \
    return value;              \
  }())
#else
#define HSTUJIT_INIT(type) {.size = sizeof(type)}
#endif

typedef enum hstujit_status {
  HSTUJIT_OK = 0,
  HSTUJIT_INVALID_ARGUMENT = 1,
  HSTUJIT_INVALID_CONFIG = 2,
  HSTUJIT_UNSUPPORTED = 3,
  HSTUJIT_NOT_FOUND = 4,
  HSTUJIT_NO_DRIVER = 5,
  HSTUJIT_NO_COMPILER = 6,
  HSTUJIT_NO_DEVICE = 7,
  HSTUJIT_COMPILE_FAILED = 8,
  HSTUJIT_DRIVER_ERROR = 9,
  HSTUJIT_CACHE_MISS = 10,
  HSTUJIT_NOT_PREPARED = 11,
  HSTUJIT_OUT_OF_MEMORY = 12,
  HSTUJIT_CHECK_FAILED = 13,
  HSTUJIT_IO = 14,
  HSTUJIT_INTERNAL = 15,
  HSTUJIT_CANCELLED = 16 /* hstujit_run_options.cancel, or a progress callback that threw */
} hstujit_status;

typedef struct hstujit_context hstujit_context; /* cache layers, policy, compiled kernels */
typedef struct hstujit_config hstujit_config;   /* a parsed JSON config: a list of op instances */
typedef struct hstujit_op hstujit_op;           /* one op instance and direction, in one context */
typedef struct hstujit_call hstujit_call;       /* the instance of a call, in one context */

typedef struct hstujit_text {
  char* data; /* NUL-terminated UTF-8 */
  size_t size;
} hstujit_text;

/* The last value of each enumeration that callers pass in makes every int a value that the library may look at and
 * refuse. */
#define HSTUJIT_ENUM_MAX 0x7fffffff

typedef enum hstujit_backend {
  HSTUJIT_BACKEND_CUDA = 0,
  HSTUJIT_BACKEND_HOST = 1,
  HSTUJIT_BACKEND_MAX_ENUM = HSTUJIT_ENUM_MAX
} hstujit_backend;
typedef enum hstujit_direction {
  HSTUJIT_FORWARD = 0,
  HSTUJIT_BACKWARD = 1,
  HSTUJIT_DIRECTION_MAX_ENUM = HSTUJIT_ENUM_MAX
} hstujit_direction;
typedef enum hstujit_miss_policy {
  HSTUJIT_ON_MISS_DEFAULT = 0,   /* HSTUJIT_ON_MISS, else heuristic */
  HSTUJIT_ON_MISS_HEURISTIC = 1, /* compile the heuristic's config once */
  HSTUJIT_ON_MISS_TUNE = 2,
  HSTUJIT_ON_MISS_FAIL = 3, /* HSTUJIT_CACHE_MISS, nothing compiled */
  HSTUJIT_ON_MISS_MAX_ENUM = HSTUJIT_ENUM_MAX
} hstujit_miss_policy;

/* One event per call: category ("compile", "cache", "dispatch", "tune"), then one line without newline. Called from any
 * thread, of several at a time. It may call the library: an event waits until its thread holds nothing that such a call
 * would wait for. A std::exception of it is dropped. */
typedef void (*hstujit_log_callback)(void* user, const char* category, const char* line);
/* done of total steps; `what` names the current one. Called from the thread that called the reporting function. A
 * std::exception of it ends the call with HSTUJIT_CANCELLED; hstujit.hpp passes any exception on to its caller. */
typedef void (*hstujit_progress_callback)(void* user, size_t done, size_t total, const char* what);

typedef struct hstujit_context_options {
  size_t size;
  /* NULL or "": HSTUJIT_CACHE_DIR, else $XDG_CACHE_HOME/hstujit, else $HOME/.cache/hstujit */
  const char* cache_dir;
  const char* cache_path; /* NULL: HSTUJIT_CACHE_PATH; read-only layers, ':'-separated */
  hstujit_miss_policy on_miss;
  hstujit_log_callback log; /* NULL: stderr, for the categories in HSTUJIT_LOG */
  void* log_user;
  int deterministic; /* 1: only kernels whose results have the same bits every time; 0: HSTUJIT_DETERMINISTIC says it */
} hstujit_context_options;

/* ---- library ---- */
/* HSTUJIT_ABI_VERSION of the library. The number after its .so, too, so that a loader refuses callers of another one;
 * whoever opens the library with dlopen compares it. */
HSTUJIT_API int hstujit_abi_version(void);
HSTUJIT_API const char* hstujit_version(void);    /* "0.1.0" */
HSTUJIT_API const char* hstujit_last_error(void); /* "" when nothing failed on this thread */
HSTUJIT_API const char* hstujit_status_name(hstujit_status);

/* The parts of the sentence of hstujit_last_error(), for callers with words of their own. Each is "" where the sentence
 * has no such part, and valid as long as the sentence. */
typedef struct hstujit_error_fields {
  size_t size;
  const char* argument; /* "q", "q.shape[1]", "score" */
  const char* value;    /* as the sentence shows it */
  const char* allowed;  /* "a multiple of 8 from 8 to 256" */
  const char* hint;     /* what may be done */
} hstujit_error_fields;

/* Set fields->size with HSTUJIT_INIT. */
HSTUJIT_API hstujit_status hstujit_last_error_fields(hstujit_error_fields* fields);
/* JSON list of those of `names` that somebody may have meant who wrote `written`: by the name that other libraries have
 * for it, else the one that is nearest. Empty where none is near. */
HSTUJIT_API hstujit_status hstujit_suggest(const char* written, const char* const* names, size_t count,
                                           hstujit_text* out);
HSTUJIT_API void hstujit_text_free(hstujit_text* text);
/* Once it has returned, no log and no progress callback is called any more, by no thread and of no context; it waits
 * for those that run, but for the caller's own. For a runtime that ends before the process does, as an interpreter. */
HSTUJIT_API void hstujit_callbacks_stop(void);
/* JSON list of operators, from which bindings can be generated: {"op", "parameters" (JSON Schema), "calls"}. "calls"
 * has an object for each direction, "forward" and, where there is one, "backward":
 *   "arguments"  every argument that some instance has, as hstujit_op_signature describes them, in launch order; sizes
 *                that follow from parameters are text: "heads", "heads*attn_dim", or a letter of the operator's page.
 *                "optional": some instance does not have it. "usual": a number that may be left out. Of backward:
 *                "gradient_of": the argument of forward whose gradient it is; "wanted": the parameter without which
 *                that gradient is not computed
 *   "order"      names of the inputs in the order of calls: required ones, then tensors, then numbers, then a seed's
 *                tensor
 * and, for each parameter, where its value comes from:
 *   "sizes"      a list of {"argument", "axis", "unless", "when"}: the size of the first axis whose argument is given,
 *                none of whose flags "unless" is true, and whose flag "when" is
 *   "dtypes"     the data type of the first argument of the list that is given
 *   "presence"   {"given", "left_out"}: true where arguments of the one list are given, and none of the other
 *   "forms"      a list of {"value", "shape"}: by the shape of the argument of the same name
 *   "alignment"  the parameter that addresses and strides are multiples of
 *   "keywords"   the caller gives the value
 *   "declares"   the keyword whose text declares inputs beside "arguments", each with a name; there may be none
 *   "rows"       {"symbol", "keyword"}: sizes of outputs that no input tells, and what callers say them with
 *   "passed_on"  (backward) {"argument", "output", "factor", "parameter", "value"}: the gradient of that input of
 *                forward is the output's, times the argument "factor"; only where the parameter has the value
 *   "forward_only" (forward) parameters with another value than the default of which there is no backward direction
 * hstujit_op_signature gives the arguments of any instance. */
HSTUJIT_API hstujit_status hstujit_operators(hstujit_text* out);
/* JSON Schema of the config file; JSON list of the environment variables. */
HSTUJIT_API hstujit_status hstujit_config_schema(hstujit_text* out);
HSTUJIT_API hstujit_status hstujit_environment(hstujit_text* out);

/* ---- context ---- */
HSTUJIT_API hstujit_status hstujit_context_create(const hstujit_context_options* options, hstujit_context** out);
/* Ops that were made in it stay as they are, and may yet call its log callback. */
HSTUJIT_API void hstujit_context_destroy(hstujit_context* context);
/* Versions and paths of driver, NVRTC, compiler and host libraries, cache directories and their health, GPUs. Never
 * fails because something is missing, but for libhstujit_operations.so, which writes the report. */
HSTUJIT_API hstujit_status hstujit_doctor(hstujit_context* context, hstujit_text* out);
/* The same for a context that these options would give, also when variables are set with which none can be created:
 * they are findings of the report. options may be NULL. */
HSTUJIT_API hstujit_status hstujit_diagnose(const hstujit_context_options* options, hstujit_text* out);

/* ---- config: the JSON of docs/config.md ---- */
/* All mistakes of a config are reported at once: hstujit_last_error() has a line for each, "FILE:LINE:COLUMN:
 * sentence", of the first 20, and then how many more there are. Lines are separated by '\n'. */
HSTUJIT_API hstujit_status hstujit_config_load(const char* path, hstujit_config** out);
/* `origin` stands for FILE; NULL or "": "config". */
HSTUJIT_API hstujit_status hstujit_config_parse(const char* json, const char* origin, hstujit_config** out);
/* What a file of HSTUJIT_RECORD lists, each key once, as a config that only hstujit_tune takes: it tunes exactly these
 * keys, and compiles those that were tuned already and lacked only their kernel. */
HSTUJIT_API hstujit_status hstujit_config_load_recording(const char* path, hstujit_config** out);
HSTUJIT_API void hstujit_config_destroy(hstujit_config* config);
/* {"device": ..., "instances": [{"name", "op", "directions": [...], "spec": {...}, "max_seq_len": [...], "batch",
 * "rows", ...}]} */
HSTUJIT_API hstujit_status hstujit_config_describe(const hstujit_config* config, hstujit_text* out);

/* ---- op ---- */
/* Instance `name` of a config, whose tuning.length_mode and tuning.deterministic hold for it. HSTUJIT_LENGTH_MODE wins
 * over the former where it is set; either asks for the latter. `direction` is any that the operator has: the instance's
 * own say what prewarm, tune and freeze make. */
HSTUJIT_API hstujit_status hstujit_op_from_config(hstujit_context* context, const hstujit_config* config,
                                                  const char* name, hstujit_direction direction,
                                                  hstujit_backend backend, hstujit_op** out);
/* JSON of one instance: {"op": "hstu_attention", "heads": 4, ...}. With "small_batches": true, launches of few
 * sequences get a kernel of their own (docs/tuning.md). HSTUJIT_LENGTH_MODE says what a config would, as do
 * HSTUJIT_DETERMINISTIC and the context's option. */
HSTUJIT_API hstujit_status hstujit_op_create(hstujit_context* context, const char* json, hstujit_direction direction,
                                             hstujit_backend backend, hstujit_op** out);

typedef struct hstujit_op_options {
  size_t size;
  hstujit_direction direction;
  hstujit_backend backend;
  int deterministic; /* 1: only kernels whose results have the same bits every time; 0: the context's option says it */
} hstujit_op_options;

/* hstujit_op_create with a struct of options, which may grow. */
HSTUJIT_API hstujit_status hstujit_op_create_with(hstujit_context* context, const char* json,
                                                  const hstujit_op_options* options, hstujit_op** out);
/* Launches that are under way go on, and CUDA graphs with its kernels stay good while the context or another op of it
 * is there. The last of these unloads kernels: not before launches are done, nor while such a graph may run. */
HSTUJIT_API void hstujit_op_destroy(hstujit_op* op);
/* The signature, in launch order: JSON list of {"name", "kind", "role", "dtype", "shape", "max_sizes", "alignment",
 * "min", "max", "in_place", "semantic", "axis", "doc"}. dtype, shape and alignment are of tensors. max_sizes is there
 * where an axis has a largest size: that by axis, null where there is none. in_place is of an output that may
 * have all of its elements where that input has them; another one shares none with any tensor. min and max are the
 * least and the largest value of a number, where a launch refuses others. semantic ("offsets", "counts", "max_rows")
 * and axis ("L") are of integers about rows of sequences; semantic is "seed" of an integer, or a tensor of one, that
 * random numbers follow from.
 */
HSTUJIT_API hstujit_status hstujit_op_signature(const hstujit_op* op, hstujit_text* out);
/* The signature of the op that hstujit_op_create would make of this instance. It needs no context. */
HSTUJIT_API hstujit_status hstujit_instance_signature(const char* json, hstujit_direction direction, hstujit_text* out);
/* Position of argument `name`, or -1. */
HSTUJIT_API int hstujit_op_argument(const hstujit_op* op, const char* name);
/* The same; HSTUJIT_INVALID_ARGUMENT where there is none, with a sentence that says which there are. */
HSTUJIT_API hstujit_status hstujit_op_find_argument(const hstujit_op* op, const char* name, int* position);
/* How many arguments, and so values of a launch, the op has; 0 for NULL. */
HSTUJIT_API int hstujit_op_argument_count(const hstujit_op* op);

/* Which member of hstujit_value an argument is. */
typedef enum hstujit_kind { HSTUJIT_TENSOR = 0, HSTUJIT_FLOAT = 1, HSTUJIT_INT = 2 } hstujit_kind;

typedef struct hstujit_argument {
  size_t size;
  const char* name; /* lives as long as the op */
  hstujit_kind kind;
  int output; /* 1: the launch writes the tensor; 0: it reads it, or it is a number */
} hstujit_argument;

/* The argument at `position`, from 0 to hstujit_op_argument_count - 1; HSTUJIT_INVALID_ARGUMENT for others. Set
 * argument->size with HSTUJIT_INIT. */
HSTUJIT_API hstujit_status hstujit_op_argument_at(const hstujit_op* op, int position, hstujit_argument* argument);

typedef struct hstujit_problem {
  size_t size;
  int64_t max_seq_len; /* chosen kernels are those of its bucket, of all classes of batches (docs/tuning.md) */
  int device;          /* CUDA ordinal, so 0 after HSTUJIT_INIT; the current context's device when < 0 */
  /* 1: the op of the same instance's backward direction is prepared next. Its kernels begin to compile on threads of
   * their own, where a miss compiles and compiles run side by side; otherwise nothing happens. */
  int derivative_follows;
} hstujit_problem;

/* Makes the kernel for this problem ready: memory, cache layers, else what the miss policy says. May compile; never
 * call it while the current stream is being captured. Cheap when already prepared. */
HSTUJIT_API hstujit_status hstujit_prepare(hstujit_op* op, const hstujit_problem* problem);

/* By the argument's "kind" in the signature. */
typedef union hstujit_value {
  const DLTensor* tensor; /* "tensor"; read during the call only */
  double real;            /* "float" */
  int64_t integer;        /* "int" */
} hstujit_value;

/* Addresses of workspaces are multiples of this, as those of cuMemAlloc and cudaMalloc are. */
#define HSTUJIT_WORKSPACE_ALIGNMENT 256

/* Bytes of device memory that a launch of these values borrows: 0 for most kernels, else a size that follows from the
 * tensors' sizes and strides. It is the prepared kernel's, so it is asked after hstujit_prepare, in the same context
 * and for the same max_seq_len as the launch: HSTUJIT_NOT_PREPARED otherwise. Where it is not 0 the values are checked
 * as launch does. The sizes of seq_offsets and of the sequences' rows say which kernel of the bucket that is
 * (docs/tuning.md, small batches and short sequences). The host backend needs none. */
HSTUJIT_API hstujit_status hstujit_workspace_size(const hstujit_op* op, const hstujit_value* values, size_t count,
                                                  size_t* bytes);
/* Enqueues the op on `stream` (a CUstream; ignored by the host backend, which returns when done). `values` holds one
 * value per signature argument. Takes no lock, allocates nothing, never synchronises; may be captured in a CUDA graph.
 * HSTUJIT_NOT_PREPARED when no kernel is ready for max_seq_len's bucket in the current context, or on the host backend.
 * Shapes, strides, alignment and devices of the tensors are checked. What they hold on the device is not, but with
 * HSTUJIT_CHECK: offsets that fall, or a sequence longer than max_seq_len, give wrong results.
 * `workspace` is `workspace_bytes` of device memory in which no tensor lies, hstujit_workspace_size of them or more;
 * its contents do not matter, and are lost. It must stay until the launch is done on the stream, and no launch on
 * another stream may use it meanwhile. NULL, misplaced or too small: HSTUJIT_INVALID_ARGUMENT. Ignored where none is
 * needed. */
HSTUJIT_API hstujit_status hstujit_launch(const hstujit_op* op, const hstujit_value* values, size_t count,
                                          void* workspace, size_t workspace_bytes, void* stream);

/* ---- call: which instance an operator computes with these tensors. No JSON:
 *
 *   hstujit_given given[] = {{"x", HSTUJIT_GIVEN_TENSOR, {.tensor = &x}, NULL},
 *                            {"weight", HSTUJIT_GIVEN_TENSOR, {.tensor = &weight}, NULL},
 *                            {"eps", HSTUJIT_GIVEN_REAL, {.real = 1e-5}, NULL}};
 *   hstujit_call_create(context, "rms_norm", &options, given, 3, &call);
 *   hstujit_value values[4] = {{.tensor = &x}, {.tensor = &weight}, {.real = 1e-5}};
 *   hstujit_call_output_sizes(call, values, 4, NULL, 0, sizes, 2);  -> make the output of these sizes
 *   values[3].tensor = &out;
 *   hstujit_call_op(call, values, 4, &op);  -> hstujit_prepare, hstujit_workspace_size, hstujit_launch
 *
 * A call is kept and used again for all tensors of the same data types, ranks and sizes of parameters, such as heads.
 * ---- */
typedef enum hstujit_given_kind {
  HSTUJIT_GIVEN_TENSOR = 0,
  HSTUJIT_GIVEN_REAL = 1,
  HSTUJIT_GIVEN_INTEGER = 2,
  HSTUJIT_GIVEN_FLAG = 3, /* value.integer is 0 or 1 */
  HSTUJIT_GIVEN_TEXT = 4,
  HSTUJIT_GIVEN_MAX_ENUM = HSTUJIT_ENUM_MAX
} hstujit_given_kind;

/* One argument of a call: an input, a parameter that callers give, or a number of rows ("arguments", "keywords" and
 * "rows" of hstujit_operators). A tensor or a text that is NULL is not given. A tensor that a text declares ("declares"
 * there) has the name that it has in the text, or that of the keyword with its place: "operands[0]" is the first one.
 */
typedef struct hstujit_given {
  const char* name;
  hstujit_given_kind kind;
  /* Of a tensor only data type and shape are read. Its data may be anywhere or NULL, and a size may be -1 that is not
   * known and that no parameter follows from. */
  hstujit_value value;
  const char* text;
} hstujit_given;

/* Decides the instance of a call of operator `op`. HSTUJIT_INVALID_ARGUMENT for arguments that are missing or not used,
 * for data types, ranks and sizes of parameters; HSTUJIT_INVALID_CONFIG for parameters that do not go together. Values
 * of numbers are looked at by the functions below. */
HSTUJIT_API hstujit_status hstujit_call_create(hstujit_context* context, const char* op,
                                               const hstujit_op_options* options, const hstujit_given* given,
                                               size_t count, hstujit_call** out);
HSTUJIT_API void hstujit_call_destroy(hstujit_call* call);
/* {"instance": {"op": "silu", "width": 64, ...}, "signature": [...] as hstujit_op_signature has it, "row_elements": [of
 * each output], "symbols": [...]}. "symbols" says where the sizes of outputs come from, each behind those that it
 * needs:
 *   {"symbol": "L", "axis": 0, "of": "q", "factor": 1, "bias": 0}  (size of that axis - bias) / factor
 *   {"symbol": "L", "sum": ["A", "B"]}                             the sum of sizes
 *   {"symbol": "A", "rest": ["L", "B"]}                            the first size less the others
 *   {"symbol": "A", "keyword": "left_rows"}                        the caller says it
 *   {"symbol": "A", "last": "offsets_left"}                        the last element of that tensor */
HSTUJIT_API hstujit_status hstujit_call_describe(const hstujit_call* call, hstujit_text* out);

typedef struct hstujit_call_argument {
  size_t size;
  const char* name; /* lives as long as the call */
  hstujit_kind kind;
  int output;       /* 1: the launch writes the tensor */
  int rank;         /* of a tensor */
  int row_elements; /* of an output: a new one has rows that begin at multiples of so many elements */
  DLDataType dtype; /* of a tensor */
  int max_rows;     /* 1: hstujit_prepare is for the value of this integer; where no argument is one, for 1 */
  int alignment; /* of a tensor: bytes that its address and all strides but the innermost are multiples of, at least */
} hstujit_call_argument;

/* How many values a launch has; 0 for NULL. */
HSTUJIT_API int hstujit_call_argument_count(const hstujit_call* call);
HSTUJIT_API hstujit_status hstujit_call_argument_at(const hstujit_call* call, int position,
                                                    hstujit_call_argument* argument);

/* A number of rows that hstujit_call_output_sizes is told. */
typedef struct hstujit_call_rows {
  size_t size;
  const char* keyword; /* that the caller gave; NULL: the value is the last element of the tensor of offsets */
  int offsets;         /* position of that tensor, whose last element counts, or 0 where it is empty; else -1 */
} hstujit_call_rows;

HSTUJIT_API int hstujit_call_rows_count(const hstujit_call* call);
HSTUJIT_API hstujit_status hstujit_call_rows_at(const hstujit_call* call, int index, hstujit_call_rows* rows);

/* The sizes of all outputs of a launch of these values, one output behind the other; outputs among the values are not
 * looked at. `rows` has the value of each hstujit_call_rows. `capacity` is the number of sizes that there is room for,
 * the sum of the outputs' ranks or more. HSTUJIT_INVALID_ARGUMENT for a number out of its bounds, and for an output
 * that no memory has room for. */
HSTUJIT_API hstujit_status hstujit_call_output_sizes(const hstujit_call* call, const hstujit_value* values,
                                                     size_t count, const int64_t* rows, size_t rows_count,
                                                     int64_t* sizes, size_t capacity);
/* Checks sizes and integers of the inputs as a launch does, before there are addresses: data types, places, addresses,
 * strides, real numbers and outputs are not looked at. A size of -1 and an integer INT64_MIN are not known, and pass.
 */
HSTUJIT_API hstujit_status hstujit_call_check(const hstujit_call* call, const hstujit_value* values, size_t count);
/* The op that launches these values: that of the largest alignment that all of the tensors have. It is the call's, and
 * lives as long as that. */
HSTUJIT_API hstujit_status hstujit_call_op(hstujit_call* call, const hstujit_value* values, size_t count,
                                           hstujit_op** op);

/* ---- work on whole configs; each returns a JSON report, also when some instances failed (then HSTUJIT_CHECK_FAILED or
 * the first instance's status). libhstujit_operations.so does this work, and that on the cache below, in a context of
 * its own with the settings and the directories of the caller's. Where the library is missing the functions return
 * HSTUJIT_NO_COMPILER, and the sentence has the places that were looked at ---- */

/* The most parts that the keys of a config are divided into. */
#define HSTUJIT_MAX_SHARDS 1048576

typedef struct hstujit_run_options {
  size_t size;
  /* prewarm, emit, freeze, explain, check: "sm_90a", a product name or a DeviceSpec file; NULL: the config's device,
   * else the GPU present */
  const char* arch;
  const char* op_name; /* NULL or "": every instance; where kernels are meant, "NAME/STEP" is one step of a program */
  int jobs;            /* parallel compiles, HSTUJIT_COMPILE_JOBS at most; 0: that many */
  double budget_s;     /* tune: seconds for the whole call; 0: the config's */
  hstujit_backend backend;
  int check;   /* run: compare with the float64 reference; prewarm: compile and write nothing, a kernel that
                * is missing is HSTUJIT_CACHE_MISS */
  int device;  /* CUDA ordinal */
  int repeats; /* bench: timed launches of each instance; 0: 50. run: launches on the same input, compared with
                * one another; 0: 1 */
  const char* directory; /* emit: where files go; of several instances, each in a folder of its name below it. NULL: the
                          * current directory */
  uint64_t seed;
  int64_t max_rows; /* run: at most this many rows per batch, 0: all; the report says what was left out */
  hstujit_progress_callback progress;
  void* progress_user;
  /* prewarm, tune: only the keys of part shard_index of shard_count. Every process of a job divides a config in the
   * same way, and no key belongs to two parts. At most HSTUJIT_MAX_SHARDS; 0 and 0: all keys. */
  int shard_index;
  int shard_count;
  /* prewarm, tune: once this int is not 0, no further compile begins, workers are killed, and the call returns
   * HSTUJIT_CANCELLED after the compiles of its own process. Any thread and any signal handler may set it. What was
   * finished is kept in the cache. NULL: nobody cancels. */
  const volatile int* cancel;
} hstujit_run_options;

HSTUJIT_API hstujit_status hstujit_prewarm(hstujit_context*, const hstujit_config*, const hstujit_run_options*,
                                           hstujit_text* report);
HSTUJIT_API hstujit_status hstujit_tune(hstujit_context*, const hstujit_config*, const hstujit_run_options*,
                                        hstujit_text* report);
HSTUJIT_API hstujit_status hstujit_run(hstujit_context*, const hstujit_config*, const hstujit_run_options*,
                                       hstujit_text* report);
HSTUJIT_API hstujit_status hstujit_bench(hstujit_context*, const hstujit_config*, const hstujit_run_options*,
                                         hstujit_text* report);
HSTUJIT_API hstujit_status hstujit_emit(hstujit_context*, const hstujit_config*, const hstujit_run_options*,
                                        hstujit_text* report);
/* The report is the file that HSTUJIT_FROZEN names: which kernel each key gets, now. Where one gets none, the report
 * says which of them did not ("failed"), and has no choices. */
HSTUJIT_API hstujit_status hstujit_freeze(hstujit_context*, const hstujit_config*, const hstujit_run_options*,
                                          hstujit_text* report);
HSTUJIT_API hstujit_status hstujit_explain(hstujit_context*, const hstujit_config*, const hstujit_run_options*,
                                           hstujit_text* report);
/* What the config asks for, key by key, and the kernel of each where a device is named or present; NULL `arch`, no
 * device in the config and no GPU are no failure. Compiles nothing. */
HSTUJIT_API hstujit_status hstujit_check(hstujit_context*, const hstujit_config*, const hstujit_run_options*,
                                         hstujit_text* report);

/* ---- what a context has done since it was made ---- */

/* Look-ups of kernels and where they were found, compiles and tunings with their times, and launches of each kernel.
 * `format` is "json" (docs/reports.md, "stats"), which NULL is, too, or "prometheus", a page of Prometheus' text
 * format. Tasks such as hstujit_prewarm are not in it. Any thread may ask at any time; no launch waits for it.
 * HSTUJIT_INVALID_ARGUMENT for another format. */
HSTUJIT_API hstujit_status hstujit_stats(hstujit_context*, const char* format, hstujit_text* out);

/* ---- cache. A folder that a look-up passes over, such as one that anybody may write, is named by list and verify, and
 * makes prune and export fail with HSTUJIT_IO ---- */
HSTUJIT_API hstujit_status hstujit_cache_list(hstujit_context*, hstujit_text* report);
HSTUJIT_API hstujit_status hstujit_cache_verify(hstujit_context*, hstujit_text* report);
/* Removes least recently used entries until at most `max_bytes` remain: all of them for 0, which as
 * HSTUJIT_CACHE_MAX_BYTES means no bound. */
HSTUJIT_API hstujit_status hstujit_cache_prune(hstujit_context*, uint64_t max_bytes, hstujit_text* report);
/* Removes the entries that this version of NVRTC built, "13.0", whatever their age. */
HSTUJIT_API hstujit_status hstujit_cache_prune_nvrtc(hstujit_context*, const char* version, hstujit_text* report);
/* The directory that is written; HSTUJIT_NOT_FOUND where there is none. */
HSTUJIT_API hstujit_status hstujit_cache_path(hstujit_context*, hstujit_text* out);

typedef struct hstujit_cache_export_options {
  size_t size;
  const char* op; /* only entries of this operator, "hstu_attention", or of a program's steps; NULL: all */
} hstujit_cache_export_options;

/* Writes the kernels and tuning records of every cache layer into the bundle `path`: a tar archive that carries its
 * SHA-256, with the same bytes for the same entries (docs/cache-format.md). It is not compressed; zstd may do that.
 * A bundle or an empty file that is there is replaced; HSTUJIT_INVALID_ARGUMENT for any other file, and for a layer. */
HSTUJIT_API hstujit_status hstujit_cache_export(hstujit_context*, const char* path,
                                                const hstujit_cache_export_options* options, hstujit_text* report);
/* Puts the entries of a bundle, compressed with zstd or not, into the cache directory that is written. HSTUJIT_IO, and
 * nothing is imported, when the file is not exactly what was exported; HSTUJIT_NO_COMPILER when it is compressed and
 * there is no libhstujit_bundle.so. */
HSTUJIT_API hstujit_status hstujit_cache_import(hstujit_context*, const char* path, hstujit_text* report);

#ifdef __cplusplus
}
#endif
#endif
