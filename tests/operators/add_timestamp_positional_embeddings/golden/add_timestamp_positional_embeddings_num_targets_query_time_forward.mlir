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
    %19 = arith.subi %16, %18 : index
    %20 = arith.index_cast %19 : index to i64
    %21 = arith.sitofp %20 : i64 to f32
    %22 = arith.maxnumf %21, %cst_0 : f32
    %23 = hstu.argument "time_bucket_increments" : f32
    %24 = arith.divf %22, %23 : f32
    %25 = math.sqrt %24 : f32
    %26 = hstu.extent "timestamp_embeddings_weight"
    %27 = arith.subi %26, %c1 : index
    %28 = arith.index_cast %27 : index to i64
    %29 = arith.sitofp %28 : i64 to f32
    %30 = arith.maxnumf %25, %cst : f32
    %31 = arith.minnumf %30, %29 : f32
    %32 = arith.fptosi %31 : f32 to i64
    %33 = arith.index_cast %32 : i64 to index
    return %15, %33 : index, index
  }
}
