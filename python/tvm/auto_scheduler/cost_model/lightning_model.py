"""The latency model as a module of PyTorch Lightning, for those who train with its trainer."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
import torch

from .dataset import SegmentBatch
from .latency_model import LatencyModel

__all__ = ["MLPModelPLWrapper"]


class MLPModelPLWrapper(LatencyModel, pl.LightningModule):
    """A `LatencyModel` that ``pytorch_lightning.Trainer.fit`` takes, too.

    Its parameters, weights and files are the same. A search needs nothing of Lightning, which takes
    longer to import than the rest of felix together.
    """

    def training_step(self, batch: SegmentBatch, batch_idx: int) -> torch.Tensor:
        """One Lightning step; logs `train_loss`."""
        loss = self.loss(batch)
        self.log("train_loss", loss, batch_size=len(batch.labels))
        return loss

    def validation_step(self, batch: SegmentBatch, batch_idx: int) -> None:
        """Logs `val_loss` and the ranking metrics, averaged over the batch's tasks."""
        size = len(batch.labels)
        self.log("val_loss", self.loss(batch), batch_size=size)
        for name, value in self.ranking_metrics(batch).items():
            self.log(f"val_{name}", value, batch_size=size)

    def configure_optimizers(self) -> Any:
        """Adam with a learning rate that halves when the validation loss stalls."""
        optimizer, schedule = self._optimizer(self.lr)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "monitor": "val_loss"},
        }
