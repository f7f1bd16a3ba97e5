#!/bin/bash
set -euo pipefail

mkdir -p '/a'
{ cat <<'END_OF_FILE'
<<TOKEN>>
END_OF_FILE
} | head -c -1 > '/a/token'
chmod 0600 '/a/token'

mkdir -p '/a'
{ cat <<'END_OF_FILE_'
one
END_OF_FILE

END_OF_FILE_
} | head -c -1 > '/a/two lines'
chmod 0755 '/a/two lines'

mkdir -p '/a'
base64 -d > '/a/it'\''s' <<'END_OF_FILE'
JChleGl0IDEpIGBleGl0IDFgICd4JyAieSI=
END_OF_FILE
chmod 0644 '/a/it'\''s'

mkdir -p '/a'
base64 -d > '/a/none' <<'END_OF_FILE'

END_OF_FILE
chmod 0644 '/a/none'

mkdir -p '/a'
base64 -d > '/a/secret' <<'END_OF_FILE'
ZnJvbSBhIHNlY3JldAo=
END_OF_FILE
chmod 0644 '/a/secret'

mkdir -p '/a'
base64 -d > '/a/b64' <<'END_OF_FILE'
ZGVjb2RlZA==
END_OF_FILE
chmod 0644 '/a/b64'

mkdir -p '/etc/systemd/system'
base64 -d > '/etc/systemd/system/agent.service' <<'END_OF_FILE'
W1NlcnZpY2VdCkV4ZWNTdGFydD0vYmluL2FnZW50Cg==
END_OF_FILE
chmod 0644 '/etc/systemd/system/agent.service'

mkdir -p '/etc/systemd/system/agent.service.d'
base64 -d > '/etc/systemd/system/agent.service.d/10-x.conf' <<'END_OF_FILE'
W1VuaXRdCg==
END_OF_FILE
chmod 0644 '/etc/systemd/system/agent.service.d/10-x.conf'

systemctl daemon-reload
systemctl enable 'agent.service'
systemctl disable 'old.service'
systemctl stop 'old.service'
systemctl restart --no-block 'agent.service'
