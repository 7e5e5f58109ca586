"""Settings come from the environment; a value that is not understood is refused by name."""

from __future__ import annotations

import pytest

from paddlelike.distributed.option_parser import Parser
from paddlelike.distributed.settings import Settings
from paddlelike.errors import RoleError


def test_the_defaults_match_fluid() -> None:
    settings = Settings.from_environment({})
    limits = settings.limits
    assert (limits.window, limits.barrier, limits.attempts) == (180.0, 900.0, 3)
    assert (settings.lease, settings.log_every, settings.rollback, settings.job) == (30.0, 60.0, False, "")


def test_flags_are_read_in_their_units() -> None:
    settings = Settings.from_environment(
        {
            "FLAGS_rpc_deadline": "3000",
            "FLAGS_rpc_retry_times": "7",
            "FLAGS_worker_update_interval_secs": "12",
            "PADDLELIKE_LEASE": "0.5",
            "PADDLELIKE_RESUME_POLICY": "rollback",
            "PADDLELIKE_JOB_ID": "clicks",
            "PADDLELIKE_CHECKPOINT_DIR": "models",
        }
    )
    limits = settings.limits
    assert (limits.window, limits.call, limits.barrier, limits.attempts) == (3.0, 3.0, 12.0, 7)
    assert limits.poll <= limits.window / 2
    assert (settings.lease, settings.rollback, settings.job) == (0.5, True, "clicks")
    assert settings.checkpoints == "models"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FLAGS_rpc_deadline", "soon"),
        ("FLAGS_worker_update_interval_secs", "-1"),
        ("PADDLELIKE_LEASE", "inf"),
        ("PADDLELIKE_LEASE", "nan"),
        ("PADDLELIKE_RESUME_POLICY", "retry"),
    ],
)
def test_a_value_that_is_not_understood_is_named(name: str, value: str) -> None:
    with pytest.raises(RoleError, match=f"{name} is '{value}'"):
        Settings.from_environment({name: value})


def make_parser() -> Parser:
    parser = Parser(prog="p", refused={"--gpus": "is for GPUs"}, missing={"SCRIPT": "no script is given"})
    parser.add_argument("--server_num", type=int)
    parser.add_argument("--log_dir")
    parser.add_argument("script", metavar="SCRIPT")
    return parser


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["x", "--server-num=2"], "unrecognized arguments: --server-num=2; did you mean --server_num"),
        (["x", "--serv_num", "2"], "did you mean --server_num instead of --serv_num?"),
        (["x", "--logdir", "d", "--server-num", "2"], "did you mean --log_dir instead of --logdir?; did you"),
        (["x", "--gpus=0"], "--gpus is for GPUs"),
        (["--server_num", "2"], "no script is given"),
        (["x", "--server", "2"], "unrecognized arguments: --server"),  # an abbreviation
    ],
    ids=["hyphen", "typing error", "two", "refused", "missing", "abbreviation"],
)
def test_an_invalid_option_value_is_explained(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        make_parser().parse_args(arguments)
    assert caught.value.code == 2
    assert expected in capsys.readouterr().err


def test_options_are_parsed_as_by_argparse() -> None:
    found = make_parser().parse_args(["--server_num", "2", "train.py"])
    assert (found.server_num, found.script, found.log_dir) == (2, "train.py", None)
