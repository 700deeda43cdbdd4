module {
  func.func @row_outputs(%arg0: f32 {hstu.name = "alpha"}, %arg1: f32 {hstu.name = "dout"}) -> (f32 {hstu.name = "dseq_embeddings"}, f32 {hstu.name = "dposition_embeddings_weight"}, f32 {hstu.name = "dtimestamp_embeddings_weight"}) {
    %0 = arith.mulf %arg0, %arg1 : f32
    return %0, %arg1, %arg1 : f32, f32, f32
  }
  func.func @row_index(%arg0: index {hstu.name = "sequence"}, %arg1: index {hstu.name = "position"}) -> (index {hstu.name = "dposition_embeddings_weight"}, index {hstu.name = "dtimestamp_embeddings_weight"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 9.99999997E-7 : f32
    %c-1 = arith.constant -1 : index
    %c9223372036854775807 = arith.constant 9223372036854775807 : index
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
    %13 = hstu.extent "dposition_embeddings_weight"
    %14 = arith.subi %13, %c1 : index
    %15 = arith.minsi %12, %14 : index
    %16 = arith.maxsi %15, %c0 : index
    %17 = hstu.element "query_time"[%arg0]
    %18 = arith.addi %0, %arg1 : index
    %19 = hstu.element "timestamps"[%18]
    %20 = arith.maxsi %17, %c-1 : index
    %21 = arith.subi %20, %c9223372036854775807 : index
    %22 = arith.minsi %19, %17 : index
    %23 = arith.maxsi %22, %21 : index
    %24 = arith.subi %17, %23 : index
    %25 = arith.index_cast %24 : index to i64
    %26 = arith.sitofp %25 : i64 to f32
    %27 = arith.maxnumf %26, %cst_0 : f32
    %28 = hstu.argument "time_bucket_increments" : f32
    %29 = arith.divf %27, %28 : f32
    %30 = math.sqrt %29 : f32
    %31 = hstu.extent "dtimestamp_embeddings_weight"
    %32 = arith.subi %31, %c1 : index
    %33 = arith.index_cast %32 : index to i64
    %34 = arith.sitofp %33 : i64 to f32
    %35 = arith.maxnumf %30, %cst : f32
    %36 = arith.minnumf %35, %34 : f32
    %37 = arith.fptosi %36 : f32 to i64
    %38 = arith.index_cast %37 : i64 to index
    return %16, %38 : index, index
  }
}
