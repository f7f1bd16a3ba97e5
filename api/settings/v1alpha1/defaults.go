package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// addDefaultingFuncs registers the defaults of all kinds in this package.
func addDefaultingFuncs(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&OpenIDConnectPreset{}, func(obj any) {
		DefaultOpenIDConnectPresetSpec(&obj.(*OpenIDConnectPreset).Spec)
	})
	scheme.AddTypeDefaultingFunc(&OpenIDConnectPresetList{}, func(obj any) {
		list := obj.(*OpenIDConnectPresetList)
		for i := range list.Items {
			DefaultOpenIDConnectPresetSpec(&list.Items[i].Spec)
		}
	})
	scheme.AddTypeDefaultingFunc(&ClusterOpenIDConnectPreset{}, func(obj any) {
		DefaultOpenIDConnectPresetSpec(&obj.(*ClusterOpenIDConnectPreset).Spec.OpenIDConnectPresetSpec)
	})
	scheme.AddTypeDefaultingFunc(&ClusterOpenIDConnectPresetList{}, func(obj any) {
		list := obj.(*ClusterOpenIDConnectPresetList)
		for i := range list.Items {
			DefaultOpenIDConnectPresetSpec(&list.Items[i].Spec.OpenIDConnectPresetSpec)
		}
	})
	return nil
}

// DefaultOpenIDConnectPresetSpec fills in the defaults of a preset.
func DefaultOpenIDConnectPresetSpec(spec *OpenIDConnectPresetSpec) {
	if len(spec.Server.SigningAlgs) == 0 {
		spec.Server.SigningAlgs = []string{"RS256"}
	}
	if spec.Server.UsernameClaim == nil {
		spec.Server.UsernameClaim = new("sub")
	}
}
