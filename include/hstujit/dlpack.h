/* The part of the DLPack ABI (version 0.8) that hstu-jit takes: DLTensor and what it is made of.
 *
 * Include DLPack's own header first and its declarations are used; otherwise these stand in for it, layout for layout,
 * so that this header needs nothing installed. The guard is DLPack's, so including its header afterwards is safe too.
 * The enumerations leave no name out that PyTorch, JAX, CuPy and NumPy produce; a device or type that hstu-jit does not
 * run on is answered with a status, not with undefined behaviour.
 */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#include <stdint.h>

#define DLPACK_VERSION 80
#define DLPACK_ABI_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/* Where memory is. The values are DLPack's; the enumeration is 32 bits wide, as it is in C++ there. */
#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLExtDev = 12,
  kDLCUDAManaged = 13,
  kDLOneAPI = 14,
  kDLWebGPU = 15,
  kDLHexagon = 16
} DLDeviceType;

typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef enum {
  kDLInt = 0U,
  kDLUInt = 1U,
  kDLFloat = 2U,
  kDLOpaqueHandle = 3U,
  kDLBfloat = 4U,
  kDLComplex = 5U,
  kDLBool = 6U
} DLDataTypeCode;

typedef struct {
  uint8_t code;   /* a DLDataTypeCode */
  uint8_t bits;   /* of one lane */
  uint16_t lanes; /* 1 except for vector types */
} DLDataType;

typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;     /* in elements; NULL: compact, row major */
  uint64_t byte_offset; /* from data to the first element */
} DLTensor;

/* A DLTensor with its owner, as frameworks hand it out in a capsule named "dltensor". */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

#ifdef __cplusplus
}
#endif
#endif /* DLPACK_DLPACK_H_ */
