"""The network: learned, repeatable, cached whole, and leaving the global generator alone."""

import numpy as np
import torch

from onbmacf.bench import network


def test_it_learns_the_small_task(small_task, small_network):
    trained, other = network.accuracy(small_network, small_task, seed=0)
    assert trained > 0.9
    assert other > 0.8


def test_the_same_seed_gives_the_same_network(small_task, small_network):
    again = network.train(small_task, seed=0)
    assert np.array_equal(again.scores(small_task.Z), small_network.scores(small_task.Z))


def test_another_seed_gives_another_network(small_task, small_network):
    other = network.train(small_task, seed=1)
    assert not np.array_equal(other.scores(small_task.Z), small_network.scores(small_task.Z))


def test_retrained_networks_are_others_and_are_kept(small_task, small_network, tmp_path, monkeypatch):
    first = network.retrained_networks(small_task, 0, 2, tmp_path)
    scores = [own.scores(small_task.Z) for own in (small_network, *first, network.train(small_task, seed=1))]
    assert len({one.tobytes() for one in scores}) == 4
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr(network, "train", None)  # would fail if called
    again = network.retrained_networks(small_task, 0, 2, tmp_path)
    assert all(np.array_equal(one, own.scores(small_task.Z)) for one, own in zip(scores[1:], again, strict=False))


def test_training_leaves_the_global_generator_alone(small_task):
    before = torch.get_rng_state()
    network.train(small_task, seed=3)
    assert torch.equal(before, torch.get_rng_state())


def test_a_cached_network_is_read_back_to_the_bit(small_task, tmp_path, monkeypatch):
    first = network.trained_network(small_task, 0, tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(network, "train", None)  # would fail if called
    second = network.trained_network(small_task, 0, tmp_path)
    assert np.array_equal(first.scores(small_task.Z), second.scores(small_task.Z))


def test_labels_follow_the_probability(small_task, small_network):
    probability = small_network.probability_of(small_task.Z)
    assert np.array_equal(small_network.label_of(small_task.Z), (probability > 0.5).astype(int))
