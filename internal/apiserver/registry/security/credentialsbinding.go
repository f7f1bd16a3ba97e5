package security

import (
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	"gardener.cloud/gardener/internal/validation/security"
)

func credentialsBinding() *kind.Kind[securityv1alpha1.CredentialsBinding] {
	return &kind.Kind[securityv1alpha1.CredentialsBinding]{
		GroupVersionKind: gvk("CredentialsBinding"),
		Plural:           "credentialsbindings",
		ShortNames:       []string{"cb"},
		Namespaced:       true,

		Validate:       security.ValidateCredentialsBinding,
		ValidateUpdate: security.ValidateCredentialsBindingUpdate,
		Columns: []kind.Column[securityv1alpha1.CredentialsBinding]{
			{
				Name: "Provider", Description: "Type of the provider.", Unformatted: true,
				Value: func(c *securityv1alpha1.CredentialsBinding) any { return c.Provider.Type },
			},
			{
				Name: "APIVersion", Description: "API version of the credentials.",
				Value: func(c *securityv1alpha1.CredentialsBinding) any { return c.CredentialsRef.APIVersion },
			},
			{
				Name: "Kind", Description: "Kind of the credentials.",
				Value: func(c *securityv1alpha1.CredentialsBinding) any { return c.CredentialsRef.Kind },
			},
			{
				Name: "Name", Description: "Namespace and name of the credentials.",
				Value: func(c *securityv1alpha1.CredentialsBinding) any {
					return c.CredentialsRef.Namespace + "/" + c.CredentialsRef.Name
				},
			},
		},
	}
}
