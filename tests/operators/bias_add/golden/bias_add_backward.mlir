module {
  func.func @row_outputs(%arg0: f32 {hstu.name = "beta"}, %arg1: f32 {hstu.name = "dout"}) -> (f32 {hstu.name = "dbias"}) {
    %0 = arith.mulf %arg0, %arg1 : f32
    return %0 : f32
  }
}
