"""The distribution of ω-UCB's regret by ρ: what the mean of 100 instances does not show.

    python -m experiments omega_ucb_tails [--quick|--full] [--only ITEM] [--out DIR]

Items: one for each setting of the ω-UCB paper (S-Br-10 to S-Bt-100: 16 values of ρ, and m-UCB, at the paper's budget
and at a tenth of it), ``above`` (K = 10, five values of ρ, ten times the budget), ``BTS``, ``others`` (ω*-UCB, and on
Bernoulli arms the paper's other competitors), ``seldom`` (policies that the paper does not play; S-Br-10, a tenth of
the budget), and ``tails`` (tails.csv and the pictures, of all that the others play). What was played is kept in
``DIR/runs`` and not played again with the same ``--out``, so a run may be cut into pieces.
"""

from __future__ import annotations

from collections.abc import Sequence

from experiments.common.rows import Row, row
from experiments.common.running import Experiment, Item, Options
from experiments.omega_ucb_tails.play import LAWS, REST, SELDOM, SETTINGS, WIDTHS, Job, played
from experiments.omega_ucb_tails.report import by_budget, by_rho, lottery, tables


def _item(jobs: Sequence[Job]) -> Item:
    def item(options: Options) -> list[Row]:
        rows = []
        for job in jobs:
            found = played(job, options)
            text = f"{found.regret.shape[1]} instances, {found.rounds:.3g} rounds"
            rows.append(row(f"{job.setting}, {job.policy}, decade {job.decade}: seconds", found.seconds, note=text))
        return rows

    return item


OF_SETTING = {s: [Job(s, policy, decade) for policy in ("ω-UCB", "m-UCB") for decade in (0, -1)] for s in SETTINGS}
ABOVE = [Job(f"{law}-10", "ω-UCB", 1) for law in LAWS]
OTHERS = [
    *(Job(f"S-Br-{arms}", policy, 0) for policy in REST for arms in WIDTHS),
    # on Bernoulli arms ω*-UCB is ω-UCB
    *(Job(f"{law}-{arms}", "ω*-UCB", 0) for law in ("S-GBr", "S-Bt") for arms in WIDTHS),
]
TABLE = [Job("S-Br-10", policy, -1) for policy in ("c-UCB", "i-UCB", "b-greedy", "UCB-SC+", *SELDOM)]
THOMPSON = [Job(setting, "BTS", 0) for setting in SETTINGS] + [Job("S-Br-10", "BTS", -1)]


def tails(options: Options) -> list[Row]:
    """Tables and pictures of everything; of one setting in a quick run."""
    settings = options.pick(SETTINGS[:1], SETTINGS, SETTINGS)
    jobs = [job for s in settings for job in OF_SETTING[s]]
    if not options.quick:
        jobs += [*ABOVE, *THOMPSON, *OTHERS, *TABLE]
        by_budget(options)
    by_rho(options, settings)
    lottery(options)
    return tables(jobs, options)


EXPERIMENT = Experiment(
    "omega_ucb_tails",
    {
        **{setting: _item(jobs) for setting, jobs in OF_SETTING.items()},
        "above": _item(ABOVE),
        "BTS": _item(THOMPSON),
        "others": _item(OTHERS),
        "seldom": _item(TABLE),
        "tails": tails,
    },
    not_in_quick=(*SETTINGS[1:], "above", "BTS", "others", "seldom"),
)
