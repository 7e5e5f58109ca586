"""Errors of the option parser name what was probably meant."""

from __future__ import annotations

import pytest

from paddlelike.distributed.option_parser import Parser


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
def test_an_error_explains_the_option(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        make_parser().parse_args(arguments)
    assert caught.value.code == 2
    assert expected in capsys.readouterr().err


def test_options_are_parsed_as_by_argparse() -> None:
    found = make_parser().parse_args(["--server_num", "2", "train.py"])
    assert (found.server_num, found.script, found.log_dir) == (2, "train.py", None)
