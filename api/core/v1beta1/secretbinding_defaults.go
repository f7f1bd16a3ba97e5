package v1beta1

// DefaultSecretBinding fills in the defaults of a SecretBinding.
func DefaultSecretBinding(binding *SecretBinding) {
	if binding.SecretRef.Namespace == "" {
		binding.SecretRef.Namespace = binding.Namespace
	}
	for i := range binding.Quotas {
		if binding.Quotas[i].Namespace == "" {
			binding.Quotas[i].Namespace = binding.Namespace
		}
	}
}
