"""What is compiled: each engine with policies that differ in what a round does."""

from __future__ import annotations

import contextlib
from typing import Any

SLOTS = 1 << 14


def cases():
    """Name: (policy, environment, constraint, engine); ``batch-…``: of runs that take seconds."""
    import jax
    import numpy as np

    import jaxbandits as jb

    p, worlds, key = jb.policies, jb.environments, jax.random.key(0)
    ten, hundred = (worlds.random_bernoulli(key, instances=16, arms=arms) for arms in (10, 100))
    valley = worlds.cost_valley(np.full(4, 0.5), np.full(4, 0.5))
    ratios = worlds.Reservoir.ratio(key, instances=16, capacity=472, beta=np.full(16, 1.0))
    omega = p.OmegaUCB(rho=0.25)
    thompson = p.BudgetedThompson()
    zoom = p.BZoom(lam=0.5, lipschitz=11.7)
    counts, forfeits = (jb.TotalBudget(500.0, last_pull=way) for way in ("counts", "forfeits"))
    return {
        "scan-omega-10": (omega, ten, counts, "scan"),
        "scan-omega-100": (omega, hundred, counts, "scan"),
        "leap-omega-10": (omega, ten, counts, "leap"),
        "leap-omega-100": (omega, hundred, counts, "leap"),
        "scan-bts-10": (thompson, ten, counts, "scan"),
        "scan-bts-100": (thompson, hundred, counts, "scan"),
        "scan-klucbsc-10": (p.KLUCBSCPlus(), ten, counts, "scan"),
        "scan-suak-10": (
            p.SUAK(c=0.5),
            worlds.WithNullArm(ten),
            jb.AverageCost(c=0.5, rounds=5000),
            "scan",
        ),
        "leap-rcb-472": (p.SampledArms(p.RCB(), arms=472), ratios, forfeits, "leap"),
        "scan-bzoom": (zoom, valley, forfeits, "scan"),
        "merge-bzoom": (zoom, valley, forfeits, "auto"),
        "kernel-omega-10": (omega, ten, counts, "kernel"),
        "kernel-omega-100": (omega, hundred, counts, "kernel"),
        "kernel-bts-10": (thompson, ten, counts, "kernel"),
    }


# So begin the cases that must compute one score in one way
SAME_SCORE = ("scan-omega-", "leap-omega-")


def lowered(name: str, case: Any, slots: int, device: Any, options: dict[str, Any]) -> Any:
    """The driver's program for that device, not compiled, and the bytes of its state."""
    import jax
    import numpy as np
    from jax.sharding import SingleDeviceSharding

    from jaxbandits._engine import driver
    from jaxbandits._engine.setup import lay_out

    policy, environment, constraint, engine = case
    layout = lay_out(
        policy, environment, constraint, key=jax.random.key(0), replicates=slots, engine=engine
    )
    task = layout.tasks[0]
    seats = driver.seats_for(slots)
    lanes = task.lanes(np.zeros(seats, np.int64))
    pool = driver.blank(task, slots)
    limits = driver.CallLimits(*(np.int32(0) for _ in driver.CallLimits._fields))  # type: ignore[arg-type]
    arguments: Any = task.environment, lanes, np.zeros(seats, np.int32), np.int32(0), pool, limits
    place = SingleDeviceSharding(device)
    shapes = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype, sharding=place), arguments
    )
    play = jax.jit(
        driver.advance,
        static_argnames=("engine", "native"),
        donate_argnames=("pool",),
        compiler_options=options or None,
    )
    with _described(device):
        program = play.lower(task.engine, False, *shapes)
    return program, task.shapes.bytes(slots)


def _described(device: Any) -> Any:
    """Since jax 0.12 a kernel asks for which kind of device it is written, if none is there."""
    import jax

    if jax.__version_info__ < (0, 12) or device.platform != "gpu":
        return contextlib.nullcontext()
    from jax._src.mesh import AbstractDevice  # no public name yet

    axes = {"axis_types": (jax.sharding.AxisType.Auto,)}
    kind = AbstractDevice(device.device_kind, 132, "gpu")
    return jax.sharding.use_abstract_mesh(
        jax.sharding.AbstractMesh((1,), ("x",), abstract_device=kind, **axes)
    )
