"""The classifier 784-128-10 at batch 64 in PyTorch on the CPU: JSON lines like those of the measuring program."""

import json
import time

import torch

BATCH, STEPS = 64, 1000


def step_time(threads):
    """Milliseconds of an AdamW step, the mean of many."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.rand(BATCH, 784) * 2 - 1
    label = torch.arange(BATCH) * 7 % 10

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(x), label)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(100):
        step()
    begun = time.perf_counter()
    for _ in range(STEPS):
        loss = step()
    assert torch.isfinite(loss)
    return (time.perf_counter() - begun) / STEPS * 1e3


def product_time(size, threads):
    """Milliseconds of a square product, the best of many."""
    torch.set_num_threads(threads)
    a, b = torch.rand(size, size), torch.rand(size, size)
    best = float("inf")
    for _ in range(30):
        begun = time.perf_counter()
        torch.mm(a, b)
        best = min(best, time.perf_counter() - begun)
    return best * 1e3


def main():
    device = f"PyTorch {torch.__version__} on the CPU"
    for threads in (1, 2):
        figures = [("mlp_adamw_step", step_time(threads))]
        figures += [(f"product_{size}", product_time(size, threads)) for size in (512, 1024)]
        for name, value in figures:
            figure = {"name": name, "device": device, "value": round(value, 5), "unit": "ms", "how": f"{threads} threads"}
            print(json.dumps(figure))


main()
