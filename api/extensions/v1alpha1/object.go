package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// Object is what the extension resources have in common: every kind of this package but Cluster. Code that treats all of them
// alike, such as waiting, migrating and health checks, is written for it.
type Object interface {
	metav1.Object
	runtime.Object

	// GetExtensionSpec returns the part of the spec that every extension resource has. It is never nil.
	GetExtensionSpec() Spec
	// GetExtensionStatus returns the part of the status that every extension resource has. It is never nil, and writing to it
	// writes to the object.
	GetExtensionStatus() Status
}

// Spec reads the part of the spec that every extension resource has.
type Spec interface {
	// GetExtensionType returns the type, which says together with the kind which extension is responsible.
	GetExtensionType() string
	// GetExtensionClass returns the class, and shoot if there is none.
	GetExtensionClass() ExtensionClass
	// GetProviderConfig returns the configuration that only the responsible extension understands. It may be nil.
	GetProviderConfig() *runtime.RawExtension
}

// Status reads and writes the part of the status that every extension resource has.
type Status interface {
	// GetProviderStatus returns what the extension publishes. It may be nil.
	GetProviderStatus() *runtime.RawExtension
	// SetProviderStatus replaces what the extension publishes.
	SetProviderStatus(*runtime.RawExtension)
	// GetConditions returns the results of health checks.
	GetConditions() []corev1beta1.Condition
	// SetConditions replaces the results of health checks.
	SetConditions([]corev1beta1.Condition)
	// GetLastOperation returns the last operation. It may be nil.
	GetLastOperation() *corev1beta1.LastOperation
	// SetLastOperation replaces the last operation.
	SetLastOperation(*corev1beta1.LastOperation)
	// GetLastError returns the last error. It may be nil.
	GetLastError() *corev1beta1.LastError
	// SetLastError replaces the last error.
	SetLastError(*corev1beta1.LastError)
	// GetObservedGeneration returns the generation that the extension acted on last.
	GetObservedGeneration() int64
	// SetObservedGeneration sets the generation that the extension acted on last.
	SetObservedGeneration(int64)
	// GetState returns what must be kept for a migration. It may be nil.
	GetState() *runtime.RawExtension
	// SetState replaces what must be kept for a migration.
	SetState(*runtime.RawExtension)
	// GetResources returns the names of objects that the state refers to.
	GetResources() []corev1beta1.NamedResourceReference
	// SetResources replaces the names of objects that the state refers to.
	SetResources([]corev1beta1.NamedResourceReference)
}

// GetExtensionType implements Spec.
func (s *DefaultSpec) GetExtensionType() string { return s.Type }

// GetExtensionClass implements Spec.
func (s *DefaultSpec) GetExtensionClass() ExtensionClass {
	if s.Class == nil || *s.Class == "" {
		return ExtensionClassShoot
	}
	return *s.Class
}

// GetProviderConfig implements Spec.
func (s *DefaultSpec) GetProviderConfig() *runtime.RawExtension { return s.ProviderConfig }

// GetProviderStatus implements Status.
func (s *DefaultStatus) GetProviderStatus() *runtime.RawExtension { return s.ProviderStatus }

// SetProviderStatus implements Status.
func (s *DefaultStatus) SetProviderStatus(status *runtime.RawExtension) { s.ProviderStatus = status }

// GetConditions implements Status.
func (s *DefaultStatus) GetConditions() []corev1beta1.Condition { return s.Conditions }

// SetConditions implements Status.
func (s *DefaultStatus) SetConditions(conditions []corev1beta1.Condition) { s.Conditions = conditions }

// GetLastOperation implements Status.
func (s *DefaultStatus) GetLastOperation() *corev1beta1.LastOperation { return s.LastOperation }

// SetLastOperation implements Status.
func (s *DefaultStatus) SetLastOperation(operation *corev1beta1.LastOperation) {
	s.LastOperation = operation
}

// GetLastError implements Status.
func (s *DefaultStatus) GetLastError() *corev1beta1.LastError { return s.LastError }

