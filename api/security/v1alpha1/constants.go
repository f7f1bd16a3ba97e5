package v1alpha1

// Labels and annotations of Secrets with tokens of WorkloadIdentities.
const (
	// LabelPurpose says what a Secret is for.
	LabelPurpose = "security.gardener.cloud/purpose"
	// LabelPurposeWorkloadIdentityTokenRequestor is the purpose of Secrets which the gardenlet fills with a token.
	LabelPurposeWorkloadIdentityTokenRequestor = "workload-identity-token-requestor"
	// LabelWorkloadIdentityProvider is the type of the system that accepts the token. Extensions find their Secrets by it.
	LabelWorkloadIdentityProvider = "workloadidentity.security.gardener.cloud/provider"
	// AnnotationWorkloadIdentityNamespace is the namespace of the WorkloadIdentity in the garden.
	AnnotationWorkloadIdentityNamespace = "workloadidentity.security.gardener.cloud/namespace"
	// AnnotationWorkloadIdentityName is the name of the WorkloadIdentity.
	AnnotationWorkloadIdentityName = "workloadidentity.security.gardener.cloud/name"
	// AnnotationWorkloadIdentityContextObject is the ContextObject of the token as JSON.
	AnnotationWorkloadIdentityContextObject = "workloadidentity.security.gardener.cloud/context-object"
	// AnnotationWorkloadIdentityTokenRenewTimestamp is when the token is renewed, as RFC 3339. Written by the gardenlet.
	AnnotationWorkloadIdentityTokenRenewTimestamp = "workloadidentity.security.gardener.cloud/token-renew-timestamp"

	// DataKeyToken has the token.
	DataKeyToken = "token"
	// DataKeyConfig has what else clients need: the providerConfig of the target system.
	DataKeyConfig = "config"
)
