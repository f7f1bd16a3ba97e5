package operator_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/validation/operator"
)

// FuzzValidate reads both kinds from arbitrary JSON: whatever an operator writes is an error, not a panic.
func FuzzValidate(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("testdata", "garden.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	seed, err := yaml.YAMLToJSON(data)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"spec":{"deployment":{"extension":{"helm":{"ociRepository":{"ref":"a"}},"values":{}},"admission":{"runtimeCluster":{}}},"resources":[{"kind":"Worker","type":"a"}]}}`))
	f.Add([]byte(`{"metadata":{"annotations":{"gardener.cloud/operation":"rotate-ca-start"}},"status":{"credentials":{"rotation":{"certificateAuthorities":{"phase":"Prepared"}}}}}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		old := &operatorv1alpha1.Garden{}
		if json.Unmarshal(seed, old) != nil {
			return
		}
		garden := old.DeepCopy()
		if json.Unmarshal(data, garden) == nil {
			operator.ValidateGarden(garden)
			update(garden, old)
			update(old, garden)
		}
		extension := &operatorv1alpha1.Extension{}
		if json.Unmarshal(data, extension) == nil {
			operator.ValidateExtensionUpdate(extension, &operatorv1alpha1.Extension{})
		}
	})
}
