"""A directory for tests: Debian's slapd, with users and groups."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time

import trustme

SLAPD = shutil.which("slapd", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/lib/openldap") or shutil.which("slapd")
READY_S = 60
BASE = "dc=example,dc=com"
PEOPLE = f"ou=people,{BASE}"
ADMIN = f"cn=admin,{BASE}"
ENTRIES = f"""
dn: {BASE}
objectClass: dcObject
objectClass: organization
o: example

dn: {PEOPLE}
objectClass: organizationalUnit

dn: ou=groups,{BASE}
objectClass: organizationalUnit
"""
PERSON = """
dn: uid={dn},{people}
objectClass: inetOrgPerson
uid: {uid}
cn: x
sn: x
userPassword: {password}
departmentNumber: plant
departmentNumber: office
seeAlso: cn=night shift,ou=groups,dc=example,dc=com
"""
GROUP = """
dn: cn={name},ou=groups,{base}
objectClass: groupOfNames
member: uid={member},{people}
"""
CONF = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCACertificateFile {folder}/ca.pem
TLSCertificateFile {folder}/cert.pem
TLSCertificateKeyFile {folder}/key.pem
allow bind_anon_cred bind_anon_dn
database mdb
suffix "{base}"
rootdn "{admin}"
rootpw admin-secret
directory {folder}/data
"""


class Slapd:
    """Use as a context manager; `port` and `tls_port` are of localhost, `ca` signed its certificate."""

    def __init__(self, folder):
        self.folder = folder
        self.ca = folder / "ca.pem"
        self.port, self.tls_port = _free_port(), _free_port()
        self._process = None

    @property
    def url(self):
        return f"ldap://localhost:{self.port}"

    def __enter__(self):
        authority = trustme.CA()
        server = authority.issue_cert("localhost")
        authority.cert_pem.write_to_path(self.ca)
        server.private_key_pem.write_to_path(self.folder / "key.pem")
        server.cert_chain_pems[0].write_to_path(self.folder / "cert.pem")
        (self.folder / "data").mkdir()
        conf = self.folder / "slapd.conf"
        conf.write_text(CONF.format(folder=self.folder, base=BASE, admin=ADMIN))
        people = [("ann", "ann", "secret"), ("odd\\2a \\28x\\29", "odd* (x)", "secret"), ("bob", "bob", "other")]
        said = ENTRIES
        said += "".join(PERSON.format(dn=dn, uid=uid, password=word, people=PEOPLE) for dn, uid, word in people)
        groups = [("turbines", "ann"), ("pumps", "ann"), ("strange", "odd\\2a \\28x\\29")]
        said += "".join(GROUP.format(name=name, member=who, base=BASE, people=PEOPLE) for name, who in groups)
        subprocess.run(
            [SLAPD, "-T", "add", "-q", "-f", conf],
            input=said.encode(),
            check=True,
            capture_output=True,
            timeout=READY_S,
        )
        self.start()
        return self

    def start(self):
        urls = f"{self.url}/ ldaps://localhost:{self.tls_port}/"
        command = [SLAPD, "-d", "0", "-f", self.folder / "slapd.conf", "-h", urls]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        until = time.monotonic() + READY_S
        while time.monotonic() < until:
            try:
                socket.create_connection(("localhost", self.tls_port), timeout=1).close()
            except OSError:
                assert self._process.poll() is None, "slapd did not start"
                self._process.poll()
            else:
                return
        raise AssertionError("slapd did not start")

    def stop(self):
        self._process.terminate()
        self._process.wait(READY_S)

    def __exit__(self, *exc_info):
        self.stop()


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
