"""How sensitive is RCUCB to α? On G1, our stand-in for the paper's unpublished instances (three
given instances).

jaxbandits sweep docs/examples/sweep_alpha_censored.py --out sweep-alpha-censored
"""

import numpy as np

import jaxbandits as jb

ALPHA = np.geomspace(0.003, 3.0, 13)

sweep = jb.Sweep(
    title="Sensitivity of RCUCB to α on G1 (a stand-in of ours, not the paper's instances)",
    policies=[jb.policies.RCUCB(survival, alpha=ALPHA) for survival in ("legal", "kaplan_meier")],
    environments={name: jb.environments.g1([name]) for name in ("PosCorr", "NegCorr", "Indep")},
    constraint=jb.Horizon(20_000),
    replicates=40,
)
