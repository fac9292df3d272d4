from __future__ import annotations

import pytest

from gateway.net.streams.certificate_names import find_name

SUBJECT = ((("countryName", "DE"),), (("organizationName", "Plant, North"),), (("commonName", "me"),))
CERTIFICATE = {
    "subject": SUBJECT,
    "subjectAltName": (("DNS", "a.test"), ("DNS", "b.test"), ("email", "me@a.test"), ("URI", "spiffe://a/me")),
}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("common_name", "me"),
        ("subject", "CN=me,O=Plant\\, North,C=DE"),
        ("email", "me@a.test"),
        ("dns", "a.test"),
        ("uri", "spiffe://a/me"),
    ],
)
def test_first_name_of_a_kind_is_found(source, name):
    assert find_name(CERTIFICATE, source) == name
    assert find_name({}, source) == ""
    assert find_name({"subject": ((("organizationName", "x"),),)}, "common_name") == ""


@pytest.mark.parametrize(
    ("value", "told"), [(" a", "\\ a"), ("#a", "\\#a"), ("a ", "a\\ "), (" ", "\\ "), ('a"b\\', 'a\\"b\\\\')]
)
def test_a_subject_is_told_so_that_it_reads_as_one_way_only(value, told):
    assert find_name({"subject": ((("commonName", value),),)}, "subject") == f"CN={told}"
