package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
)

// LeaseAnnotationKeyPeerURLTLSEnabled on the Lease of a member says whether the member talks TLS to its peers: true or false.
const LeaseAnnotationKeyPeerURLTLSEnabled = "member.etcd.gardener.cloud/tls-enabled"

// FormatMemberIdentity returns the holder of the Lease of a member, such as 8e9e05c52164694d:Leader.
func FormatMemberIdentity(id uint64, role EtcdRole) string {
	return fmt.Sprintf("%x:%s", id, role)
}

// ParseMemberIdentity is the opposite of FormatMemberIdentity.
func ParseMemberIdentity(holder string) (id string, role EtcdRole, err error) {
	id, name, ok := strings.Cut(holder, ":")
	if _, err := strconv.ParseUint(id, 16, 64); !ok || err != nil {
		return "", "", fmt.Errorf("holder %q is not <id>:<role>", holder)
	}
	return id, EtcdRole(name), nil
}
