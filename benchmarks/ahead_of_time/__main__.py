"""python -m benchmarks.ahead_of_time cuda|tpu|cpu [--only CASE …] [--slots N] [--captured]
[--budget FILE] [--out DIR]

Compiles the engines' programs for an H100, a TPU or this CPU, with or without the device, and says
for each loop what one turn launches and how many bytes a slot it reads and writes; of the kernel
engine, its registers and the instructions of a round. The exit status is 1 if a case does not
compile, calls something outside of the program (CUDA), computes in float64, if the scan and the
leap engine compute one score in different ways (the same bits would end there), if a kernel spills
or may join a product and a sum, or if a case takes more memory than the pool reckons with, or more
launches, bytes or instructions than FILE allows.

What it needs besides jax: cuda: the wheels jax-cuda13-plugin and jax-cuda13-pjrt of jax's own
version, ptxas on PATH or the wheel nvidia-cuda-nvcc; tpu: libtpu. In an environment of their own:
jax prefers a GPU as soon as it finds a plugin.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.ahead_of_time.cases import SAME_SCORE, SLOTS, cases, lowered
from benchmarks.ahead_of_time.hlo import faults, loops, score_formulas
from benchmarks.ahead_of_time.ptx import Kernel, kernel_in
from benchmarks.common import write

HEADER = (
    "case",
    "loop",
    "launches",
    "copies",
    "bytes_per_slot",
    "temporary_mb",
    "states",
    "compile_s",
)
NEEDS = {
    "cuda": "the wheels jax-cuda13-plugin and jax-cuda13-pjrt of jax's own version, and ptxas (or nvidia-cuda-nvcc)",
    "tpu": "the wheel libtpu, as pip install 'jax[tpu]' brings it",
}
# This process itself computes on CPU; what stands in the environment counts for the others.
ENVIRONMENT = {
    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
}


def main():
    """Read the options, compile all cases, write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("platform", choices=[*NEEDS, "cpu"])
    parser.add_argument("--only", nargs="*", metavar="CASE")
    parser.add_argument("--slots", type=int, default=SLOTS)
    parser.add_argument(
        "--captured", action="store_true", help="put whole loops into one CUDA graph"
    )
    parser.add_argument(
        "--budget", type=Path, help="a JSON file with limits for an iteration, by target and case"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for ahead_of_time_TARGET.csv"
    )
    arguments = parser.parse_args()
    os.environ |= {**ENVIRONMENT, **os.environ, "JAX_PLATFORMS": "cpu"}
    import jax

    from jaxbandits._engine import driver, pool

    device = target(arguments.platform)
    selection = {
        name: case
        for name, case in cases().items()
        if name in (arguments.only or (name,))
        and (arguments.platform == "cuda" or case[-1] != "kernel")
    }
    if missing := set(arguments.only or ()) - set(selection):
        raise SystemExit(
            f"--only: {', '.join(sorted(missing))} given; it must be of {', '.join(cases())}"
        )
    options = driver.options(device.platform, captured=arguments.captured)
    print(
        f"{device.device_kind}, jax {jax.__version__}, {arguments.slots} slots, {time.strftime('%Y-%m-%d')}",
        flush=True,
    )
    rows, kernels, wrong, formulas = [], [], [], set()
    for name, case in selection.items():
        try:
            with tempfile.TemporaryDirectory() as folder:
                dumps = {"xla_dump_to": folder} if case[-1] == "kernel" else {}
                program, state = lowered(name, case, arguments.slots, device, options | dumps)
                start = time.perf_counter()
                compiled = program.compile()
                seconds = time.perf_counter() - start
                if (kernel := kernel_in(Path(folder))) is not None:
                    kernels.append((name, *kernel, round(seconds, 1)))
        except (
            Exception
        ) as problem:  # whatever a compiler says: the other cases are compiled all the same
            wrong.append(
                f"{name}: does not compile ({type(problem).__name__}: {str(problem)[:500]})"
            )
            continue
        text, memory = compiled.as_text() or "", compiled.memory_analysis()
        buffers = (
            memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes
        )
        states = (buffers + memory.temp_size_in_bytes) / state
        wrong += [f"{name}: {fault}" for fault in faults(text, arguments.platform)]
        if states > pool.STATES[device.platform]:
            estimate = pool.STATES[device.platform]
            wrong.append(f"{name}: takes {states:.1f} times its state; {estimate} are reckoned")
        if name.startswith(SAME_SCORE):
            formulas |= score_formulas(text)
        rows += _rows(
            name, loops(text), arguments.slots, memory.temp_size_in_bytes, states, seconds
        )
    for name, *numbers, _ in kernels:
        facts = dict(zip(Kernel._fields, numbers, strict=True))
        print(f"{name}:", ", ".join(f"{count} {fact}" for fact, count in facts.items()))
        if facts["spilled"] or facts["loose"]:
            wrong.append(f"{name}: the kernel spills, or may join a product and a sum")
    if arguments.platform == "cuda" and len(formulas) > 1:
        wrong.append(
            f"one score is computed in {len(formulas)} ways: {', '.join(x[:300] for x in sorted(formulas))}"
        )
    if arguments.budget is not None:
        budget = json.loads(arguments.budget.read_text())
        wrong += beyond(rows, budget[arguments.platform]) + dearer(kernels, budget["kernel"])
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        write(arguments.out / f"ahead_of_time_{arguments.platform}.csv", [HEADER, *rows])
        if kernels:
            write(
                arguments.out / "ahead_of_time_kernels.csv",
                [("case", *Kernel._fields, "compile_s"), *kernels],
            )
    print("\n".join(wrong) or "all is well")
    return int(bool(wrong))


