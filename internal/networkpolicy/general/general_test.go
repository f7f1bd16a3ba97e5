package general

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/test/golden"
)

func TestPolicies(t *testing.T) {
	networks := Networks{Own: []string{"10.1.0.0/16", "10.2.0.0/16", "172.30.0.0/24"}, Blocked: []string{"169.254.169.254/32"}}
	for name, tc := range map[string]struct {
		networks  Networks
		endpoints []endpoint
	}{
		"seed":  {networks, []endpoint{{"10.2.0.1/32", 443}, {"172.30.0.2/32", 6443}}},
		"empty": {},
	} {
		var objects []client.Object
		for _, policy := range policies(tc.networks, tc.endpoints) {
			objects = append(objects, policy)
		}
		golden.Objects(t, name+".yaml", objects)
	}
}
