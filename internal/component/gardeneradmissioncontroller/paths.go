package gardeneradmissioncontroller

// Paths of the webhooks. They are those of the original, whose configurations have them too.
const (
	PathSeedAuthorizer              = "/webhooks/auth/seed"
	PathShootAuthorizer             = "/webhooks/auth/shoot"
	PathAuditPolicies               = "/webhooks/audit-policies"
	PathAuthenticationConfiguration = "/webhooks/authentication-configuration"
	PathAuthorizationConfiguration  = "/webhooks/authorization-configuration"
	PathInternalDomain              = "/webhooks/admission/validate-internal-domain"
	PathKubeconfigReference         = "/webhooks/validate-shoot-kubeconfig-secret-ref"
	PathKubeconfigSecrets           = "/webhooks/validate-kubeconfig-secrets"
	PathNamespaceDeletion           = "/webhooks/validate-namespace-deletion"
	PathProviderLabels              = "/webhooks/sync-provider-secret-labels"
	PathResourceSize                = "/webhooks/validate-resource-size"
	PathSeedRestriction             = "/webhooks/admission/seedrestriction"
	PathShootRestriction            = "/webhooks/admission/shootrestriction"
	PathUpdateRestriction           = "/webhooks/update-restriction"
)
