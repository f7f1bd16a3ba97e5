package graph

// Kind is a kind of objects of the garden.
type Kind uint8

// Kinds of objects. Group and version are not part of a kind, because no two of these have the same name.
const (
	BackupBucket Kind = iota
	BackupEntry
	Bastion
	CertificateSigningRequest
	CloudProfile
	ClusterRoleBinding
	ConfigMap
	ControllerDeployment
	ControllerInstallation
	ControllerRegistration
	CredentialsBinding
	ExposureClass
	Gardenlet
	InternalSecret
	Lease
	ManagedSeed
	Namespace
	NamespacedCloudProfile
	Project
	Secret
	SecretBinding
	Seed
	ServiceAccount
	Shoot
	ShootState
	WorkloadIdentity
)

var kindNames = [...]string{
	BackupBucket: "BackupBucket", BackupEntry: "BackupEntry", Bastion: "Bastion", CertificateSigningRequest: "CertificateSigningRequest",
	CloudProfile: "CloudProfile", ClusterRoleBinding: "ClusterRoleBinding", ConfigMap: "ConfigMap", ControllerDeployment: "ControllerDeployment",
	ControllerInstallation: "ControllerInstallation", ControllerRegistration: "ControllerRegistration", CredentialsBinding: "CredentialsBinding",
	ExposureClass: "ExposureClass", Gardenlet: "Gardenlet", InternalSecret: "InternalSecret", Lease: "Lease", ManagedSeed: "ManagedSeed",
	Namespace: "Namespace", NamespacedCloudProfile: "NamespacedCloudProfile", Project: "Project", Secret: "Secret", SecretBinding: "SecretBinding",
	Seed: "Seed", ServiceAccount: "ServiceAccount", Shoot: "Shoot", ShootState: "ShootState", WorkloadIdentity: "WorkloadIdentity",
}

// Kinds returns all kinds.
func Kinds() []Kind {
	kinds := make([]Kind, len(kindNames))
	for i := range kinds {
		kinds[i] = Kind(i)
	}
	return kinds
}

// String returns the name of a kind in manifests.
func (k Kind) String() string { return kindNames[k] }

// Key names an object. Objects of cluster-scoped kinds have no namespace.
type Key struct {
	Kind            Kind
	Namespace, Name string
}

// String returns kind, namespace and name.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind.String() + " " + k.Name
	}
	return k.Kind.String() + " " + k.Namespace + "/" + k.Name
}
