"""Run by a Python with the real PyTorch: loads our file and saves the same tensors."""

import json
import sys

import numpy as np
import torch


def main():
    with open(sys.argv[1]) as file:
        job = json.load(file)
    found = torch.load(job["ours"])
    plain = {name: t.view(torch.int16) if t.dtype == torch.bfloat16 else t for name, t in found.items()}
    np.savez(job["found"], **{name: t.numpy() for name, t in plain.items()})
    torch.save(found, job["theirs"])


if __name__ == "__main__":
    main()