def target(platform):
    """The device; or SystemExit with a line that says what is missing."""
    import jax
    from jax.experimental.topologies import get_topology_desc

    if platform == "cpu":
        return jax.devices("cpu")[0]
    facts = {"topology_name": "v5e:2x2"}
    if platform == "cuda":
        facts = {
            "target_config": (Path(__file__).parent / "h100.txtpb").read_text(),
            "topology": "1x1x1",
        }
    try:
        return get_topology_desc(platform=platform, **facts).devices[0]
    except Exception as problem:
        first = str(problem).splitlines()[0]
        raise SystemExit(
            f"ahead_of_time: no compiler for {platform} ({first}); it needs {NEEDS[platform]}"
        ) from None


def _rows(name, inside, slots, temporary, states, seconds):
    """A row for each loop, which is printed as well."""
    rows = []
    print(
        f"{name}: {temporary / 1e6:.0f} MB of temporaries, {states:.1f} states, compiled in {seconds:.1f} s"
    )
    for loop in inside:
        rows.append((name, loop.path, loop.launches, loop.copies, round(loop.bytes / slots)))
        label = "  " * loop.path.count("/") + loop.path.rpartition("/")[2]
        print(
            f"  {label:<24} {loop.launches:>4} launches + {loop.copies} copies, {rows[-1][4]:>7,} B a slot"
        )
    return [(*row, round(temporary / 1e6), round(states, 2), round(seconds, 1)) for row in rows]


def beyond(rows, budget):
    """Loops that take more than their budget, ``{case: {loop: [launches and copies, bytes]}}``."""
    usage = {
        (case, loop): (launches + copies, size) for case, loop, launches, copies, size, *_ in rows
    }
    compiled, wrong = {case for case, _ in usage}, []
    for case, allowed in budget.items():
        for loop, (launches, size) in allowed.items() if case in compiled else ():
            measured = usage.get((case, loop))
            if measured is None:
                wrong.append(f"{case}: no loop {loop}; the budget knows another program")
            elif measured[0] > launches or measured[1] > size:
                wrong.append(
                    f"{case}, {loop}: {measured[0]} launches and {measured[1]} B; at most {launches} and {size}"
                )
    return wrong


def dearer(kernels, budget):
    """Lines about kernels with more than ``{case: {fact: most}}``."""
    wrong = []
    for case, *facts, _ in kernels:
        for fact, count in zip(Kernel._fields, facts, strict=True):
            most = budget.get(case, {}).get(fact, count)
            if count > most:
                wrong.append(f"{case}: {count} {fact}; at most {most}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
