package requiredruntime

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

func TestDecide(t *testing.T) {
	spec := operatorv1alpha1.GardenSpec{
		DNS:        &operatorv1alpha1.DNSManagement{Providers: []operatorv1alpha1.DNSProvider{{Name: "a", Type: "Zone"}}},
		Extensions: []operatorv1alpha1.GardenExtension{{Type: "added"}},
	}
	spec.VirtualCluster.ETCD = &operatorv1alpha1.ETCD{Main: &operatorv1alpha1.ETCDMain{Backup: &operatorv1alpha1.Backup{Provider: "store"}}}
	deleting := &operatorv1alpha1.Garden{Spec: spec}
	deleting.DeletionTimestamp = new(metav1.Now())
	extension := func(kind, typ string) operatorv1alpha1.Extension {
		return operatorv1alpha1.Extension{Spec: operatorv1alpha1.ExtensionSpec{Resources: []corev1beta1.ControllerResource{{Kind: kind, Type: typ}}}}
	}
	forGarden := func(typ string, enabled ...corev1beta1.ClusterType) operatorv1alpha1.Extension {
		e := extension("Extension", typ)
		e.Spec.Resources[0].ClusterCompatibility = []corev1beta1.ClusterType{corev1beta1.ClusterTypeGarden}
		e.Spec.Resources[0].AutoEnable = enabled
		return e
	}
	for name, tc := range map[string]struct {
		extension operatorv1alpha1.Extension
		garden    *operatorv1alpha1.Garden
		objects   []need
		want      string // the message; empty for not required
	}{
		"the bucket of the backup":               {extension: extension("BackupBucket", "store"), garden: &operatorv1alpha1.Garden{Spec: spec}, want: "The Garden requires the extension: BackupBucket/store"},
		"the entry of the backup":                {extension: extension("BackupEntry", "store"), garden: &operatorv1alpha1.Garden{Spec: spec}, want: "The Garden requires the extension: BackupEntry/store"},
		"a DNS provider, in another case":        {extension: extension("DNSRecord", "zone"), garden: &operatorv1alpha1.Garden{Spec: spec}, want: "The Garden requires the extension: DNSRecord/Zone"},
		"an addition":                            {extension: forGarden("added"), garden: &operatorv1alpha1.Garden{Spec: spec}, want: "The Garden requires the extension: Extension/added"},
		"an addition by default":                 {extension: forGarden("auto", "garden"), garden: &operatorv1alpha1.Garden{}, want: "The Garden requires the extension: Extension/auto"},
		"no addition by default for shoots":      {extension: forGarden("auto", "shoot"), garden: &operatorv1alpha1.Garden{}},
		"another type":                           {extension: extension("BackupBucket", "other"), garden: &operatorv1alpha1.Garden{Spec: spec}},
		"another kind":                           {extension: extension("Worker", "store"), garden: &operatorv1alpha1.Garden{Spec: spec}},
		"no Garden":                              {extension: extension("BackupBucket", "store")},
		"a Garden that is deleted":               {extension: extension("BackupBucket", "store"), garden: deleting},
		"a Garden that is deleted, with objects": {extension: extension("BackupBucket", "store"), garden: deleting, objects: []need{{"BackupBucket", "store"}, {"BackupBucket", "store"}, {"DNSRecord", "zone"}}, want: "There are objects of class garden that the extension is responsible for: BackupBucket/store"},
		"no Garden, with objects of another one": {extension: extension("BackupBucket", "store"), objects: []need{{"BackupEntry", "store"}, {"BackupBucket", "other"}}},
	} {
		t.Run(name, func(t *testing.T) {
			want := corev1beta1.Condition{Type: "RequiredRuntime", Status: "True", Reason: "ExtensionRequired", Message: tc.want}
			if tc.want == "" {
				want.Status, want.Reason, want.Message = "False", "ExtensionNotRequired", "Neither the Garden nor an object of class garden requires the extension."
			}
			got := decide(&tc.extension, ofSpec(tc.garden, []operatorv1alpha1.Extension{tc.extension}), tc.objects)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
}
