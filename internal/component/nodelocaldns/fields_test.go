package nodelocaldns

import (
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/everyfield"
)

func TestEveryFieldReachesTheCache(t *testing.T) {
	everyfield.Run(t, everyfield.Suite[corev1beta1.NodeLocalDNS]{
		Render: func(t *testing.T, config *corev1beta1.NodeLocalDNS) string {
			shoot := &corev1beta1.Shoot{}
			shoot.Spec.Networking = &corev1beta1.Networking{Services: new("100.64.0.0/13")}
			shoot.Spec.SystemComponents = &corev1beta1.SystemComponents{NodeLocalDNS: config}
			v, err := For(shoot)
			if err != nil {
				t.Fatal(err)
			}
			objects, err := Objects(v)
			return everyfield.YAML(t, []any{Enabled(shoot), objects}, err)
		},
	})
}
