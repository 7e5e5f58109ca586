"""The variables of four generations, as scripts and clusters set them, and their contradictions."""

from __future__ import annotations

import pytest

from paddlelike.distributed.roles import ProcessRole, describe, read_role
from paddlelike.errors import RoleError

SERVERS = ("10.0.0.1:6174", "10.0.0.2:6174")
THIRD = {"PADDLE_PSERVERS_IP_PORT_LIST": ",".join(SERVERS), "PADDLE_TRAINERS_NUM": "2"}
THIRD_B = {
    "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(SERVERS),
    "PADDLE_TRAINER_ENDPOINTS": "10.0.0.3:1,10.0.0.4:1",
}
SECOND_B = {"PADDLE_PSERVER_ENDPOINTS": ",".join(SERVERS), "PADDLE_TRAINERS_NUM": "2"}
SECOND = {"PADDLE_PSERVERS": "10.0.0.1,10.0.0.2", "PADDLE_PORT": "6174", "PADDLE_TRAINERS_NUM": "2"}
FIRST = {"PADDLE_PSERVER_IPS": "10.0.0.1,10.0.0.2", "PADDLE_PSERVER_PORT": "6174", "PADDLE_TRAINERS": "2"}

SPELLINGS = {
    "third": (THIRD, "TRAINING_ROLE", {"POD_IP": "10.0.0.2", "PADDLE_PORT": "6174"}),
    "third, GeneralRoleMaker": (THIRD_B, "TRAINING_ROLE", {"PADDLE_PSERVER_ID": "1"}),
    "dist_train": (SECOND_B, "PADDLE_TRAINING_ROLE", {"PADDLE_CURRENT_ENDPOINT": SERVERS[1]}),
    "second": (SECOND, "TRAINING_ROLE", {"POD_IP": "10.0.0.2"}),
    "second, default port": (
        {name: value for name, value in SECOND.items() if name != "PADDLE_PORT"},
        "TRAINING_ROLE",
        {"POD_IP": "10.0.0.2"},
    ),
    "first": (FIRST, "PADDLE_TRAINING_ROLE", {"PADDLE_CURRENT_IP": "10.0.0.2"}),
    "first, with POD_IP": (FIRST, "PADDLE_TRAINING_ROLE", {"POD_IP": "10.0.0.2"}),
    "first, default port": (
        {name: value for name, value in FIRST.items() if name != "PADDLE_PSERVER_PORT"},
        "PADDLE_TRAINING_ROLE",
        {"PADDLE_CURRENT_IP": "10.0.0.2"},
    ),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_each_generation_defines_a_trainer(name: str) -> None:
    job, role, _ = SPELLINGS[name]
    found = read_role(job | {role: "TRAINER", "PADDLE_TRAINER_ID": "1"})
    assert (found.kind, found.index, found.trainers, found.servers) == ("trainer", 1, 2, SERVERS)
    assert found.endpoint is None


@pytest.mark.parametrize("name", SPELLINGS)
def test_each_generation_defines_a_server(name: str) -> None:
    job, role, own = SPELLINGS[name]
    found = read_role(job | {role: "PSERVER"} | own)
    assert (found.kind, found.index, found.endpoint) == ("server", 1, SERVERS[1])
    assert (found.trainers, found.servers) == (2, SERVERS)


def test_environment_variables_of_all_fluid_versions_together_define_one_role() -> None:
    everything = THIRD | SECOND_B | SECOND | FIRST | {"POD_IP": "10.0.0.1", "PADDLE_CURRENT_IP": "10.0.0.1"}
    roles = {"TRAINING_ROLE": "PSERVER", "PADDLE_TRAINING_ROLE": "PSERVER"}
    found = read_role(everything | roles | {"PADDLE_CURRENT_ENDPOINT": SERVERS[0]})
    assert found == ProcessRole("server", SERVERS, 2, 0, SERVERS[0])


def test_without_environment_variables_the_process_is_local() -> None:
    assert read_role({}).kind == "local"
    assert "by itself" in str(describe({}))


def test_the_is_local_variable_overrules_a_role() -> None:
    assert read_role(THIRD | {"TRAINING_ROLE": "TRAINER", "PADDLE_IS_LOCAL": "1"}).kind == "local"
    trainer = THIRD | {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "0", "PADDLE_IS_LOCAL": "0"}
    assert read_role(trainer).kind == "trainer"


def problem_of(environ: dict[str, str]) -> str:
    with pytest.raises(RoleError) as caught:
        read_role(environ)
    assert str(caught.value).startswith("the environment variables do not define the role of this process")
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("trainer", "write TRAINER"),
        ("WORKER", "write TRAINER"),
        ("server", "write PSERVER"),
        ("ps", "TRAINER or"),
    ],
)
def test_a_misspelled_role_is_refused_with_the_spelling_of_fluid(value: str, meant: str) -> None:
    text = problem_of(THIRD | {"TRAINING_ROLE": value})
    assert f"TRAINING_ROLE={value}: {meant}" in text or f"TRAINING_ROLE={value}: write {meant}" in text


