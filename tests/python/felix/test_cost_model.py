"""The cost model learns, keeps its best weights, and reads only its own files."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import pytorch_lightning
import torch

from tvm.auto_scheduler.cost_model.dataset import ConfigMeta, DatasetBuilder, FeatureKind
from tvm.auto_scheduler.cost_model.latency_model import LOSSES
from tvm.auto_scheduler.cost_model.lightning_model import MLPModelPLWrapper
from tvm.auto_scheduler.cost_model.metric import (
    pair_accuracy,
    peak_score,
    spearman,
    spearman_top,
)
from tvm.auto_scheduler.search_space import learned_feature_names
from tvm.felix.checkpoint import packaged_checkpoint
from tvm.felix.pretrain import train_mlp
from tvm.felix.settings import SearchBudget
from tvm.felix.task_model import network_share
from tvm.target import Target
from tvm.target.machine import host_cpu


def made_up_programs(n: int, n_features: int = 12, n_tasks: int = 3, seed: int = 0):
    """Programs of two stores whose throughput is a smooth function of their features."""
    rng = np.random.default_rng(seed)
    data = DatasetBuilder()
    weight = np.random.default_rng(99).normal(size=n_features)
    for i in range(n):
        features = rng.normal(size=(2, n_features))
        gflops = np.exp(np.tanh(features.sum(0) @ weight / 4) * 2)
        meta = ConfigMeta(f"task{i % n_tasks}", 0, {"sp_0_0": i}, 1e-3)
        assert data.add(features, gflops * 1e9 * 1e-3, meta)
    return data


@pytest.mark.parametrize("loss", LOSSES)
def test_training_lowers_every_loss_on_a_small_data_set(loss):
    data = made_up_programs(64)
    model = MLPModelPLWrapper(loss_func=loss)
    model.ensure_built(12, torch.from_numpy(np.vstack(data.features)))
    before = model.loss(data.batch()).item()
    model.train_self(data, n_steps=150, lr=1e-3, hold_out=0.0)
    assert model.loss(data.batch()).item() < 0.7 * before


def test_training_ranks_unseen_programs():
    model = MLPModelPLWrapper()
    model.train_self(made_up_programs(400), n_steps=400, lr=1e-3)
    metrics = model.metrics(made_up_programs(200, seed=1).batch())
    assert metrics["spearman"] > 0.7
    assert metrics["peak_score@5"] > 0.7


def test_pre_training_writes_a_checkpoint_that_ranks_unseen_tasks(tmp_path):
    model = MLPModelPLWrapper(lr=3e-3)
    metrics = train_mlp(
        made_up_programs(300, n_tasks=6),
        model,
        tmp_path / "model.ckpt",
        train_ratio=0.8,
        epochs=40,
        log_folder=tmp_path / "logs",
        progress=False,
    )
    assert metrics["spearman"] > 0.7
    again = MLPModelPLWrapper(pretrained=tmp_path / "model.ckpt")
    assert torch.equal(model(torch.ones(1, 2, 12)), again(torch.ones(1, 2, 12)))
    assert list((tmp_path / "logs").rglob("events*"))


def test_the_model_is_a_lightning_module_that_any_trainer_trains(tmp_path):
    data = made_up_programs(64)
    model = MLPModelPLWrapper(lr=3e-3)
    model.ensure_built(12, torch.from_numpy(np.vstack(data.features)))
    before = model.loss(data.batch()).item()
    trainer = pytorch_lightning.Trainer(
        max_epochs=10,
        accelerator="cpu",
        default_root_dir=tmp_path,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    batches = torch.utils.data.DataLoader([data.batch()], batch_size=None)
    trainer.fit(model, batches, batches)
    assert model.loss(data.batch()).item() < before
    assert {"val_loss", "val_spearman"} <= trainer.callback_metrics.keys()


def test_checkpoints_of_either_kind_are_loaded_as_lightning_does(tmp_path):
    data = made_up_programs(64)
    model = MLPModelPLWrapper(n_features=12)
    trainer = pytorch_lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        default_root_dir=tmp_path,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    batches = torch.utils.data.DataLoader([data.batch()], batch_size=None)
    trainer.fit(model, batches, batches)
    trainer.save_checkpoint(tmp_path / "lightning.ckpt")
    model.save(tmp_path / "ours.ckpt")
    rows = torch.ones(1, 2, 12)
    for name in ("lightning.ckpt", "ours.ckpt"):
        again = MLPModelPLWrapper.load_from_checkpoint(tmp_path / name)
        assert torch.equal(again(rows), model(rows))
    with pytest.raises(FileNotFoundError):
        MLPModelPLWrapper.load_from_checkpoint(tmp_path / "none.ckpt")
    (tmp_path / "text.ckpt").write_text("no checkpoint")
    with pytest.raises(ValueError, match="no file of tensors"):
        MLPModelPLWrapper.load_from_checkpoint(tmp_path / "text.ckpt")


def test_what_comes_with_the_package_says_what_of_it_is_of_older_sketches(tmp_path, caplog):
    caplog.set_level("INFO")
    model = MLPModelPLWrapper(pretrained=packaged_checkpoint())
    metas = model.replay.conf_meta
    assert all(meta.target and meta.sketch >= 0 for meta in metas) and not caplog.text
    metas[0] = replace(metas[0], sketch=-1)
    model.save(tmp_path / "older.ckpt")
    MLPModelPLWrapper(pretrained=tmp_path / "older.ckpt")
    assert f"1 of its {len(metas)} programs are points of no sketch of this version" in caplog.text
    # A data set of other features beside a checkpoint is refused, not learned from.
    model.save(tmp_path / "model.ckpt")
    model.replay.kind = FeatureKind("cpu", "another")
    model.replay.save(tmp_path / "model.replay.npz")
    with pytest.raises(ValueError, match=r"model\.replay\.npz has features of another kind"):
        MLPModelPLWrapper(pretrained=tmp_path / "model.ckpt")


def test_training_keeps_the_weights_that_were_best_on_other_programs():
    data = made_up_programs(64)
    model = MLPModelPLWrapper(n_features=12)
    check = data.select(list(range(16))).batch()
    seen = []
    kept = model.descend(
        ([data.select([i]).batch()] for i in range(16, 40)),
        check,
        lr=0.05,
        on_round=lambda training_loss, loss: seen.append(loss),
    )
    assert len(seen) == 24
    assert kept <= min(seen) + 2e-4
    assert model.loss(check).item() == pytest.approx(kept, rel=1e-6)
    stopped = []
    model.descend(
        ([data.select([16]).batch()] for _ in range(50)),
        check,
        lr=0.0,
        patience=3,
        on_round=lambda training_loss, loss: stopped.append(loss),
    )
    assert len(stopped) == 3


def test_training_keeps_a_redirected_stream_free_of_its_bar(tmp_path, capfd):
    train_mlp(
        made_up_programs(60, n_tasks=3),
        MLPModelPLWrapper(),
        tmp_path / "model.ckpt",
        train_ratio=0.7,
        epochs=2,
    )
    assert "epoch" not in capfd.readouterr().err


def test_a_trained_model_is_trained_further_from_what_it_knows(tmp_path):
    known, new = made_up_programs(120, n_tasks=6), made_up_programs(60, n_tasks=6, seed=5)
    first = MLPModelPLWrapper()
    train_mlp(known, first, tmp_path / "first.ckpt", epochs=30, progress=False)
    again = MLPModelPLWrapper(pretrained=tmp_path / "first.ckpt")
    further = train_mlp(new, again, tmp_path / "again.ckpt", epochs=1, progress=False)
    afresh = train_mlp(new, MLPModelPLWrapper(), tmp_path / "new.ckpt", epochs=1, progress=False)
    assert further["val_loss"] < afresh["val_loss"]
    # Its inputs mean what they meant, and its card is of what it learned last.
    assert again.model is not None and first.model is not None
    assert torch.equal(again.model.mean, first.model.mean)
    assert again.card["programs"] < first.card["programs"]


def test_pre_training_on_a_single_task_is_refused(tmp_path):
    with pytest.raises(ValueError, match="more tasks or another train_ratio"):
        train_mlp(made_up_programs(20, n_tasks=1), MLPModelPLWrapper(), tmp_path / "model.ckpt")


def test_programs_packed_by_segments_score_like_the_same_programs_alone():
    data = made_up_programs(5)
    model = MLPModelPLWrapper(n_features=12)
    packed = model.model.forward_segments(data.batch())
    alone = torch.stack([model(torch.from_numpy(f)[None])[0] for f in data.features])
    assert torch.allclose(packed, alone, atol=1e-5)


def test_a_saved_model_predicts_the_same_after_loading(tmp_path):
    data = made_up_programs(32)
    model = MLPModelPLWrapper()
    model.train_self(data, n_steps=20)
    model.save(tmp_path / "model.ckpt")
    again = MLPModelPLWrapper(pretrained=tmp_path / "model.ckpt")
    features = torch.from_numpy(np.stack(data.features))
    assert torch.equal(model(features), again(features))


def test_equal_seeds_train_equal_models():
    results = []
    for _ in range(2):
        model = MLPModelPLWrapper(seed=3)
        model.train_self(made_up_programs(40), n_steps=20)
        results.append(model(torch.ones(1, 2, 12)))
    assert torch.equal(*results)


# Of registers of 512, 256 and 128 bits, which have another processor's network, and no processor.
PROCESSORS = {"znver4": "512", "znver3": "256", "x86-64": "256"}


@pytest.mark.parametrize("cpu", PROCESSORS)
def test_the_packaged_checkpoint_is_of_processors_like_the_target(cpu):
    target = Target(f"llvm -mcpu={cpu}")
    found = packaged_checkpoint(target)
    assert found == packaged_checkpoint(f"llvm -mcpu={cpu}") and PROCESSORS[cpu] in found.name
    assert SearchBudget().checkpoint(target) == found
    model = SearchBudget().model(target)
    assert model.trained and model.card["tasks"] > 100
    model.ensure_built(len(learned_feature_names("llvm", "felix")))
    at_home = network_share(model, target) == network_share(model, Target("llvm -mcpu=znver5"))
    assert at_home == (cpu != "x86-64")


def test_no_packaged_checkpoint_is_of_a_gpu():
    target = Target("nvidia/nvidia-a100")
    assert packaged_checkpoint(target) is None
    assert SearchBudget().checkpoint(target) is None
    assert not SearchBudget().model(target).trained


def test_a_checkpoint_with_other_features_is_refused_with_the_way_out():
    model = MLPModelPLWrapper(n_features=12)
    with pytest.raises(ValueError, match="takes 12 features a row but the tasks have 13"):
        model.ensure_built(13)


def trained_for(kind, path):
    model = MLPModelPLWrapper()
    model.expect(kind)
    model.train_self(made_up_programs(32), n_steps=20)
    model.save(path)
    return MLPModelPLWrapper(pretrained=path)


def test_a_checkpoint_says_its_targets_and_features_and_others_are_refused(tmp_path):
    kind = FeatureKind.of("cpu", ["loads", "stores"])
    model = trained_for(kind, tmp_path / "model.ckpt")
    model.expect(kind)
    with pytest.raises(ValueError, match="model.ckpt is for cpu targets, the tasks are for a gpu"):
        model.expect(FeatureKind("gpu", kind.version))
    with pytest.raises(ValueError, match=f"another version \\({kind.version}, the tasks'"):
        model.expect(FeatureKind.of("cpu", ["stores", "loads"]))
    unnamed = MLPModelPLWrapper(n_features=12)
    unnamed.save(tmp_path / "unnamed.ckpt")
    with pytest.raises(ValueError, match="another version \\(unnamed"):
        MLPModelPLWrapper(pretrained=tmp_path / "unnamed.ckpt").expect(kind)


def test_programs_kept_beside_a_checkpoint_are_replayed_by_who_loads_it(tmp_path):
    train_mlp(
        made_up_programs(120, n_tasks=6),
        MLPModelPLWrapper(),
        tmp_path / "model.ckpt",
        epochs=2,
        replay=50,
        progress=False,
    )
    model = MLPModelPLWrapper(pretrained=tmp_path / "model.ckpt")
    assert len(model.replay) == 50
    best = {
        task: max(made_up_programs(120, n_tasks=6).labels[i::6]) for i, task in enumerate("012345")
    }
    for group in {m.task for m in model.replay.conf_meta}:
        kept = [y for y, m in zip(model.replay.labels, model.replay.conf_meta) if m.task == group]
        assert max(kept) == best[group.removeprefix("task")]
    model.train_self(made_up_programs(32, seed=4), n_steps=20)
    assert MLPModelPLWrapper(pretrained=packaged_checkpoint()).replay.kind is not None


def test_a_checkpoint_says_what_it_learned_from_and_how_well_it_ranks_the_rest(tmp_path):
    metrics = train_mlp(
        made_up_programs(120, n_tasks=6),
        MLPModelPLWrapper(),
        tmp_path / "model.ckpt",
        train_ratio=0.67,
        epochs=2,
        progress=False,
    )
    model = MLPModelPLWrapper(pretrained=tmp_path / "model.ckpt")
    card = model.card
    assert (card["programs"], card["held_out_programs"]) == (80, 40)
    assert (card["tasks"], card["held_out_tasks"]) == (4, 2)
    assert {name: card[name] for name in metrics} == metrics
    assert {"val_loss", "spearman", "spearman_top", "peak_score@1"} <= set(metrics)
    assert card["processor"] == host_cpu()[0]
    # Further training makes another model, of which the figures would not be true.
    model.train_self(made_up_programs(32, seed=4), n_steps=1)
    assert model.card == {}


def test_training_holds_out_programs_even_of_few(monkeypatch):
    seen = []
    model = MLPModelPLWrapper(n_features=12)

    def descend(rounds, check, **_):
        seen.append((next(iter(next(iter(rounds)))).features, check.features))
        return 0.0

    monkeypatch.setattr(model, "descend", descend)
    for n in (6, 24, 79, 200):
        model.train_self(made_up_programs(n))
    for (trained, held), n_held in zip(seen, (2, 8, 8, 20)):
        assert len(held) == 2 * n_held
        assert not {tuple(row) for row in trained.tolist()} & {tuple(row) for row in held.tolist()}


def test_a_foreign_file_is_refused(tmp_path):
    torch.save({"a": 1}, tmp_path / "other.ckpt")
    with pytest.raises(ValueError, match="not a cost-model checkpoint"):
        MLPModelPLWrapper(pretrained=tmp_path / "other.ckpt")
    with pytest.raises(FileNotFoundError, match="missing.ckpt does not exist"):
        MLPModelPLWrapper(pretrained=tmp_path / "missing.ckpt")


def test_an_unknown_loss_is_refused_and_the_known_ones_listed():
    with pytest.raises(ValueError, match="log_mse, mse, rank, relative"):
        MLPModelPLWrapper(loss_func="mae")


def test_a_data_set_reads_back_what_was_written(tmp_path):
    data = made_up_programs(7)
    data.save(tmp_path / "data.npz")
    again = DatasetBuilder.load(tmp_path / "data.npz")
    assert again.conf_meta == data.conf_meta
    assert again.labels == pytest.approx(data.labels)
    assert all((a == b).all() for a, b in zip(again.features, data.features))


def test_a_data_set_split_by_task_shares_no_task():
    train, rest = made_up_programs(30, n_tasks=6).split_by_task(0.5, np.random.default_rng(0))
    assert len(train) + len(rest) == 30
    assert not {m.task for m in train.conf_meta} & {m.task for m in rest.conf_meta}


def test_programs_with_infinite_features_are_left_out():
    data = DatasetBuilder()
    meta = ConfigMeta("t", 0, {}, 1e-3)
    assert not data.add(np.array([[np.inf, 0.0]]), 1e6, meta)
    assert len(data) == 0


def test_data_sets_of_different_features_are_not_put_together():
    data, other = made_up_programs(4), made_up_programs(4)
    data.kind, other.kind = FeatureKind("cpu", "a"), FeatureKind("gpu", "a")
    with pytest.raises(ValueError, match="do not go with"):
        data.extend(other)


def test_the_order_of_the_fastest_programs_alone_is_measured():
    measured = np.arange(200.0)
    predicted = measured.copy()
    predicted[:180] = 0.0
    assert spearman_top(predicted, measured) == pytest.approx(1.0)
    predicted[180:] = -predicted[180:]
    assert spearman_top(predicted, measured) == pytest.approx(-1.0)


def test_metrics_reach_their_best_for_perfect_and_their_worst_for_reversed_order():
    measured = np.array([1.0, 4.0, 2.0, 3.0])
    assert spearman(measured, measured) == pytest.approx(1.0)
    assert spearman(-measured, measured) == pytest.approx(-1.0)
    assert pair_accuracy(measured, measured) == 1.0
    assert peak_score(measured, measured, 2) == 1.0
    assert peak_score(-measured, measured, 1) == 0.25


def test_a_search_imports_nothing_of_lightning():
    code = (
        "import sys, tvm.felix.tuning\n"
        "print({'pytorch_lightning', 'scipy.stats'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_programs_to_replay_come_eight_of_a_task(tmp_path):
    model = MLPModelPLWrapper()
    data = made_up_programs(120, n_tasks=6)
    train_mlp(
        data, model, tmp_path / "m.ckpt", train_ratio=0.7, epochs=1, replay=16, progress=False
    )
    _, counts = np.unique(model.replay.groups(), return_counts=True)
    assert counts.tolist() == [8, 8]
