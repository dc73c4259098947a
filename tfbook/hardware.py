"""Where computation runs: one place decides, so that a chapter never names a device."""

import os

import torch


def device() -> torch.device:
    """The device of the book's runs: `TFBOOK_DEVICE` (cpu, cuda or mps), or the CPU.

    Raises ValueError for an unknown name and RuntimeError where the device is absent.
    """
    name = os.environ.get("TFBOOK_DEVICE", "cpu")
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name not in available:
        raise ValueError(f"TFBOOK_DEVICE={name!r} is unknown; use one of {', '.join(available)}")
    if not available[name]:
        raise RuntimeError(f"TFBOOK_DEVICE={name!r}, but this machine has none; unset it to use the CPU")
    return torch.device(name)
