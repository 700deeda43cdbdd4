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
    %c2 = arith.constant 2 : index
    %c1 = arith.constant 1 : index
    %0 = hstu.element "seq_offsets"[%arg0]
    %1 = arith.addi %arg0, %c1 : index
    %2 = hstu.element "seq_offsets"[%1]
    %3 = arith.subi %2, %0 : index
    %4 = hstu.element "num_targets"[%arg0]
    %5 = arith.muli %4, %c2 : index
    %6 = arith.subi %3, %5 : index
    %7 = arith.minsi %arg1, %6 : index
    %8 = hstu.argument "max_contextual_seq_len" : index
    %9 = arith.subi %6, %7 : index
    %10 = arith.addi %9, %8 : index
    %11 = arith.cmpi slt, %arg1, %8 : index
    %12 = arith.select %11, %arg1, %10 : index
    %13 = hstu.extent "position_embeddings_weight"
    %14 = arith.subi %13, %c1 : index
    %15 = arith.minsi %12, %14 : index
    %16 = arith.maxsi %15, %c0 : index
    %17 = hstu.element "query_time"[%arg0]
    %18 = arith.addi %0, %arg1 : index
    %19 = hstu.element "timestamps"[%18]
    %20 = arith.subi %17, %19 : index
    %21 = arith.index_cast %20 : index to i64
    %22 = arith.sitofp %21 : i64 to f32
    %23 = arith.maxnumf %22, %cst_0 : f32
    %24 = hstu.argument "time_bucket_increments" : f32
    %25 = arith.divf %23, %24 : f32
    %26 = math.sqrt %25 : f32
    %27 = hstu.extent "timestamp_embeddings_weight"
    %28 = arith.subi %27, %c1 : index
    %29 = arith.index_cast %28 : index to i64
    %30 = arith.sitofp %29 : i64 to f32
    %31 = arith.maxnumf %26, %cst : f32
    %32 = arith.minnumf %31, %30 : f32
    %33 = arith.fptosi %32 : f32 to i64
    %34 = arith.index_cast %33 : i64 to index
    return %16, %34 : index, index
  }
}
