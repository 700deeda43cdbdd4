module {
  func.func @row_outputs(%arg0: f32 {hstu.name = "alpha"}, %arg1: f32 {hstu.name = "dout"}) -> (f32 {hstu.name = "dseq_embeddings"}, f32 {hstu.name = "dposition_embeddings_weight"}) {
    %0 = arith.mulf %arg0, %arg1 : f32
    return %0, %arg1 : f32, f32
  }
  func.func @row_index(%arg0: index {hstu.name = "sequence"}, %arg1: index {hstu.name = "position"}) -> (index {hstu.name = "dposition_embeddings_weight"}) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = hstu.element "seq_offsets"[%arg0]
    %1 = arith.addi %arg0, %c1 : index
    %2 = hstu.element "seq_offsets"[%1]
    %3 = arith.subi %2, %0 : index
    %4 = arith.minsi %arg1, %3 : index
    %5 = hstu.extent "dposition_embeddings_weight"
    %6 = arith.subi %5, %c1 : index
    %7 = arith.minsi %4, %6 : index
    %8 = arith.maxsi %7, %c0 : index
    return %8 : index
  }
}
