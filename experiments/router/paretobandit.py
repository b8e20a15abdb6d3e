"""ParetoBandit itself, from its own package, in a plain loop over the prompts that our lanes meet."""

from __future__ import annotations

import json
import logging
import warnings
from typing import Any

import numpy as np

from experiments.router.data import MODELS, Split


def pca_features(vectors: np.ndarray) -> np.ndarray:
    """ParetoBandit's features of ``[N, 384]``: its 25 principal components, and a constant."""
    from pareto_bandit.config import DEFAULT_PCA_PATH
    from pareto_bandit.feature_service import FeatureService

    places = {str(i): vectors[i] for i in range(len(vectors))}
    with warnings.catch_warnings():
        # Its components were pickled by another version of scikit-learn
        warnings.simplefilter("ignore")
        service = FeatureService(
            custom_encoder=places.__getitem__,
            embedding_dim=vectors.shape[1],
            pca_path=str(DEFAULT_PCA_PATH),
        )
        return np.asarray(service.extract_features_batch(list(places)), np.float64)


def choices(
    features: np.ndarray,
    requests: Split,
    order: np.ndarray,
    budget: float,
    seed: int,
    dearest: np.ndarray | None = None,
) -> np.ndarray:
    """The model that the router chooses for each request of ``order``, learning from each before
    the next, ``i64[round]``.

    With the package's parameters, priors (from 8,374 other prompts) and pacer, as in its demo of
    budgets: mode adaptive, no static penalty, ``budget`` dollars a request. ``requests`` and
    ``features`` [N, D] hold both splits. ``dearest`` [round] is what the price of the last model is
    multiplied by; where it is not 1 the router is told $0.10 for a million tokens, as in its own
    study of prices.
    """
    from pareto_bandit.budget_pacer import BudgetPacer, PacingMode
    from pareto_bandit.config import BEST_K3_HPARAMS, DEFAULT_MODEL_REGISTRY_PATH
    from pareto_bandit.feature_service import FeatureService
    from pareto_bandit.router import BanditRouter
    from pareto_bandit.storage import EphemeralContextStore

    logging.getLogger("pareto_bandit").setLevel(logging.ERROR)
    registry = _registry(DEFAULT_MODEL_REGISTRY_PATH)
    router: Any = BanditRouter.create(
        model_registry=registry,
        feature_service=FeatureService.for_precomputed(features.shape[1]),
        context_store=EphemeralContextStore(),
        priors="warmup",
        prior_n_effective=BEST_K3_HPARAMS["prior_n_effective"],
        alpha=BEST_K3_HPARAMS["alpha"],
        forgetting_factor=BEST_K3_HPARAMS["forgetting_factor"],
        cost_penalty=0.0,
        budget_pacer=BudgetPacer(target_avg_spend_usd=budget, mode=PacingMode.ADAPTIVE),
        bandit_seed=seed,
    )
    number, name = {model: k for k, model in enumerate(MODELS.values())}, list(MODELS.values())[-1]
    factor = np.ones(len(order)) if dearest is None else dearest
    usual, low = [registry[name][key] for key in KEYS], [0.1, 0.1]
    models = np.zeros(len(order), np.int64)
    for t, i in enumerate(order):
        if t and factor[t] != factor[t - 1]:
            prices = usual if factor[t] == 1 else low
            router.update_model_pricing(name, **dict(zip(KEYS, prices, strict=True)))
        model, log = router.route(features[i])
        models[t] = k = number[model]
        log.cost_usd = float(requests.dollars[i, k]) * (factor[t] if model == name else 1.0)
        router.process_feedback(log.request_id, reward=float(requests.quality[i, k]))
    return models


KEYS = ("input_cost_per_m", "output_cost_per_m")


def _registry(path: Any) -> dict[str, Any]:
    models = [m for m in json.loads(path.read_text())["models"] if m["model_id"] in MODELS.values()]
    return {
        m["model_id"]: {"model_id": m["model_id"], "display_name": m["display"]}
        | {key: m[key] for key in KEYS}
        for m in models
    }
