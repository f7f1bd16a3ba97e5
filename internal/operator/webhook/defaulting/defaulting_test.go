package defaulting

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

// What the client has written stays as it is, also what could be written in a shorter way, and what the type does not know.
func TestPatchAddsOnlyWhatIsAbsent(t *testing.T) {
	for name, tc := range map[string]struct {
		sent string
		want []string
	}{
		"absent": {`{"spec":{"virtualCluster":{"kubernetes":{"version":"1.33.0"}}}}`, []string{
			"/spec/runtimeCluster", "/spec/virtualCluster/gardener", "/spec/virtualCluster/kubernetes/kubeAPIServer", "/spec/virtualCluster/kubernetes/kubeControllerManager",
		}},
		"present": {
			`{"spec":{"unknown":1,"runtimeCluster":{"networking":{"ipFamilies":["IPv6"]}},"virtualCluster":{
			"gardener":{"gardenerAPIServer":{"encryptionConfig":{"provider":{"type":"secretbox"}}}},
			"etcd":{"main":{"storage":{"capacity":"1024Mi"}}},
			"kubernetes":{"kubeControllerManager":{},"kubeAPIServer":{"eventTTL":"60m","requests":{"maxMutatingInflight":1},"encryptionConfig":{"provider":{"type":"secretbox"}}}}}}}`,
			[]string{"/spec/virtualCluster/kubernetes/kubeAPIServer/logging", "/spec/virtualCluster/kubernetes/kubeAPIServer/requests/maxNonMutatingInflight"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			garden := &operatorv1alpha1.Garden{}
			if err := json.Unmarshal([]byte(tc.sent), garden); err != nil {
				t.Fatal(err)
			}
			response := Patch([]byte(tc.sent), garden, operatorv1alpha1.DefaultGarden)
			var got []string
			for _, patch := range response.Patches {
				if patch.Operation != "add" {
					t.Errorf("%s changes what the client has written", patch.Json())
				}
				got = append(got, patch.Path)
			}
			if !response.Allowed {
				t.Errorf("refused: %v", response.Result)
			}
			if diff := cmp.Diff(toSet(tc.want), toSet(got)); diff != "" {
				t.Errorf("paths (-want +got):\n%s", diff)
			}
		})
	}
}

func TestItemsOfLists(t *testing.T) {
	const sent = `{"spec":{"resources":[{"kind":"Extension","type":"a","autoEnable":["shoot"],"reconcileTimeout":"60m"},{"kind":"Worker","type":"b","primary":false}],
		"deployment":{"extension":{"values":{"a":1.50}}}}}`
	extension := &operatorv1alpha1.Extension{}
	if err := json.Unmarshal([]byte(sent), extension); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, patch := range Patch([]byte(sent), extension, operatorv1alpha1.DefaultExtension).Patches {
		got = append(got, patch.Path)
	}
	want := []string{"/spec/deployment/extension/injectGardenKubeconfig", "/spec/resources/0/clusterCompatibility", "/spec/resources/0/primary"}
	if diff := cmp.Diff(toSet(want), toSet(got)); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func toSet(list []string) map[string]bool {
	set := map[string]bool{}
	for _, item := range list {
		set[item] = true
	}
	return set
}
