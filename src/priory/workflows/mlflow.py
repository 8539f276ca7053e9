"""An MLflow flavour: log a model, load it as what it was, or predict through ``mlflow.pyfunc``.

    from priory.workflows import mlflow as priory_mlflow

    priory_mlflow.log_model(model, "filter")
    priory_mlflow.load_model("models:/filter/1")     # with explain, learn and forget
    mlflow.pyfunc.load_model("models:/filter/1")     # with predict

What is logged is the model file: arrays and JSON, no code. mlflow is imported when it is used.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import priory
from priory.errors import import_extra
from priory.storage import load, save

FLAVOUR = "priory"
MODEL_FILE = "model.priory"
import_mlflow = partial(import_extra, "mlflow", "an MLflow model needs mlflow", "mlflow")


class PyfuncModel:
    """The object that ``mlflow.pyfunc`` calls."""

    def __init__(self, model: Any, method: str) -> None:
        self.model, self.method = model, method

    def predict(self, model_input: object, params: dict[str, object] | None = None) -> object:
        """The answers of the method that the model was saved with."""
        return getattr(self.model, self.method)(model_input)


def save_model(
    model: Any, path: str | Path, *, predict_method: str = "predict", mlflow_model: Any = None, signature: Any = None
) -> None:
    """Write a model into a new folder as MLflow reads it.

    Parameters
    ----------
    model : estimator
        A fitted model that `priory.save` can write.
    path : str or Path
        The folder, which must not exist.
    predict_method : str
        What ``predict`` of ``mlflow.pyfunc`` calls, such as "predict_proba".
    mlflow_model, signature : optional
        The entry that MLflow has begun, and the columns of the model as ``mlflow.models.infer_signature`` has them.
    """
    mlflow = import_mlflow()
    folder = Path(path)
    folder.mkdir(parents=True)
    save(model, folder / MODEL_FILE)
    entry = mlflow.models.Model() if mlflow_model is None else mlflow_model
    if signature is not None:
        entry.signature = signature
    entry.add_flavor(FLAVOUR, data=MODEL_FILE, priory_version=priory.__version__)
    mlflow.pyfunc.add_to_model(
        entry, loader_module=__name__, data=MODEL_FILE, model_config={"predict_method": predict_method}
    )
    (folder / "requirements.txt").write_text(f"priory=={priory.__version__}\nmlflow=={mlflow.__version__}\n")
    entry.save(str(folder / "MLmodel"))


def log_model(model: Any, name: str, **options: Any) -> Any:
    """Log a model into the active run; ``options`` are passed to `save_model` and ``mlflow.models.Model.log``."""
    mlflow = import_mlflow()
    return mlflow.models.Model.log(artifact_path=None, flavor=sys.modules[__name__], model=model, name=name, **options)


def load_model(model_uri: str) -> Any:
    """Load a saved or logged model as a Priory model, which explains, learns and forgets."""
    folder = Path(import_mlflow().artifacts.download_artifacts(artifact_uri=str(model_uri)))
    return load(folder / MODEL_FILE)


def _load_pyfunc(path: str, model_config: dict[str, str] | None = None) -> PyfuncModel:
    """Called by ``mlflow.pyfunc`` with the path of the model file."""
    return PyfuncModel(load(path), (model_config or {}).get("predict_method", "predict"))
