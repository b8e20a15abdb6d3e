"""What is compiled: each engine with policies that differ in what a round does."""

from __future__ import annotations

from typing import Any

SLOTS = 1 << 14


def cases():
    """Name: a function that makes (policy, environment, constraint, engine)."""
    import jax
    import numpy as np

    import jaxbandits as jb

    p, worlds, key = jb.policies, jb.environments, jax.random.key(0)

    def bernoulli(arms):
        return worlds.random_bernoulli(key, instances=16, arms=arms)

    def budget(last_pull="counts"):
        return jb.TotalBudget(500.0, last_pull=last_pull)

    def finite(policy, arms, engine):
        return lambda: (policy, bernoulli(arms), budget(), engine)

    def zoom(engine):
        def made():
            valley = worlds.cost_valley(np.full(4, 0.5), np.full(4, 0.5))
            return p.BZoom(lam=0.5, lipschitz=11.7), valley, budget("forfeits"), engine

        return made

    def anytime():
        return p.SUAK(c=0.5), worlds.WithNullArm(bernoulli(10)), jb.AverageCost(c=0.5, rounds=5000), "scan"

    def many():
        ratios = worlds.Reservoir.ratio(key, instances=16, capacity=472, beta=np.full(16, 1.0))
        return p.SampledArms(p.RCB(), arms=472), ratios, budget("forfeits"), "leap"

    omega, thompson = p.OmegaUCB(rho=0.25), p.BudgetedThompson()
    return {
        "scan-omega-10": finite(omega, 10, "scan"),
        "scan-omega-100": finite(omega, 100, "scan"),
        "leap-omega-10": finite(omega, 10, "leap"),
        "leap-omega-100": finite(omega, 100, "leap"),
        "scan-bts-10": finite(thompson, 10, "scan"),
        "scan-bts-100": finite(thompson, 100, "scan"),
        "scan-klucbsc-10": finite(p.KLUCBSCPlus(), 10, "scan"),
        "scan-suak-10": anytime,
        "leap-rcb-472": many,
        "scan-bzoom": zoom("scan"),
        "merge-bzoom": zoom("auto"),
    }


SAME_SCORE = ("scan-omega-", "leap-omega-")
"""Cases that must compute one score in one way, wherever it stands: so begin their names."""


def lowered(made: Any, slots: int, device: Any, options: dict[str, Any]) -> Any:
    """The driver's program for that device, not compiled yet, and the bytes of its state; only shapes are given."""
    import jax
    import numpy as np
    from jax.sharding import SingleDeviceSharding

    from jaxbandits._engine import blanks, drive
    from jaxbandits._engine.layout import lay_out

    policy, environment, constraint, engine = made
    layout = lay_out(policy, environment, constraint, key=jax.random.key(0), replicates=slots, engine=engine)
    task = layout.tasks[0]
    seats = blanks.SEATS_PER_SLOT * slots
    lanes = task.lanes(np.zeros(seats, np.int64))
    pool = blanks.blank(task.engine, slots, blanks.blank_shapes(slots, task.environment, lanes, task.root))
    limits = drive.CallLimits(*(np.int32(0) for _ in drive.CallLimits._fields))  # type: ignore[arg-type]
    given = task.environment, lanes, task.root, np.zeros(seats, np.int32), np.int32(0), pool, limits
    place = SingleDeviceSharding(device)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype, sharding=place), given)
    named: Any = {"static_argnames": ("engine",), "donate_argnames": ("pool",)}
    program = jax.jit(drive.advance, **named, compiler_options=options or None).lower(task.engine, *shapes)
    return program, blanks.state_bytes(task, slots)