def test_all_missing_variables_are_named_at_once() -> None:
    text = problem_of({"TRAINING_ROLE": "PSERVER", "PADDLE_PSERVERS_IP_PORT_LIST": "10.0.0.1:6174"})
    assert "PADDLE_TRAINERS_NUM, the number of trainers" in text
    assert "POD_IP and PADDLE_PORT, this server's own host and port" in text


def test_the_error_for_a_role_without_servers_names_the_missing_list() -> None:
    text = problem_of({"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "0", "PADDLE_TRAINERS_NUM": "1"})
    assert "PADDLE_PSERVERS_IP_PORT_LIST, the servers as host:port" in text


def test_servers_without_a_role_get_an_error_that_names_the_variable() -> None:
    assert "TRAINING_ROLE, which is TRAINER or PSERVER" in problem_of(THIRD)


def test_the_address_of_a_process_must_be_in_the_list_literally() -> None:
    text = problem_of(THIRD | {"TRAINING_ROLE": "PSERVER", "POD_IP": "10.0.0.2", "PADDLE_PORT": "6175"})
    assert "10.0.0.2:6175, which is not in the list of servers 10.0.0.1:6174,10.0.0.2:6174 as it is" in text
    assert "did you mean '10.0.0.2:6174'?" in text


def test_two_different_own_addresses_are_refused() -> None:
    two = {"POD_IP": "10.0.0.2", "PADDLE_PORT": "6174", "PADDLE_CURRENT_ENDPOINT": "10.0.0.1:6174"}
    text = problem_of(THIRD | {"TRAINING_ROLE": "PSERVER"} | two)
    assert "10.0.0.1:6174 by PADDLE_CURRENT_ENDPOINT but 10.0.0.2:6174 by POD_IP and PADDLE_PORT" in text


def test_paddle_trainers_is_a_count_in_the_first_generation() -> None:
    assert read_role(FIRST | {"PADDLE_TRAINING_ROLE": "TRAINER", "PADDLE_TRAINERS": "7"}).trainers == 7


def test_paddle_trainers_is_a_list_of_addresses_in_paddlecloud() -> None:
    addresses = {"PADDLE_TRAINERS": "10.0.0.3,10.0.0.4", "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "1"}
    assert read_role(THIRD | addresses).trainers == 2
    text = problem_of(THIRD | addresses | {"PADDLE_TRAINERS": "10.0.0.3"})
    assert "2 by PADDLE_TRAINERS_NUM but 1 by PADDLE_TRAINERS, a list of addresses" in text


def test_two_lists_of_servers_that_differ_are_refused() -> None:
    stale = {"PADDLE_PSERVER_ENDPOINTS": "10.0.0.9:6174"}
    text = problem_of(THIRD | stale | {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "0"})
    assert "PADDLE_PSERVERS_IP_PORT_LIST says 10.0.0.1:6174,10.0.0.2:6174" in text
    assert "PADDLE_PSERVER_ENDPOINTS 10.0.0.9:6174" in text


def test_a_list_of_hosts_may_stand_beside_a_list_of_endpoints() -> None:
    # PADDLE_PORT is this server's own port here, so that it says nothing about the others.
    one_host = {
        "PADDLE_PSERVERS_IP_PORT_LIST": "127.0.0.1:6170,127.0.0.1:6171",
        "PADDLE_PSERVERS": "127.0.0.1,127.0.0.1",
        "PADDLE_TRAINERS_NUM": "2",
    }
    own = {"TRAINING_ROLE": "PSERVER", "POD_IP": "127.0.0.1", "PADDLE_PORT": "6171"}
    assert read_role(one_host | own).endpoint == "127.0.0.1:6171"


def test_two_roles_that_differ_are_refused() -> None:
    text = problem_of(THIRD | {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINING_ROLE": "PSERVER"})
    assert "TRAINING_ROLE=TRAINER but PADDLE_TRAINING_ROLE=PSERVER" in text


def test_a_misnamed_variable_from_the_old_guide_is_understood_and_reported() -> None:
    found = describe(FIRST | {"PADDLE_TRAINER_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "1"})
    assert found.role is not None
    assert found.role.index == 1
    assert "PADDLE_TRAINER_ROLE: a typing error in the guide" in str(found)


def test_a_missing_trainer_id_means_0_only_in_the_versions_that_said_so() -> None:
    assert read_role(FIRST | {"PADDLE_TRAINING_ROLE": "TRAINER"}).index == 0
    assert "PADDLE_TRAINER_ID" in problem_of(THIRD | {"TRAINING_ROLE": "TRAINER"})
    assert read_role(THIRD | {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINERS_NUM": "1"}).index == 0


def test_an_id_beyond_the_trainers_is_refused() -> None:
    text = problem_of(THIRD | {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "2"})
    assert "PADDLE_TRAINER_ID=2, expected 0 to 1 for 2 trainers" in text


def test_endpoints_of_trainers_without_servers_are_collective_training() -> None:
    collective = {"PADDLE_TRAINER_ENDPOINTS": "10.0.0.3:1,10.0.0.4:1", "PADDLE_TRAINER_ID": "0"}
    found = read_role(collective)
    assert (found.kind, found.index, found.trainers) == ("worker", 0, 2)
    assert found.trainer_endpoints == ("10.0.0.3:1", "10.0.0.4:1")
    assert read_role(collective | {"PADDLE_TRAINING_ROLE": "TRAINER"}) == found
    assert "collective training" in str(describe(collective))


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({}, "PADDLE_TRAINER_ID, the id of this worker, 0 to 1"),
        ({"PADDLE_TRAINER_ID": "2"}, "PADDLE_TRAINER_ID=2, expected 0 to 1"),
        ({"PADDLE_CURRENT_ENDPOINT": "10.0.0.9:1"}, "PADDLE_CURRENT_ENDPOINT=10.0.0.9:1 is not in"),
        (
            {"PADDLE_CURRENT_ENDPOINT": "10.0.0.4:1", "PADDLE_TRAINER_ID": "0"},
            "this worker is number 0 by PADDLE_TRAINER_ID but number 1 by PADDLE_CURRENT_ENDPOINT",
        ),
        ({"PADDLE_TRAINER_ID": "0", "PADDLE_TRAINERS_NUM": "3"}, "3 by PADDLE_TRAINERS_NUM but 2"),
    ],
    ids=["no id", "beyond", "unknown", "two", "count"],
)
def test_workers_whose_variables_do_not_fit_are_refused(variables: dict[str, str], text: str) -> None:
    assert text in problem_of({"PADDLE_TRAINER_ENDPOINTS": "10.0.0.3:1,10.0.0.4:1"} | variables)


def test_variables_of_version_2_of_paddle_are_named_and_ignored() -> None:
    found = describe({"PADDLE_INIT_PSERVERS": "10.0.0.1", "PADDLE_INIT_TRAINER_ID": "0"})
    assert found.role == ProcessRole("local")
    assert "PADDLE_INIT_PSERVERS, PADDLE_INIT_TRAINER_ID" in str(found)


@pytest.mark.parametrize(
    "entry", ["10.0.0.1", "10.0.0.1:", "10.0.0.1:port", "10.0.0.1:0", ":6174", "a:70000"]
)
def test_an_endpoint_is_a_host_and_a_port(entry: str) -> None:
    environ = THIRD | {"PADDLE_PSERVERS_IP_PORT_LIST": f"10.0.0.2:6174,{entry}"}
    assert repr(entry) in problem_of(environ | {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "0"})


def test_an_endpoint_that_is_listed_twice_is_refused() -> None:
    environ = THIRD | {"PADDLE_PSERVERS_IP_PORT_LIST": "a:1,b:1,a:1", "PADDLE_TRAINER_ID": "0"}
    assert "lists a:1 2 times" in problem_of(environ | {"TRAINING_ROLE": "TRAINER"})


def test_values_that_are_not_integers_are_named() -> None:
    environ = THIRD | {"PADDLE_TRAINERS_NUM": "two", "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "first"}
    text = problem_of(environ)
    assert "PADDLE_TRAINERS_NUM=two is not a whole number" in text
    assert "PADDLE_TRAINER_ID=first is not a whole number" in text


def test_a_wrong_number_of_servers_is_refused() -> None:
    text = problem_of(
        THIRD | {"PADDLE_PSERVERS_NUM": "3", "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "0"}
    )
    assert "PADDLE_PSERVERS_NUM=3, but PADDLE_PSERVERS_IP_PORT_LIST lists 2 servers" in text


def test_blanks_around_entries_and_empty_variables_are_ignored() -> None:
    blanks = {"PADDLE_PSERVERS_IP_PORT_LIST": " 10.0.0.1:6174 , 10.0.0.2:6174 ", "PADDLE_PSERVER_IPS": ""}
    environ = THIRD | blanks | {"TRAINING_ROLE": " TRAINER", "PADDLE_TRAINER_ID": "1"}
    assert read_role(environ).servers == SERVERS


def test_the_description_names_each_fact_and_its_variable() -> None:
    text = str(describe(SECOND | {"TRAINING_ROLE": "PSERVER", "POD_IP": "10.0.0.2"}))
    assert "generation of variables: 2 (cluster scripts)" in text
    assert "from PADDLE_PSERVERS with PADDLE_PORT" in text
    assert "10.0.0.2:6174" in text
    assert "from POD_IP and PADDLE_PORT" in text
    assert "missing" not in text


def test_the_environment_of_the_process_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (THIRD | {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": "1"}).items():
        monkeypatch.setenv(name, value)
    assert read_role().index == 1