// SetLastError implements Status.
func (s *DefaultStatus) SetLastError(lastError *corev1beta1.LastError) { s.LastError = lastError }

// GetObservedGeneration implements Status.
func (s *DefaultStatus) GetObservedGeneration() int64 { return s.ObservedGeneration }

// SetObservedGeneration implements Status.
func (s *DefaultStatus) SetObservedGeneration(generation int64) { s.ObservedGeneration = generation }

// GetState implements Status.
func (s *DefaultStatus) GetState() *runtime.RawExtension { return s.State }

// SetState implements Status.
func (s *DefaultStatus) SetState(state *runtime.RawExtension) { s.State = state }

// GetResources implements Status.
func (s *DefaultStatus) GetResources() []corev1beta1.NamedResourceReference { return s.Resources }

// SetResources implements Status.
func (s *DefaultStatus) SetResources(resources []corev1beta1.NamedResourceReference) {
	s.Resources = resources
}

// GetExtensionSpec implements Object.
func (b *BackupBucket) GetExtensionSpec() Spec { return &b.Spec }

// GetExtensionStatus implements Object.
func (b *BackupBucket) GetExtensionStatus() Status { return &b.Status }

// GetExtensionSpec implements Object.
func (b *BackupEntry) GetExtensionSpec() Spec { return &b.Spec }

// GetExtensionStatus implements Object.
func (b *BackupEntry) GetExtensionStatus() Status { return &b.Status }

// GetExtensionSpec implements Object.
func (b *Bastion) GetExtensionSpec() Spec { return &b.Spec }

// GetExtensionStatus implements Object.
func (b *Bastion) GetExtensionStatus() Status { return &b.Status }

// GetExtensionSpec implements Object.
func (c *ContainerRuntime) GetExtensionSpec() Spec { return &c.Spec }

// GetExtensionStatus implements Object.
func (c *ContainerRuntime) GetExtensionStatus() Status { return &c.Status }

// GetExtensionSpec implements Object.
func (c *ControlPlane) GetExtensionSpec() Spec { return &c.Spec }

// GetExtensionStatus implements Object.
func (c *ControlPlane) GetExtensionStatus() Status { return &c.Status }

// GetExtensionSpec implements Object.
func (d *DNSRecord) GetExtensionSpec() Spec { return &d.Spec }

// GetExtensionStatus implements Object.
func (d *DNSRecord) GetExtensionStatus() Status { return &d.Status }

// GetExtensionSpec implements Object.
func (e *Extension) GetExtensionSpec() Spec { return &e.Spec }

// GetExtensionStatus implements Object.
func (e *Extension) GetExtensionStatus() Status { return &e.Status }

// GetExtensionSpec implements Object.
func (i *Infrastructure) GetExtensionSpec() Spec { return &i.Spec }

// GetExtensionStatus implements Object.
func (i *Infrastructure) GetExtensionStatus() Status { return &i.Status }

// GetExtensionSpec implements Object.
func (n *Network) GetExtensionSpec() Spec { return &n.Spec }

// GetExtensionStatus implements Object.
func (n *Network) GetExtensionStatus() Status { return &n.Status }

// GetExtensionSpec implements Object.
func (o *OperatingSystemConfig) GetExtensionSpec() Spec { return &o.Spec }

// GetExtensionStatus implements Object.
func (o *OperatingSystemConfig) GetExtensionStatus() Status { return &o.Status }

// GetExtensionSpec implements Object.
func (s *SelfHostedShootExposure) GetExtensionSpec() Spec { return &s.Spec }

// GetExtensionStatus implements Object.
func (s *SelfHostedShootExposure) GetExtensionStatus() Status { return &s.Status }

// GetExtensionSpec implements Object.
func (w *Worker) GetExtensionSpec() Spec { return &w.Spec }

// GetExtensionStatus implements Object.
func (w *Worker) GetExtensionStatus() Status { return &w.Status }
