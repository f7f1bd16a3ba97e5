package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// addDefaultingFuncs registers the defaults of all kinds in this package.
func addDefaultingFuncs(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&CredentialsBinding{}, func(obj any) { DefaultCredentialsBinding(obj.(*CredentialsBinding)) })
	scheme.AddTypeDefaultingFunc(&CredentialsBindingList{}, func(obj any) {
		list := obj.(*CredentialsBindingList)
		for i := range list.Items {
			DefaultCredentialsBinding(&list.Items[i])
		}
	})
	scheme.AddTypeDefaultingFunc(&TokenRequest{}, func(obj any) { DefaultTokenRequest(obj.(*TokenRequest)) })
	return nil
}

// DefaultCredentialsBinding fills in the defaults of a CredentialsBinding.
func DefaultCredentialsBinding(binding *CredentialsBinding) {
	if binding.CredentialsRef.Namespace == "" {
		binding.CredentialsRef.Namespace = binding.Namespace
	}
	for i := range binding.Quotas {
		if binding.Quotas[i].Namespace == "" {
			binding.Quotas[i].Namespace = binding.Namespace
		}
	}
}

// DefaultTokenRequest fills in the defaults of a TokenRequest.
func DefaultTokenRequest(request *TokenRequest) {
	if request.Spec.ExpirationSeconds == nil {
		request.Spec.ExpirationSeconds = new(int64(3600))
	}
}
