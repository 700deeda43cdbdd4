module {
  func.func @row_outputs(%arg0: f32 {hstu.name = "values"}) -> (f32 {hstu.name = "out"}) {
    return %arg0 : f32
  }
  func.func @row_index(%arg0: index {hstu.name = "sequence"}, %arg1: index {hstu.name = "position"}) -> (index {hstu.name = "values"}) {
    %c-1 = arith.constant -1 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = hstu.element "seq_offsets_q"[%arg0]
    %1 = arith.addi %arg0, %c1 : index
    %2 = hstu.element "seq_offsets_q"[%1]
    %3 = arith.subi %2, %0 : index
    %4 = hstu.element "seq_offsets"[%arg0]
    %5 = hstu.element "seq_offsets"[%1]
    %6 = arith.subi %5, %4 : index
    %7 = arith.subi %6, %3 : index
    %8 = arith.addi %7, %arg1 : index
    %9 = arith.cmpi sge, %8, %c0 : index
    %10 = arith.addi %4, %8 : index
    %11 = arith.select %9, %10, %c-1 : index
    return %11 : index
  }
}
