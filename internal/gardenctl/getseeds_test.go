package gardenctl

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestSeedTable(t *testing.T) {
	small := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "small"}}
	full := &corev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "full"},
		Spec: corev1beta1.SeedSpec{
			Provider: corev1beta1.SeedProvider{Zones: []string{"a", "b"}}, Backup: &corev1beta1.Backup{Provider: "local"},
			Taints: []corev1beta1.SeedTaint{{Key: "seed.gardener.cloud/protected"}},
		},
		Status: corev1beta1.SeedStatus{
			Allocatable: corev1.ResourceList{allocatableShoots: apiresource.MustParse("250")},
			Conditions: []corev1beta1.Condition{
				{Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue}, {Type: corev1beta1.SeedExtensionsReady, Status: corev1beta1.ConditionFalse},
			},
		},
	}
	garden := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name"}, {Name: "Status"}, {Name: "Last Operation"}, {Name: "Provider"}, {Name: "Region"}, {Name: "Age"}, {Name: "Version"}, {Name: "K8S Version"},
	}}
	for _, seed := range []*corev1beta1.Seed{full, small} {
		raw, err := json.Marshal(seed)
		if err != nil {
			t.Fatal(err)
		}
		garden.Rows = append(garden.Rows, metav1.TableRow{
			Cells:  []any{seed.Name, "Ready", "Reconcile", "local", "eu", "3d", "v1.151.0", "1.36.3"},
			Object: runtime.RawExtension{Raw: raw},
		})
	}
	for name, tc := range map[string]struct {
		counts map[string]int
		wide   bool
		want   string
	}{
		"table": {counts: map[string]int{"full": 249}, want: `NAME    STATUS   PROVIDER   REGION   VERSION    K8S VERSION   SHOOTS    AGE
full    Ready    local      eu       v1.151.0   1.36.3        249/250   3d
small   Ready    local      eu       v1.151.0   1.36.3        0/-       3d
`},
		"who may not list shoots": {want: `NAME    STATUS   PROVIDER   REGION   VERSION    K8S VERSION   SHOOTS   AGE
full    Ready    local      eu       v1.151.0   1.36.3        ?/250    3d
small   Ready    local      eu       v1.151.0   1.36.3        ?/-      3d
`},
		"wide": {counts: map[string]int{}, wide: true, want: "" +
			"NAME    STATUS   PROVIDER   REGION   VERSION    K8S VERSION   SHOOTS   AGE   GARDENLET   SYSTEM COMPONENTS   EXTENSIONS   BACKUP BUCKETS   LAST OPERATION   ZONES   BACKUP   TAINTS\n" +
			"full    Ready    local      eu       v1.151.0   1.36.3        0/250    3d    True        -                   False        -                Reconcile        a,b     local    seed.gardener.cloud/protected\n" +
			"small   Ready    local      eu       v1.151.0   1.36.3        0/-      3d    -           -                   -            -                Reconcile        -       -        -\n"},
	} {
		t.Run(name, func(t *testing.T) {
			table, err := seedTable(garden, tc.counts)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := printTable(&out, table, tc.wide, false); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("the table (-want +got):\n%s", diff)
			}
		})
	}
}
