"""What calls of CUDA's driver take the host, from compiled code."""
