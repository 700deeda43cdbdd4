module {
  func.func @row_outputs(%arg0: f32 {hstu.name = "seq_embeddings"}, %arg1: f32 {hstu.name = "position_embeddings_weight"}, %arg2: f32 {hstu.name = "timestamp_embeddings_weight"}, %arg3: f32 {hstu.name = "alpha"}) -> (f32 {hstu.name = "out"}) {
    %0 = arith.mulf %arg0, %arg3 : f32
    %1 = arith.addf %arg2, %arg1 : f32
    %2 = arith.addf %0, %1 : f32
    return %2 : f32
  }
  func.func @row_index(%arg0: index {hstu.name = "sequence"}, %arg1: index {hstu.name = "position"}) -> (index {hstu.name = "position_embeddings_weight"}, index {hstu.name = "timestamp_embeddings_weight"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 9.99999997E-7 : f32
    %c-1 = arith.constant -1 : index
    %c9223372036854775807 = arith.constant 9223372036854775807 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = hstu.element "seq_offsets"[%arg0]
    %1 = arith.addi %arg0, %c1 : index
    %2 = hstu.element "seq_offsets"[%1]
    %3 = arith.subi %2, %0 : index
    %4 = hstu.element "num_targets"[%arg0]
    %5 = arith.subi %3, %4 : index
    %6 = arith.minsi %arg1, %5 : index
    %7 = hstu.argument "max_contextual_seq_len" : index
    %8 = arith.subi %5, %6 : index
    %9 = arith.addi %8, %7 : index
    %10 = arith.cmpi slt, %arg1, %7 : index
    %11 = arith.select %10, %arg1, %9 : index
    %12 = hstu.extent "position_embeddings_weight"
    %13 = arith.subi %12, %c1 : index
    %14 = arith.minsi %11, %13 : index
    %15 = arith.maxsi %14, %c0 : index
    %16 = hstu.element "query_time"[%arg0]
    %17 = arith.addi %0, %arg1 : index
    %18 = hstu.element "timestamps"[%17]
    %19 = arith.maxsi %16, %c-1 : index
    %20 = arith.subi %19, %c9223372036854775807 : index
    %21 = arith.minsi %18, %16 : index
    %22 = arith.maxsi %21, %20 : index
    %23 = arith.subi %16, %22 : index
    %24 = arith.index_cast %23 : index to i64
    %25 = arith.sitofp %24 : i64 to f32
    %26 = arith.maxnumf %25, %cst_0 : f32
    %27 = hstu.argument "time_bucket_increments" : f32
    %28 = arith.divf %26, %27 : f32
    %29 = math.sqrt %28 : f32
    %30 = hstu.extent "timestamp_embeddings_weight"
    %31 = arith.subi %30, %c1 : index
    %32 = arith.index_cast %31 : index to i64
    %33 = arith.sitofp %32 : i64 to f32
    %34 = arith.maxnumf %29, %cst : f32
    %35 = arith.minnumf %34, %33 : f32
    %36 = arith.fptosi %35 : f32 to i64
    %37 = arith.index_cast %36 : i64 to index
    return %15, %37 : index, index
  }
}
