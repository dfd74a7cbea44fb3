"""The latency model as a module of PyTorch Lightning, for those who train with its trainer."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
import torch

from .dataset import SegmentBatch
from .latency_model import LatencyModel
from .tensor_file import load_tensors

__all__ = ["MLPModelPLWrapper"]


class MLPModelPLWrapper(LatencyModel, pl.LightningModule):
    """A `LatencyModel` that ``pytorch_lightning.Trainer.fit`` takes, too.

    Its parameters, weights and files are the same. A search needs nothing of Lightning, which takes
    longer to import than the rest of felix together.
    """

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path: Any, *args: Any, **kwargs: Any) -> Any:
        """The model of a file, one of `save` or of Lightning's own.

        Parameters
        ----------
        args, kwargs : those of Lightning, for files of its own; for others parameters of the class
            by name.

        Raises
        ------
        FileNotFoundError : there is no such file.
        ValueError : it is neither.
        """
        content = load_tensors(checkpoint_path)
        if isinstance(content, dict) and "pytorch-lightning_version" in content:
            weights = content.get("state_dict", {})
            mean = weights.get("model.mean")
            if mean is not None:
                kwargs.setdefault("n_features", len(mean))
            return super().load_from_checkpoint(checkpoint_path, *args, **kwargs)
        return cls(**{**kwargs, "pretrained": checkpoint_path})

    def training_step(self, batch: SegmentBatch, batch_idx: int) -> torch.Tensor:
        """One Lightning step; logs `train_loss`."""
        loss = self.loss(batch)
        self.log("train_loss", loss, batch_size=len(batch.labels))
        return loss

    def validation_step(self, batch: SegmentBatch, batch_idx: int) -> None:
        """Logs `val_loss` and the metrics, averaged over the batch's tasks."""
        size = len(batch.labels)
        self.log("val_loss", self.loss(batch), batch_size=size)
        for name, value in self.metrics(batch).items():
            self.log(f"val_{name}", value, batch_size=size)

    def configure_optimizers(self) -> Any:
        """Adam with a learning rate that halves when the validation loss stalls."""
        optimizer, schedule = self._optimizer(self.lr)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "monitor": "val_loss"},
        }
