package v1alpha1

// What Gardener gives to the pods of extensions.
const (
	// EnvGenericGardenKubeconfig is the environment variable with the path of the kubeconfig for the garden cluster. It is only set
	// if the ControllerDeployment does not decline it.
	EnvGenericGardenKubeconfig = "GARDEN_KUBECONFIG"
	// EnvSeedName is the environment variable with the name of the Seed that the extension runs in.
	EnvSeedName = "SEED_NAME"
	// EnvShootName is the environment variable with the name of the Shoot that the extension runs in, if that is self-hosted.
	EnvShootName = "SHOOT_NAME"
	// EnvShootNamespace is the environment variable with the namespace of that Shoot.
	EnvShootNamespace = "SHOOT_NAMESPACE"
	// VolumeMountPathGenericGardenKubeconfig is the directory that the kubeconfig for the garden cluster is mounted at.
	VolumeMountPathGenericGardenKubeconfig = "/var/run/secrets/gardener.cloud/garden/generic-kubeconfig"
	// PathGenericGardenKubeconfig is the file with that kubeconfig.
	PathGenericGardenKubeconfig = VolumeMountPathGenericGardenKubeconfig + "/kubeconfig"
	// PathGardenToken is the file with the token that the kubeconfig refers to. It is renewed in place.
	PathGardenToken = VolumeMountPathGenericGardenKubeconfig + "/token"
)

// Names that extensions use so that Gardener finds what they bring.
const (
	// WebhookNamePrefix is what the names of the webhook configurations of extensions start with.
	WebhookNamePrefix = "gardener-extension-"
	// LabelMutatedByControlPlaneWebhook on an object in a control plane namespace, with the value "true", hands it to the control
	// plane webhooks of extensions.
	LabelMutatedByControlPlaneWebhook = "provider.extensions.gardener.cloud/mutated-by-controlplane-webhook"
)

// Reasons of the conditions that extensions report in the status of their resources.
const (
	// ReasonUnsuccessful says that a health check found a problem.
	ReasonUnsuccessful = "HealthCheckUnsuccessful"
	// ReasonProgressing says that what is checked still changes.
	ReasonProgressing = "HealthCheckProgressing"
	// ReasonSuccessful says that all health checks are fine.
	ReasonSuccessful = "HealthCheckSuccessful"
)
