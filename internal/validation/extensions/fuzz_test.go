package extensions_test

import (
	"encoding/json"
	"testing"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/validation/extensions"
)

// FuzzValidate reads every kind from arbitrary JSON: whatever a client sends is an error, not a panic.
func FuzzValidate(f *testing.F) {
	for _, obj := range everyKind() {
		data, err := json.Marshal(obj)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		for _, old := range everyKind() {
			obj := old.DeepCopyObject().(extensionsv1alpha1.Object)
			if json.Unmarshal(data, obj) != nil {
				continue
			}
			extensions.Validate(obj)
			extensions.ValidateUpdate(obj, old)
			extensions.ValidateUpdate(old, obj)
			if config, ok := obj.(*extensionsv1alpha1.OperatingSystemConfig); ok {
				extensions.ValidateOperatingSystemConfigStatus(config)
			}
		}
	})
}
