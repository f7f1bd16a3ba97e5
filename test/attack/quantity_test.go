package attack

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/apiserver/admission/quantityvalidator"
)

// A quantity with a large exponent takes minutes and gigabytes to decode or to compare, also in a dry run. A member must not stop
// gardener-apiserver, in which all projects are.
func TestQuantityStopsTheAPIServer(t *testing.T) {
	g := start(t, quantityvalidator.Name)
	shoot := newShoot("existing")
	g.create(t, shoot)
	const limit = 20 * time.Second // to compare an exponent of eight digits takes half a minute
	refused := func(what string, request func() error) {
		t.Helper()
		start := time.Now()
		err := request()
		if took := time.Since(start); took > limit || !apierrors.IsBadRequest(err) && !apierrors.IsInvalid(err) {
			t.Fatalf("%s: after %s: %v", what, took.Round(time.Second), err)
		}
	}
	for _, quantity := range []string{"1e29999999", "1e-29999999", "1000000000000000000e9999999"} {
		minAllowed := func(cpu string) string {
			return fmt.Sprintf(`{"kubernetes":{"kubeAPIServer":{"autoscaling":{"minAllowed":{"cpu":%s}}}}}`, cpu)
		}
		escaped := fmt.Sprintf("\"\\u%04x%s\"", quantity[0], quantity[1:])
		create := func(kind, spec string) func() error {
			object := &unstructured.Unstructured{}
			data := fmt.Sprintf(`{"apiVersion":"core.gardener.cloud/v1beta1","kind":%q,"metadata":{"namespace":%q,"name":"new"},"spec":%s}`, kind, attackers, spec)
			if err := object.UnmarshalJSON([]byte(data)); err != nil {
				t.Fatal(err)
			}
			return func() error { return g.c.Create(t.Context(), object, client.DryRunAll) }
		}
		refused("new Shoot with "+quantity, create("Shoot", minAllowed(`"`+quantity+`"`)))
		refused("NamespacedCloudProfile with "+quantity, create("NamespacedCloudProfile",
			fmt.Sprintf(`{"parent":{"kind":"CloudProfile","name":"local"},"machineTypes":[{"name":"a","cpu":%q,"gpu":"0","memory":"1Gi"}]}`, quantity)))
		for _, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType} {
			for _, text := range []string{`"` + quantity + `"`, escaped} {
				options := []client.PatchOption{client.DryRunAll}
				if kind == types.ApplyYAMLPatchType {
					options = append(options, client.FieldOwner("attacker"))
				}
				patch := fmt.Sprintf(`{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","spec":%s}`, minAllowed(text))
				refused(fmt.Sprintf("%s with %s", kind, text), func() error {
					return g.c.Patch(t.Context(), shoot.DeepCopy(), client.RawPatch(kind, []byte(patch)), options...)
				})
			}
		}
	}
}
