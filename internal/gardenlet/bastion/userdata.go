package bastion

import (
	"encoding/base64"
	"fmt"
)

// userData returns the script that the machine of a bastion runs at its first start: it creates the user gardener, who logs in with a key, and
// starts the SSH server. The key is encoded, as its comment is any text of a user.
func userData(publicKey string) []byte {
	return fmt.Appendf(nil, `#!/bin/bash -eu
id gardener >/dev/null 2>&1 || useradd --create-home --user-group --shell /bin/bash gardener
install -d -m 0700 -o gardener -g gardener /home/gardener/.ssh
echo %s | base64 -d >/home/gardener/.ssh/authorized_keys
chmod 0600 /home/gardener/.ssh/authorized_keys
chown gardener:gardener /home/gardener/.ssh/authorized_keys
echo 'gardener ALL=(ALL) NOPASSWD:ALL' >/etc/sudoers.d/99-gardener-user
systemctl start ssh || systemctl start sshd
`, base64.StdEncoding.EncodeToString([]byte(publicKey+"\n")))
}
