"""Mistakes made with optimizers, transpilers and parameter servers."""

from __future__ import annotations

import os

import numpy as np

import paddlelike as fluid
from paddlelike.incubate.fleet.base import role_maker
from paddlelike.incubate.fleet.parameter_server.distribute_transpiler import fleet
from tests.gallery.render import list_mistakes

__all__ = ["MISTAKES"]

layers = fluid.layers
SERVER = "127.0.0.1:6174"


def _make_loss() -> fluid.Variable:
    return layers.mean(layers.fc(fluid.data("x", [None, 4]), 3))


def _transpile(trainer_id: int = 0, trainers: int = 1) -> fluid.DistributeTranspiler:
    fluid.optimizer.SGD(0.1).minimize(_make_loss())
    job = fluid.DistributeTranspiler()
    job.transpile(trainer_id, pservers=SERVER, trainers=trainers)
    return job


def minimize_an_array() -> None:
    fluid.optimizer.SGD(0.1).minimize(np.ones([1], "float32"))


def minimize_twice() -> None:
    optimizer, loss = fluid.optimizer.Adam(0.1), _make_loss()
    optimizer.minimize(loss)
    optimizer.minimize(loss)


def clip_by_a_number() -> None:
    fluid.optimizer.SGD(0.1, grad_clip=5.0)


def regularize_by_a_number() -> None:
    fluid.optimizer.SGD(0.1, regularization=0.01).minimize(_make_loss())


def build_the_schedule_in_another_program() -> None:
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        rate = layers.exponential_decay(0.1, 100, 0.5)
    fluid.optimizer.SGD(rate).minimize(_make_loss())


def recompute_without_checkpoints() -> None:
    fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.1)).minimize(_make_loss())


def ask_an_optimizer_for_its_state() -> None:
    fluid.optimizer.Adam(0.1).state_dict()


def transpile_without_minimize() -> None:
    _make_loss()
    fluid.DistributeTranspiler().transpile(0, pservers=SERVER, trainers=1)


def transpile_twice() -> None:
    _transpile().transpile(0, pservers=SERVER, trainers=1)


def ask_for_programs_before_transpile() -> None:
    fluid.DistributeTranspiler().get_trainer_program()


def give_the_servers_as_a_list() -> None:
    fluid.optimizer.SGD(0.1).minimize(_make_loss())
    fluid.DistributeTranspiler().transpile(0, pservers=[SERVER], trainers=1)


def give_a_server_without_a_port() -> None:
    fluid.optimizer.SGD(0.1).minimize(_make_loss())
    fluid.DistributeTranspiler().transpile(0, pservers="127.0.0.1", trainers=1)


def give_the_number_of_trainers_as_text() -> None:
    fluid.optimizer.SGD(0.1).minimize(_make_loss())
    fluid.DistributeTranspiler().transpile(0, pservers=SERVER, trainers="2")


def number_the_trainers_from_one() -> None:
    _transpile(trainer_id=2, trainers=2).get_trainer_program()


def train_before_the_servers_are_started() -> None:
    flag = "FLAGS_rpc_deadline"
    os.environ[flag] = "50"  # milliseconds
    try:
        _transpile().get_trainer_program()
    finally:
        del os.environ[flag]


def save_on_a_server() -> None:
    job = _transpile()
    fluid.io.save_persistables(fluid.Executor(), "model", job.get_pserver_program(SERVER))


def train_by_collectives() -> None:
    config = fluid.DistributeTranspilerConfig()
    config.mode = "nccl2"
    fluid.DistributeTranspiler(config).transpile(0, trainers=2)


def misspell_an_option_of_the_config() -> None:
    config = fluid.DistributeTranspilerConfig()
    config.slice_var_upp = False


def start_a_role_without_its_environment() -> None:
    fleet.init(role_maker.PaddleCloudRoleMaker())


def use_fleet_before_init() -> None:
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(_make_loss())


def give_a_worker_an_id_behind_the_last() -> None:
    role = role_maker.UserDefinedRoleMaker(2, role_maker.Role.WORKER, worker_num=2, server_endpoints=[SERVER])
    fleet.init(role)


def misspell_a_keyword_of_an_optimizer() -> None:
    fluid.optimizer.Adam(learning_rat=0.1)


def name_the_rate_as_others_do() -> None:
    fluid.optimizer.Momentum(lr=0.1, momentum=0.9)


def step_an_optimizer() -> None:
    optimizer = fluid.optimizer.SGD(0.1)
    optimizer.minimize(_make_loss())
    optimizer.step()


def minimize_with_two_optimizers() -> None:
    loss = _make_loss()
    fluid.optimizer.SGD(0.1).minimize(loss)
    fluid.optimizer.SGD(0.01).minimize(loss)


MISTAKES = list_mistakes(globals())
