"""Programs as bytes (ProgramDesc) and as protobuf text."""
