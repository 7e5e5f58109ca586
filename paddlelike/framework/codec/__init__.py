"""Programs as bytes and text: ProgramDesc, protobuf text."""
