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
    %4 = arith.minsi %arg1, %3 : index
    %5 = hstu.argument "max_contextual_seq_len" : index
    %6 = arith.subi %3, %4 : index
    %7 = arith.addi %6, %5 : index
    %8 = arith.cmpi slt, %arg1, %5 : index
    %9 = arith.select %8, %arg1, %7 : index
    %10 = hstu.extent "position_embeddings_weight"
    %11 = arith.subi %10, %c1 : index
    %12 = arith.minsi %9, %11 : index
    %13 = arith.maxsi %12, %c0 : index
    %14 = arith.subi %2, %c1 : index
    %15 = hstu.element "timestamps"[%14]
    %16 = arith.addi %0, %arg1 : index
    %17 = hstu.element "timestamps"[%16]
    %18 = arith.maxsi %15, %c-1 : index
    %19 = arith.subi %18, %c9223372036854775807 : index
    %20 = arith.minsi %17, %15 : index
    %21 = arith.maxsi %20, %19 : index
    %22 = arith.subi %15, %21 : index
    %23 = arith.index_cast %22 : index to i64
    %24 = arith.sitofp %23 : i64 to f32
    %25 = arith.maxnumf %24, %cst_0 : f32
    %26 = hstu.argument "time_bucket_increments" : f32
    %27 = arith.divf %25, %26 : f32
    %28 = math.sqrt %27 : f32
    %29 = hstu.extent "timestamp_embeddings_weight"
    %30 = arith.subi %29, %c1 : index
    %31 = arith.index_cast %30 : index to i64
    %32 = arith.sitofp %31 : i64 to f32
    %33 = arith.maxnumf %28, %cst : f32
    %34 = arith.minnumf %33, %32 : f32
    %35 = arith.fptosi %34 : f32 to i64
    %36 = arith.index_cast %35 : i64 to index
    return %13, %36 : index, index
  }
}
